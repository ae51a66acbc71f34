"""Convert both sides' rows to the merged schema's columns.

This module converts changes and lookups, so that the rules and the planner work with a single schema. It writes
nothing. `publish_merge` changes the stored tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmnigraphError, SchemaMismatch
from omnigraph.evolve.data_check import checked_types
from omnigraph.history.diff import content_differs, diff_table, match_rows_by_id, read_differing_rows
from omnigraph.history.entities import TableChanges
from omnigraph.history.matched_types import TypeTransition, find_transition
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.missing_files import explain_missing_files
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.lookup import ROW_ID_COLUMNS, Lookup, RecordingLookup, empty_answer
from omnigraph.storage.arrow import table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.column_identity import contains_hidden_values, property_identity
from omnigraph.storage.find_rows import find, read_rows
from omnigraph.storage.value_equality import same_rows
from omnigraph.values.table_key import TableKey

from .discarded_changes import DiscardedChange
from .filled_values import FillChanges, align_filled_values
from .fitting_rows import convert_fitting_rows
from .merged_schema import MergedSchema
from .recursive_base import ResultType, copy_columns, merged_base_rows, sides_from_recursive_base
from .table_merge import Granularity, TableSides

TypeState = tuple[Snapshot, TypeTransition]  # (state, transition that converts its rows)
# A function that receives the property that cannot hold a value and returns the error.
Refuse = Callable[[Snapshot, TypeTransition, str], OmnigraphError]


@dataclass(frozen=True)
class AlignedTables:
    """The tables in a merge whose sides have different schemas, with the merged schema's keys and columns."""

    merge_inputs: MergeInputs
    merged: MergedSchema

    @property
    def catalog(self) -> Catalog:
        """The types in the merged schema."""
        return self.merged.catalog

    def lookup(self, target_lookup: RecordingLookup) -> Lookup:
        """Return a lookup in the target's tables that accepts and returns the merged schema's columns."""
        return AlignedLookup(target_lookup, self.merged)

    def changed_tables(self) -> list[TableKey]:
        """Return the merged types that the source changed, or that are missing or incomplete in the target."""
        merged, source = self.merged, self.merge_inputs.source_snapshot
        return sorted(
            table_key
            for table_key, transition in merged.their_transitions.items()
            if table_key not in merged.our_transitions
            or table_key in merged.restored_columns
            or any(content_differs(base, source, transition.old_key) for base in self.merge_inputs.base_snapshots)
        )

    def newly_checked_tables(self) -> list[TableKey]:
        """Return the merged types with rules that the source added and that the target's rows may violate."""
        migration = self.merged.migration
        return [] if migration is None else [transition.new_key for transition in checked_types(migration)]

    def compare_sides(self, table_key: TableKey, granularity: Granularity) -> TableSides:
        """Return the changes that each side made to a type."""
        merge_inputs, merged = self.merge_inputs, self.merged
        base, target, source = merge_inputs.base_snapshot, merge_inputs.target_snapshot, merge_inputs.source_snapshot
        our_transition = merged.our_transitions.get(table_key)
        their_transition = merged.their_transitions.get(table_key)
        if our_transition is None:  # the target does not have the type, so every row in the source is an insert
            their_changes = _aligned_changes(None, (source, their_transition), merged.ir, table_key)
            return TableSides(table_key, _no_changes(merged.ir, table_key), their_changes, granularity)
        fill_changes = merged.fill_changes(table_key)
        their_changes = _aligned_changes(base, (source, their_transition), merged.ir, table_key, fill_changes[1])
        our_changes = _aligned_changes(base, (target, our_transition), merged.ir, table_key, fill_changes[0])
        first_base_sides = TableSides(table_key, our_changes, their_changes, granularity)
        if their_transition is None or not self._needs_recursive_base(table_key):
            return first_base_sides
        result_type = ResultType(
            merged.ir, merged.base_columns(table_key), merged.dropped_columns(table_key), fill_changes
        )
        return sides_from_recursive_base(merge_inputs, first_base_sides, granularity, result_type)

    def _needs_recursive_base(self, table_key: TableKey) -> bool:
        """Return whether the bases' content differs, or may include values that do not fit the merged schema."""
        contents = set()
        for base_snapshot in self.merge_inputs.base_snapshots:
            transition = find_transition(base_snapshot.schema.ir, self.merged.ir, table_key)
            if transition is not None and transition.narrowed_names:
                return True
            entry = None if transition is None else base_snapshot.tables.get(transition.old_key)
            contents.add((entry and entry.content_id, base_snapshot.schema_row))
        return len(contents) > 1

    def restored_rows(self, table_key: TableKey) -> pa.Table:
        """Return the target's rows that the merge itself changes.

        In these rows, the merge restores the values of dropped properties or replaces filled-in values.
        """
        merged = self.merged
        restored_columns = merged.restored_columns.get(table_key, frozenset())
        fill_changes, _ = merged.fill_changes(table_key)
        if not restored_columns and not fill_changes:
            return merged_row_schema(merged.ir, table_key).empty_table()
        our_rows = _all_rows((self.merge_inputs.target_snapshot, merged.our_transitions[table_key]))
        result_type = ResultType(merged.ir, merged.base_columns(table_key))
        base_rows = merged_base_rows(self.merge_inputs, result_type, table_key, our_rows["id"].combine_chunks())
        new_rows = copy_columns(our_rows, base_rows, restored_columns)
        new_rows = align_filled_values(new_rows, base_rows["id"].combine_chunks(), fill_changes)
        return new_rows.filter(pa.array(~same_rows(our_rows, new_rows)))

    def discarded_changes(self) -> tuple[DiscardedChange, ...]:
        """Return the values that one side wrote to types or properties that are missing from the merged schema."""
        return self.merged.discarded_changes


