"""Schema changes between two states, reported as events in addition to the changes to entities.

This module compares schemas with the migration planner and finds the commit that made a change. It reads schemas and
the log, but never rows.
"""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

from omnigraph.errors import CommitNotFound, HistoryReclaimed, StorageError
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.migrate.describe_steps import describe_step
from omnigraph.lang.schema.migrate.steps import MigrationStep, UnsupportedChange
from omnigraph.lang.schema.migrate.types import all_steps

from .commit import Commit, SchemaRow
from .schemas import read_schema, schemas_agree
from .snapshot import Snapshot

StateInSchema = Callable[[SchemaIR], Any]
TypeName = tuple[str, str]  # kind and name


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The schema changes up to a commit, as ordered steps from the migration planner.

    >>> from omnigraph.lang.schema.migrate.steps import RenameType
    >>> change = SchemaChange("01J", (RenameType(type_kind="node", old="Lamp", new="Light"),))
    >>> change.op, change.descriptions
    ('schema', ('rename node type Lamp to Light',))
    """

    op: ClassVar[Literal["schema"]] = "schema"
    commit_id: str
    steps: tuple[MigrationStep, ...]

    @property
    def descriptions(self) -> tuple[str, ...]:
        """A one-line description of each step."""
        return tuple(map(describe_step, self.steps))

    def __str__(self) -> str:
        return "\n".join(self.descriptions)

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON document. The steps have the same form as in `schema plan`, plus a description."""
        steps = zip(self.steps, self.descriptions, strict=True)
        return {"op": self.op, "steps": [step.to_json() | {"description": line} for step, line in steps]}


def compare_schemas(
    old_snapshot: Snapshot, new_snapshot: Snapshot, type_names: Set[TypeName] | None = None
) -> SchemaChange | None:
    """Return the changes from one schema to another, optionally only for some types, or None if nothing changed."""
    if old_snapshot.schema_row == new_snapshot.schema_row:
        return None
    old_schema, new_schema = old_snapshot.schema, new_snapshot.schema
    if schemas_agree(old_schema, new_schema):
        return None
    erases_history = not {*new_schema.erased_directories} <= {*old_schema.erased_directories}
    steps = tuple(
        step
        for step in all_steps(old_schema.ir, new_schema.ir, "hard" if erases_history else "soft", is_accepted=True)
        if type_names is None or not type_names.isdisjoint(_types_of_step(step))
    )
    return SchemaChange(new_snapshot.commit_id, steps) if steps else None


def _types_of_step(step: MigrationStep) -> Iterator[TypeName]:
    """Yield the type that a step changes, under its old name and its new name."""
    if isinstance(step, UnsupportedChange):
        entity_kind, _, entity_name = step.entity.partition(":")
        yield entity_kind, entity_name.partition(".")[0]
        return
    kind = getattr(step, "type_kind", None)
    names = [getattr(step, member, None) for member in ("type_name", "name")]
    if step.kind == "rename_type":
        names += [getattr(step, member, None) for member in ("old", "new")]
    yield from ((str(kind), name) for name in names if isinstance(name, str))


@dataclass(frozen=True, slots=True)
class LocatedChange:
    """A schema change and the commit that made it."""

    commit: Commit
    old_ir: SchemaIR
    new_ir: SchemaIR

    def describe(self, property_names: Set[str] | None, type_names: Set[str]) -> str:
        """Return a one-line description of the steps that affect the given types and the given properties, if any."""
        steps = [
            step
            for step in all_steps(self.old_ir, self.new_ir, "soft", is_accepted=True)
            if any(name in type_names for _, name in _types_of_step(step))
            and (property_names is None or property_names & _properties_of_step(step))
        ]
        return "; ".join(map(describe_step, steps)) or "the schema was changed"


def _properties_of_step(step: MigrationStep) -> set[str]:
    if isinstance(step, UnsupportedChange):
        return {step.entity.partition(".")[2]}
    members = ("old", "new") if step.kind == "rename_property" else ("property_name",)
    return {name for member in members if isinstance(name := getattr(step, member, None), str)}


def locate_change(snapshot: Snapshot, other_snapshot: Snapshot, state_of: StateInSchema) -> LocatedChange | None:
    """Return the newest commit that changed the result of `state_of` since the two states diverged.

    The first state's commits are searched before those of the second.
    """
    for searched, excluded in ((snapshot, other_snapshot), (other_snapshot, snapshot)):
        for newer, older in pairwise(_schema_commits(searched, excluded)):
            new_ir, old_ir = (read_schema(searched.store, row).ir for _, row in (newer, older))
            if state_of(new_ir) != state_of(old_ir):
                return LocatedChange(newer[0], old_ir, new_ir)
    return None


def _schema_commits(snapshot: Snapshot, excluded: Snapshot) -> list[tuple[Commit, SchemaRow]]:
    """Return the schema changes on a first-parent path, newest first.

    The list ends with the newest schema change that is part of both histories.
    """
    try:
        known_ids = excluded.log.ancestors(excluded.commit_id).keys()
        schema_commits = []
        for commit in snapshot.log.first_parents(snapshot.commit_id):
            if commit.schema is not None:
                schema_commits.append((commit, commit.schema))
            if commit.id in known_ids and commit.schema is not None:
                break
    except (CommitNotFound, HistoryReclaimed, StorageError):
        return []
    return schema_commits
