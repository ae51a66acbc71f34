"""Find the versions of one type's table in all ancestors of a snapshot, even if the type was renamed.

Types are matched by identity. This module reads nothing but schemas, and only those that differ from the current
schema.
"""

from dataclasses import dataclass

from omnigraph.values.table_key import TableKey

from .commit import Commit, SchemaRow, TableEntry
from .matched_types import TypeTransition, find_transition
from .schemas import read_schema
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TracedVersion:
    """The table at one commit, and how to convert its rows to the current schema."""

    entry: TableEntry
    schema_row: SchemaRow
    transition: TypeTransition


def trace_table(snapshot: Snapshot, table_key: TableKey, newest_first: list[Commit]) -> dict[str, TracedVersion]:
    """Return the table at each commit that contains it, by commit id.

    `newest_first` must list the snapshot's ancestors.
    """
    transitions: dict[SchemaRow, TypeTransition | None] = {}
    schema_rows: dict[str, SchemaRow | None] = {}
    versions: dict[str, TracedVersion] = {}
    for commit in reversed(newest_first):
        parent_id = commit.parents[0] if commit.parents else ""
        schema_row = schema_rows[commit.id] = commit.schema or schema_rows.get(parent_id)
        if schema_row is None:
            continue
        if schema_row not in transitions:
            transitions[schema_row] = _transition_from(snapshot, schema_row, table_key)
        transition, parent = transitions[schema_row], versions.get(parent_id)
        if transition is None:
            continue
        inherited = parent.entry if parent is not None and parent.transition.old_key == transition.old_key else None
        entry = commit.tables.get(transition.old_key, inherited)
        if entry is not None:
            versions[commit.id] = TracedVersion(entry, schema_row, transition)
    return versions


def _transition_from(snapshot: Snapshot, schema_row: SchemaRow, table_key: TableKey) -> TypeTransition | None:
    current_ir = snapshot.schema.ir
    if schema_row == snapshot.schema_row:
        return find_transition(current_ir, current_ir, table_key)
    return find_transition(read_schema(snapshot.store, schema_row).ir, current_ir, table_key)