def _all_rows(state: TypeState) -> pa.Table:
    table = state[0].table(state[1].old_key)
    return convert_rows(state, read_rows(table, table.schema.names), _misfit_error)


def aligned_target_rows(
    merge_inputs: MergeInputs, merged: MergedSchema, table_key: TableKey, entity_ids: pa.Array
) -> pa.Table:
    """Return the given entities from the target, with the merged schema's columns."""
    transition = merged.our_transitions.get(table_key)
    if transition is None:
        return merged_row_schema(merged.ir, table_key).empty_table()
    target_table = merge_inputs.target_snapshot.table(transition.old_key)
    return transition.convert(find(target_table, {"id": entity_ids}, target_table.schema.names))


def merged_row_schema(merged_ir: SchemaIR, table_key: TableKey) -> pa.Schema:
    """Return the Arrow schema of a merged type's rows."""
    return row_schema(table_schema(merged_ir, type_for_key(merged_ir.catalog, table_key)))


def _no_changes(merged_ir: SchemaIR, table_key: TableKey) -> TableChanges:
    empty_rows = merged_row_schema(merged_ir, table_key).empty_table()
    return TableChanges(table_key, empty_rows, empty_rows, empty_rows, empty_rows)


def _aligned_changes(
    base_snapshot: Snapshot | None,
    side: tuple[Snapshot, TypeTransition | None],
    merged_ir: SchemaIR,
    table_key: TableKey,
    fill_changes: FillChanges | None = None,
) -> TableChanges:
    """Return a side's changes since the base, with the merged schema's columns.

    Dropping a property that the merged schema keeps does not count as a change: the side's rows keep the base's values.
    The same holds for values that the side filled in when it added a property. A base entity with a value that does not
    fit the merged schema counts as absent from the base.
    """
    side_snapshot, transition = side
    if transition is None:
        return _no_changes(merged_ir, table_key)
    base_transition = None
    if base_snapshot is not None:
        base_transition = find_transition(base_snapshot.schema.ir, merged_ir, table_key)
    if base_snapshot is None or base_transition is None or base_transition.old_key not in base_snapshot.tables:
        new_rows = _all_rows((side_snapshot, transition))
        return match_rows_by_id(table_key, new_rows.slice(0, 0), new_rows, transition.row_schema)
    if base_snapshot.schema_row == side_snapshot.schema_row:
        return _convert_changes(diff_table(base_snapshot, side_snapshot, transition.old_key), transition)
    base, changed = (base_snapshot, base_transition), (side_snapshot, transition)
    return compare_in_schema(base, changed, _misfit_error, from_base=True, fill_changes=fill_changes)


def _misfit_error(snapshot: Snapshot, transition: TypeTransition, property_name: str) -> SchemaMismatch:
    """Return an error for a value that does not fit the type that a decision chose for the merged schema."""
    subject = f"{transition.new_type.name}.{property_name}"
    return SchemaMismatch(
        f"values on '{snapshot.branch}' do not fit {subject} in the merged schema",
        source=snapshot.branch,
        target=snapshot.branch,
        hint=(
            f"resolve the conflict over {subject} in favor of a type that can hold these values, or change the"
            " values first"
        ),
    )


def _convert_changes(changes: TableChanges, transition: TypeTransition) -> TableChanges:
    base_rows = pa.concat_tables([changes.updated_before, changes.deleted])
    new_rows = transition.convert(pa.concat_tables([changes.inserted, changes.updated_after]))
    old_rows = convert_fitting_rows(transition, base_rows).rows
    return match_rows_by_id(transition.new_key, old_rows, new_rows, transition.row_schema)


