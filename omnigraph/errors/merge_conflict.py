"""Merge conflicts: one record per conflict, and the error that carries all of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from .conflict import to_json_value
from .root import Conflict

CONFLICT_MEMBERS = ("entity_kind", "type_name", "entity_id", "kind", "message", "base", "ours", "theirs")


_PREVIEW_COUNT = 3  # maximum number of conflicts listed in the message; the rest are only counted


@dataclass(frozen=True, slots=True, order=True)
class EntityConflict:
    """An unresolved merge conflict in one entity or, if `entity_id` is None, in the schema.

    `base`, `ours` and `theirs` are the entity's values in the merge base, on the target branch and on the source
    branch. Each is None if the entity does not exist there. `changed` lists the conflicting properties.
    """

    entity_kind: str
    type_name: str
    entity_id: str | None
    kind: str
    message: str = ""
    base: Mapping[str, Any] | None = field(default=None, compare=False)
    ours: Mapping[str, Any] | None = field(default=None, compare=False)
    theirs: Mapping[str, Any] | None = field(default=None, compare=False)
    changed: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        id_suffix = f", entity id '{self.entity_id}'" if self.entity_id is not None else ""
        return f"{self.entity_kind} type '{self.type_name}'{id_suffix} ({self.kind})"

    def to_json(self) -> dict[str, Any]:
        """Return the conflict as a JSON entry for `merge_conflicts`."""
        members = {member_name: getattr(self, member_name) for member_name in CONFLICT_MEMBERS}
        members["changed"] = list(self.changed) or None
        return {
            member_name: to_json_value(member_value)
            for member_name, member_value in members.items()
            if member_value is not None
        }


class MergeConflict(Conflict):
    """The changes on the two branches conflict with each other.

    `str()` also shows the messages of the first conflicts.

    >>> message = "age is 7 on 'main', …"
    >>> conflict = EntityConflict("node", "Person", "ada", "divergent_update", message)
    >>> print(MergeConflict(conflicts=[conflict], hint="decide"))
    merge conflicts: node type 'Person', entity id 'ada' (divergent_update)
      Person 'ada': age is 7 on 'main', …
    hint: decide
    """

    code = "MergeConflicts"
    retryable = "fresh"
    prefix = "merge conflicts: "
    wire_facts = ("merge_conflicts",)
    hint = (
        "inspect the conflicts with dry_run=True (--dry-run), then merge with strategy='ours' or 'theirs'"
        " (--strategy ours or theirs), optionally per kind or type; or change the entities on one branch and"
        " merge again"
    )
    conflicts: list[EntityConflict]

    def __init__(
        self, message: str | None = None, *, conflicts: Iterable[EntityConflict | Mapping[str, Any]] = (), **facts: Any
    ) -> None:
        sorted_conflicts = sorted({_to_entity_conflict(conflict) for conflict in conflicts}, key=_conflict_sort_key)
        conflicts_json = [conflict.to_json() for conflict in sorted_conflicts]
        super().__init__(
            message or _preview_conflicts(sorted_conflicts), merge_conflicts=conflicts_json or None, **facts
        )
        self.conflicts = sorted_conflicts

    def __str__(self) -> str:
        conflict_lines = [
            f"  {_subject(conflict)}: {conflict.message}"
            for conflict in self.conflicts[:_PREVIEW_COUNT]
            if conflict.message
        ]
        headline, hint_separator, hint_text = super().__str__().partition("\nhint: ")
        return "\n".join([headline, *conflict_lines]) + hint_separator + hint_text

    def typed_members(self) -> dict[str, Any]:
        """Return all conflicts."""
        conflicts_json = self.details.get("merge_conflicts")
        return {"merge_conflicts": conflicts_json} if conflicts_json else {}

    def to_arrow(self) -> Any:
        """Return the conflicts as an Arrow table."""
        # Imported by name, because the language packages also import this module and must not depend on Arrow.
        pa = import_module("pyarrow")
        return conflict_table(self.conflicts, pa)

    def _repr_html_(self) -> str:
        from .conflict_card import conflict_card  # imported lazily, because only notebooks need it

        return conflict_card(self.conflicts, self.hint)


def conflict_table(conflicts: Sequence[EntityConflict], pa: Any) -> Any:
    """Return the conflicts as an Arrow table with one row per conflict. Entity values are JSON strings."""
    json_rows = [conflict.to_json() for conflict in conflicts]
    columns = [
        pa.array([json_row.get(member_name) for json_row in json_rows], pa.string())
        for member_name in CONFLICT_MEMBERS[:5]
    ]
    for member_name in CONFLICT_MEMBERS[5:]:
        json_texts = [
            None if json_row.get(member_name) is None else json.dumps(json_row[member_name]) for json_row in json_rows
        ]
        columns.append(pa.array(json_texts, pa.string()))
    columns.append(pa.array([list(conflict.changed) for conflict in conflicts], pa.list_(pa.string())))
    return pa.table(columns, names=[*CONFLICT_MEMBERS, "changed"])


def _to_entity_conflict(conflict: EntityConflict | Mapping[str, Any]) -> EntityConflict:
    if isinstance(conflict, EntityConflict):
        return conflict
    identifying_facts = {
        fact_name: conflict.get(fact_name) for fact_name in ("entity_kind", "type_name", "entity_id", "kind", "message")
    }
    identifying_facts |= {
        fact_name: fact_value or "" for fact_name, fact_value in identifying_facts.items() if fact_name != "entity_id"
    }
    return EntityConflict(**identifying_facts)  # type: ignore[arg-type]


def _subject(conflict: EntityConflict) -> str:
    """Return a label for the conflicting entity. In a schema conflict, return the name of the type or property."""
    return conflict.type_name if conflict.entity_id is None else f"{conflict.type_name} '{conflict.entity_id}'"


def _conflict_sort_key(conflict: EntityConflict) -> tuple[Any, ...]:
    return (
        conflict.entity_kind != "node",
        conflict.type_name,
        conflict.entity_id or "",
        conflict.kind,
        conflict.message,
    )


def _preview_conflicts(conflicts: list[EntityConflict]) -> str | None:
    if not conflicts:
        return None
    preview_text = "; ".join(str(conflict) for conflict in conflicts[:_PREVIEW_COUNT])
    remaining_count = len(conflicts) - _PREVIEW_COUNT
    remaining_note = f"; and {remaining_count} more" if remaining_count > 0 else ""
    return f"merge conflicts: {preview_text}{remaining_note}"
