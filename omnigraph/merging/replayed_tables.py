"""The tables in a replay across schema changes: two past states, converted to the branch's schema.

The branch's schema does not change. A replay fails if it would write rows that cannot be converted to this schema. The
error identifies the responsible schema change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import SchemaMismatch
from omnigraph.history.diff import content_differs, find_old_entry, match_rows_by_id
from omnigraph.history.entities import TableChanges
from omnigraph.history.matched_types import TypeTransition, dropped_types, type_transitions
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.schema_boundary import describe_obstacle, describe_type_change
from omnigraph.history.schemas import schemas_agree
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.merge import SchemaMerge
from omnigraph.records.cached_property import cached_property
from omnigraph.storage.arrow import table_key as key_of_type
from omnigraph.storage.find_rows import read_rows
from omnigraph.values.table_key import TableKey

from .merged_schema import MergedSchema
from .replayed_sides import OptionalState, ReplayedSides
from .schema_alignment import AlignedTables, compare_in_schema, convert_rows, merged_row_schema
from .table_merge import Granularity, TableSides

_Transitions = Mapping[TableKey, TypeTransition]
_REFUSAL_HINT = (
    "list the changes with `omnigraph diff`, and apply or undo them with a mutation; or create a branch from a"
    " commit before the schema change"
)


def align_replay(merge_inputs: MergeInputs) -> "ReplayedTables | None":
    """Return a replay's tables in the target's schema, or None if all states already have that schema.

    Raises `SchemaMismatch` if the replay changes entities of a type that the target does not have.
    """
    target = merge_inputs.target_snapshot
    past_snapshots = (merge_inputs.base_snapshot, merge_inputs.source_snapshot)
    if all(schemas_agree(snapshot.schema, target.schema) for snapshot in past_snapshots):
        return None
    schema = target.schema
    expressed = SchemaMerge(schema.source, schema.ir, merge_inputs.source_snapshot.schema.ir)
    merged = MergedSchema(merge_inputs.base_snapshot.schema.ir, schema, target.schema_row, expressed)
    tables = ReplayedTables(merge_inputs, merged)
    tables.check_types()
    return tables


@dataclass(frozen=True)
class ReplayedTables(AlignedTables):
    """A replay's tables, with the base and the source converted to the target's schema."""

    @cached_property
    def _base_transitions(self) -> _Transitions:
        return _transitions_by_key(self.merge_inputs.base_snapshot, self.merge_inputs.target_snapshot)

    @cached_property
    def _source_transitions(self) -> _Transitions:
        return _transitions_by_key(self.merge_inputs.source_snapshot, self.merge_inputs.target_snapshot)

    def changed_tables(self) -> list[TableKey]:
        """Return the types that the replay may change, by their names in the target."""
        return sorted(
            table_key
            for table_key in {*self._base_transitions, *self._source_transitions}
            if self._may_change(table_key)
        )

    def _may_change(self, table_key: TableKey) -> bool:
        base, source = self._base_transitions.get(table_key), self._source_transitions.get(table_key)
        if base is None or source is None:
            return True
        return content_differs(self.merge_inputs.base_snapshot, self.merge_inputs.source_snapshot, source.old_key)

    def compare_sides(self, table_key: TableKey, granularity: Granularity) -> TableSides:
        """Return the changes that the target and the replayed state have made since the base."""
        merge_inputs = self.merge_inputs
        base = merge_inputs.base_snapshot, self._base_transitions.get(table_key)
        source = merge_inputs.source_snapshot, self._source_transitions.get(table_key)
        target = merge_inputs.target_snapshot, self.merged.our_transitions[table_key]
        their_changes = self._compare(table_key, base, source)
        # Entities that are not replayed may have values in the base that do not fit the target's schema.
        our_changes = self._compare(table_key, base, target, only_ids=their_changes.ids)
        return ReplayedSides(table_key, our_changes, their_changes, granularity, versions=(base, target, source))

    def _compare(
        self, table_key: TableKey, old: OptionalState, new: OptionalState, only_ids: pa.Array | None = None
    ) -> TableChanges:
        (old_snapshot, old_transition), (new_snapshot, new_transition) = old, new
        if old_transition is not None and new_transition is not None:
            old_state, new_state = (old_snapshot, old_transition), (new_snapshot, new_transition)
            return compare_in_schema(old_state, new_state, self._misfit_error, only_ids=only_ids)
        old_rows, new_rows = (self._all_rows(table_key, *state) for state in (old, new))
        return match_rows_by_id(table_key, old_rows, new_rows, merged_row_schema(self.merged.ir, table_key))

    def _all_rows(self, table_key: TableKey, snapshot: Snapshot, transition: TypeTransition | None) -> pa.Table:
        if transition is None:
            return merged_row_schema(self.merged.ir, table_key).empty_table()
        table = snapshot.table(transition.old_key)
        return convert_rows((snapshot, transition), read_rows(table, table.schema.names), self._misfit_error)

    def check_types(self) -> None:
        """Raise `SchemaMismatch` if the replay changes entities of a type that the target does not have."""
        base, source = self.merge_inputs.base_snapshot, self.merge_inputs.source_snapshot
        target = self.merge_inputs.target_snapshot
        for snapshot, other in ((source, base), (base, source)):
            for dropped_type in dropped_types(snapshot.schema.ir, target.schema.ir):
                table_key = key_of_type(dropped_type)
                entries = (snapshot.tables.get(table_key), find_old_entry(other, snapshot, table_key))
                has_rows = any(entry is not None and entry.row_count for entry in entries)
                if has_rows and content_differs(other, snapshot, table_key):
                    change = describe_type_change(target, snapshot, table_key)
                    raise self._refusal(f"type '{table_key.type_name}' no longer exists in this schema{change}")

    def _misfit_error(self, snapshot: Snapshot, transition: TypeTransition, property_name: str) -> SchemaMismatch:
        target = self.merge_inputs.target_snapshot
        return self._refusal(describe_obstacle(snapshot, target, transition, property_name))

    def _refusal(self, reason: str) -> SchemaMismatch:
        source, target = self.merge_inputs.source_snapshot.branch, self.merge_inputs.target_snapshot.branch
        message = f"the changes cannot be converted to the schema of '{target}': {reason}"
        return SchemaMismatch(message, source=source, target=target, hint=_REFUSAL_HINT)


def _transitions_by_key(snapshot: Snapshot, target: Snapshot) -> dict[TableKey, TypeTransition]:
    return {
        transition.new_key: transition
        for transition in type_transitions(snapshot.schema.ir, target.schema.ir)
        if transition.old_key in snapshot.tables
    }