def compare_in_schema(
    old: TypeState,
    new: TypeState,
    refuse: Refuse,
    *,
    from_base: bool = False,
    only_ids: pa.Array | None = None,
    fill_changes: FillChanges | None = None,
) -> TableChanges:
    """Return the changes to a type between two states, with the columns that the type has in a third schema.

    With `from_base`, new rows keep the old values of properties that the new state does not have, and old rows that do
    not fit the third schema are omitted. `fill_changes` replaces values that the new state filled in. `refuse` returns
    the error for a value that does not fit the third schema.
    """
    (old_snapshot, old_transition), (new_snapshot, new_transition) = old, new
    with explain_missing_files(old_snapshot), explain_missing_files(new_snapshot):
        old_table = old_snapshot.table(old_transition.old_key)
        new_table = new_snapshot.table(new_transition.old_key)
        relevant = {property_identity(field) for field in table_schema(new_transition.new_ir, new_transition.new_type)}
        compare_all_rows = contains_hidden_values(old_table, new_table, relevant) or contains_hidden_values(
            new_table, old_table, relevant
        )
        old_rows, new_rows = read_differing_rows(
            new_snapshot.store, old_table, new_table, compare_all_rows=compare_all_rows
        )
    if only_ids is not None:
        old_rows, new_rows = (rows.filter(pc.is_in(rows["id"], value_set=only_ids)) for rows in (old_rows, new_rows))
    new_rows = convert_rows(new, new_rows, refuse)
    old_rows = convert_fitting_rows(old_transition, old_rows).rows if from_base else convert_rows(old, old_rows, refuse)
    if from_base:
        dropped = old_transition.old_property_names.keys() - new_transition.old_property_names.keys()
        new_rows = copy_columns(new_rows, old_rows, dropped)
    new_rows = align_filled_values(new_rows, old_rows["id"].combine_chunks(), fill_changes or {})
    return match_rows_by_id(new_transition.new_key, old_rows, new_rows, new_transition.row_schema)


def convert_rows(state: TypeState, rows: pa.Table, refuse: Refuse) -> pa.Table:
    """Convert a state's rows to the columns of the new schema in its transition."""
    snapshot, transition = state
    property_name = transition.find_obstacle(rows)
    if property_name is not None:
        raise refuse(snapshot, transition, property_name)
    return transition.convert(rows)


@dataclass(slots=True)
class AlignedLookup:
    """A lookup in the target's tables that accepts and returns the merged schema's columns."""

    lookup: RecordingLookup
    merged: MergedSchema

    def find(
        self,
        table_key: TableKey,
        values_by_column: Mapping[str, pa.Array],
        columns: Sequence[str],
        *,
        with_row_ids: bool = False,
    ) -> pa.Table:
        """Return the target's rows whose merged columns have one of the given values."""
        names = list(dict.fromkeys([*columns, *values_by_column]))
        transition = self.merged.our_transitions.get(table_key)
        if transition is None:
            return empty_answer(merged_row_schema(self.merged.ir, table_key), columns, with_row_ids=with_row_ids)
        stored = {column.field.name: column for column in transition.target_columns}
        stored_types = {field.name: field.type for field in table_schema(transition.old_ir, transition.old_type)}
        direct_values = {
            source: values
            for name, values in values_by_column.items()
            if (source := stored[name].source) is not None and stored_types[source] == stored[name].field.type
        }
        source_names = [source for name in names if (source := stored[name].source) is not None]
        if direct_values:
            rows = self.lookup.find(transition.old_key, direct_values, source_names, with_row_ids=with_row_ids)
        else:
            rows = self.lookup.select(transition.old_key, source_names or ["id"], None)
        aligned = pa.table({name: stored[name].values_for(rows) for name in names})
        for name in ROW_ID_COLUMNS if with_row_ids else ():
            aligned = aligned.append_column(name, rows[name])
        for name, values in values_by_column.items():
            if stored[name].source not in direct_values:
                aligned = aligned.filter(pc.is_in(aligned[name], value_set=values.cast(aligned[name].type)))
        return aligned.select([*columns, *(ROW_ID_COLUMNS if with_row_ids else ())])

    def scan(self, table_key: TableKey, columns: Sequence[str]) -> pa.Table:
        """Return the given merged columns for all of the target's rows."""
        transition = self.merged.our_transitions.get(table_key)
        if transition is None:
            return empty_answer(merged_row_schema(self.merged.ir, table_key), columns)
        stored = {column.field.name: column for column in transition.target_columns}
        source_names = [source for name in columns if (source := stored[name].source) is not None]
        rows = self.lookup.scan(transition.old_key, source_names or ["id"])
        return pa.table({name: stored[name].values_for(rows) for name in columns})
