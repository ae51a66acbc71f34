"""Convert the rows of both sides to the columns of the merged schema.

This module converts changes and lookups, so the rules and the planner work with a single schema.
This module writes nothing; `publish_merge` changes the stored tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.evolve.matched_types import TypeTransition
from omnigraph.history.diff import content_differs, diff_table, diff_tables, match_rows_by_id
from omnigraph.history.entities import TableChanges
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.defaults import backfill_values
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.lookup import ROW_ID_COLUMNS, RecordingLookup, empty_answer
from omnigraph.storage.arrow import table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find
from omnigraph.values.table_key import TableKey

from .merged_schema import MergedSchema
from .table_merge import Granularity, TableSides


def aligned_table_keys(merge_inputs: MergeInputs, merged: MergedSchema) -> list[TableKey]:
    """Return the merged types whose rows the source changed, or that the target does not have."""
    return sorted(
        table_key
        for table_key, transition in merged.their_transitions.items()
        if table_key not in merged.our_transitions
        or content_differs(merge_inputs.base_snapshot, merge_inputs.source_snapshot, transition.old_key)
    )


def compare_aligned_sides(
    merge_inputs: MergeInputs, merged: MergedSchema, table_key: TableKey, granularity: Granularity
) -> TableSides:
    """Return the changes that both sides made to a type, in the columns of the merged schema."""
    arrow_schema = merged_row_schema(merged.ir, table_key)
    our_transition = merged.our_transitions.get(table_key)
    their_transition = merged.their_transitions.get(table_key)
    our_changes = _aligned_changes(
        merge_inputs.base_snapshot, merge_inputs.target_snapshot, table_key, our_transition, arrow_schema
    )
    # For a type that the target does not have, every row of the source is an insert.
    base_snapshot = merge_inputs.base_snapshot if our_transition is not None else None
    their_changes = _aligned_changes(
        base_snapshot, merge_inputs.source_snapshot, table_key, their_transition, arrow_schema
    )
    return TableSides(table_key, our_changes, their_changes, granularity)


def aligned_target_rows(
    merge_inputs: MergeInputs, merged: MergedSchema, table_key: TableKey, entity_ids: pa.Array
) -> pa.Table:
    """Return entities of the target, in the columns of the merged schema."""
    arrow_schema = merged_row_schema(merged.ir, table_key)
    transition = merged.our_transitions.get(table_key)
    if transition is None:
        return arrow_schema.empty_table()
    target_table = merge_inputs.target_snapshot.table(transition.old_key)
    return align_rows(transition, find(target_table, {"id": entity_ids}, target_table.schema.names), arrow_schema)


def merged_row_schema(merged_ir: SchemaIR, table_key: TableKey) -> pa.Schema:
    """Return the Arrow schema that a type's rows have in changes."""
    return row_schema(table_schema(merged_ir, type_for_key(merged_ir.catalog, table_key)))


def _aligned_changes(
    base_snapshot: Snapshot | None,
    side_snapshot: Snapshot,
    table_key: TableKey,
    transition: TypeTransition | None,
    arrow_schema: pa.Schema,
) -> TableChanges:
    empty_rows = arrow_schema.empty_table()
    if transition is None:
        return TableChanges(table_key, empty_rows, empty_rows, empty_rows, empty_rows)
    side_key = transition.old_key
    if base_snapshot is None:
        changes = diff_tables(side_snapshot.store, side_key, None, side_snapshot.table(side_key))
    else:
        defaults = backfill_values(transition.old_type)
        changes = diff_table(base_snapshot, side_snapshot, side_key, column_defaults=defaults)
    old_rows, new_rows = (
        pa.concat_tables([align_rows(transition, rows, arrow_schema) for rows in row_tables])
        for row_tables in ((changes.updated_before, changes.deleted), (changes.inserted, changes.updated_after))
    )
    return match_rows_by_id(table_key, old_rows, new_rows, arrow_schema)


def align_rows(transition: TypeTransition, rows: pa.Table, arrow_schema: pa.Schema) -> pa.Table:
    """Return rows of a side's type with the columns of the merged type."""
    columns = [column.values_for(rows) for column in transition.target_columns]
    return pa.table(columns, names=[column.field.name for column in transition.target_columns]).cast(arrow_schema)


@dataclass(slots=True)
class AlignedLookup:
    """A lookup in the target's tables by columns of the merged schema; it also returns these columns."""

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
        """Return columns of the merged schema for all rows of the target."""
        transition = self.merged.our_transitions.get(table_key)
        if transition is None:
            return empty_answer(merged_row_schema(self.merged.ir, table_key), columns)
        stored = {column.field.name: column for column in transition.target_columns}
        source_names = [source for name in columns if (source := stored[name].source) is not None]
        rows = self.lookup.scan(transition.old_key, source_names or ["id"])
        return pa.table({name: stored[name].values_for(rows) for name in columns})
