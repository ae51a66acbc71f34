"""The recursive merge base of a criss-cross history: several common ancestors, merged in memory.

The bases are merged pairwise, in order of commit id and with the granularity of the merge. Each pair uses its own merge
base. An entity is uncertain if the bases disagree on it, or if it has a base value that the merged schema cannot
express. An uncertain entity has no base value, so any difference between the sides becomes a conflict.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.commit import Commit
from omnigraph.history.diff import match_rows_by_id, snapshot_at
from omnigraph.history.matched_types import find_transition
from omnigraph.history.merge_bases import merge_bases
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.missing_files import explain_missing_files
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.storage.arrow import table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find
from omnigraph.storage.value_equality import same_rows
from omnigraph.values.table_key import TableKey

from .filled_values import FillChanges, align_filled_values
from .fitting_rows import FittingRows, convert_fitting_rows
from .table_merge import Granularity, TableSides, changed_ids

_NO_TABLE = TableKey("")  # the table key for rows that were merged in memory
_BaseRows = tuple[pa.Table, frozenset[str]]  # (rows, ids whose base value is uncertain)


class ResultType(NamedTuple):
    """The schema of the merged rows, and the facts needed to compare rows from different states.

    `base_columns` are the properties in the merged schema of the bases, by their merged names. `dropped_columns`
    are the properties that each side has dropped from the type, and `fill_changes` are the values that each side has
    filled in. In both tuples, our side comes first.
    """

    ir: SchemaIR
    base_columns: frozenset[str] = frozenset()
    dropped_columns: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    fill_changes: tuple[FillChanges, FillChanges] = ({}, {})


def sides_from_recursive_base(
    merge_inputs: MergeInputs,
    first_base_sides: TableSides,
    granularity: Granularity,
    result_type: ResultType | None = None,
) -> TableSides:
    """Return both sides' changes to a table relative to the merge of all bases instead of the first base.

    `result_type` must be set if the sides have different schemas. A side's rows then keep the base's values for
    properties that the side has dropped.
    """
    result_type = result_type or ResultType(merge_inputs.target_snapshot.schema.ir)
    entity_ids = pa.concat_arrays([changed_ids(first_base_sides.ours), changed_ids(first_base_sides.theirs)]).unique()
    table_key = first_base_sides.table_key
    our_rows, their_rows = (
        find_rows(snapshot, result_type.ir, table_key, {"id": entity_ids})
        for snapshot in (merge_inputs.target_snapshot, merge_inputs.source_snapshot)
    )
    entity_ids = _find_differing_ids(entity_ids, our_rows, their_rows)
    our_rows = _rows_with_ids(our_rows, entity_ids)
    their_rows = _rows_with_ids(their_rows, entity_ids)
    base_ids = tuple(snapshot.commit_id for snapshot in merge_inputs.base_snapshots)
    base_table = _BaseTable(merge_inputs, result_type.ir, table_key, entity_ids, granularity, result_type.base_columns)
    base_rows, uncertain_ids = base_table.merged_rows(base_ids)
    base_rows = _without_ids(base_rows, uncertain_ids)
    schema, (dropped_by_us, dropped_by_them) = our_rows.schema, result_type.dropped_columns
    our_rows = copy_columns(our_rows, base_rows, dropped_by_us)
    their_rows = copy_columns(their_rows, base_rows, dropped_by_them)
    our_rows, their_rows = (
        align_filled_values(rows, base_rows["id"].combine_chunks(), fill_changes)
        for rows, fill_changes in zip((our_rows, their_rows), result_type.fill_changes, strict=True)
    )
    return TableSides(
        table_key,
        match_rows_by_id(table_key, base_rows, our_rows, schema),
        match_rows_by_id(table_key, base_rows, their_rows, schema),
        granularity,
        uncertain_ids,
    )


def merged_base_rows(
    merge_inputs: MergeInputs, result_type: ResultType, table_key: TableKey, entity_ids: pa.Array
) -> pa.Table:
    """Return the given entities from the merge of all bases, with the columns of the merged schema.

    Uncertain entities are omitted.
    """
    base_ids = tuple(snapshot.commit_id for snapshot in merge_inputs.base_snapshots)
    base_table = _BaseTable(merge_inputs, result_type.ir, table_key, entity_ids, "property", result_type.base_columns)
    return _without_ids(*base_table.merged_rows(base_ids))


@dataclass(frozen=True, slots=True)
class _BaseTable:
    """Selected entities of one type in the bases of a merge, read with the columns that the type has in `ir`.

    If a base has dropped one of the `base_columns`, the column's values count as unchanged in that base.
    """

    merge_inputs: MergeInputs
    ir: SchemaIR
    table_key: TableKey
    entity_ids: pa.Array
    granularity: Granularity
    base_columns: frozenset[str] = frozenset()

    def merged_rows(self, commit_ids: tuple[str, ...]) -> _BaseRows:
        """Return the selected entities' rows in the merge of the given commits, and the ids of uncertain entities."""
        merged_rows, uncertain_ids = self._rows_at(commit_ids[0])
        ancestors = self._ancestors_of(commit_ids[0])
        for commit_id in commit_ids[1:]:
            commit_ancestors = self._ancestors_of(commit_id)
            base_rows, uncertain_in_base = self.merged_rows(merge_bases(ancestors, commit_ancestors))
            commit_rows, misfit_ids = self._rows_at(commit_id)
            if commit_id == commit_ids[1]:
                merged_rows = _keep_values(merged_rows, base_rows, self._dropped_at(commit_ids[0]))
            commit_rows = _keep_values(commit_rows, base_rows, self._dropped_at(commit_id))
            merged_rows, clashing_ids = _merge_rows(
                base_rows, merged_rows, commit_rows, uncertain_in_base, self.granularity
            )
            uncertain_ids |= clashing_ids | misfit_ids
            ancestors = {**ancestors, **commit_ancestors}
        return merged_rows, uncertain_ids

    def _rows_at(self, commit_id: str) -> _BaseRows:
        """Return the entities' rows at a commit, and the ids of omitted rows, which the schema cannot express."""
        target = self.merge_inputs.target_snapshot
        snapshot = snapshot_at(target, target.log, commit_id)
        rows, misfit_ids = find_fitting_rows(snapshot, self.ir, self.table_key, {"id": self.entity_ids})
        return rows, frozenset(misfit_ids.to_pylist())

    def _dropped_at(self, commit_id: str) -> frozenset[str]:
        """Return the properties of the merged base that a commit does not have."""
        if not self.base_columns:
            return frozenset()
        target = self.merge_inputs.target_snapshot
        snapshot = snapshot_at(target, target.log, commit_id)
        transition = find_transition(snapshot.schema.ir, self.ir, self.table_key)
        return frozenset() if transition is None else self.base_columns.difference(transition.old_property_names)

    def _ancestors_of(self, commit_id: str) -> dict[str, Commit]:
        return self.merge_inputs.target_snapshot.log.ancestors(commit_id)


def _merge_rows(
    base_rows: pa.Table,
    first_rows: pa.Table,
    second_rows: pa.Table,
    uncertain_ids: frozenset[str],
    granularity: Granularity,
) -> _BaseRows:
    """Merge two sets of rows relative to a base. An entity that the sets changed differently is uncertain."""
    schema = first_rows.schema
    sides = TableSides(
        _NO_TABLE,
        match_rows_by_id(_NO_TABLE, base_rows, first_rows, schema),
        match_rows_by_id(_NO_TABLE, base_rows, second_rows, schema),
        granularity,
    )
    inserted_rows, updated_rows, deleted_ids = sides.changes_to_take()
    touched_ids = pa.concat_arrays([updated_rows["id"].combine_chunks(), deleted_ids])
    untouched_rows = first_rows.filter(pc.invert(pc.is_in(first_rows["id"], value_set=touched_ids)))
    differing_ids = frozenset(
        _find_differing_ids(_ids_of_both(first_rows, second_rows), first_rows, second_rows).to_pylist()
    )
    clashing_ids = frozenset(sides.contested_entities) | (uncertain_ids & differing_ids)
    return pa.concat_tables([untouched_rows, inserted_rows, updated_rows]), clashing_ids


def find_rows(snapshot: Snapshot, ir: SchemaIR, table_key: TableKey, condition: Mapping[str, pa.Array]) -> pa.Table:
    """Return a snapshot's entities of one type, converted to the columns that the type has in the given schema."""
    return find_fitting_rows(snapshot, ir, table_key, condition).rows


def find_fitting_rows(
    snapshot: Snapshot, ir: SchemaIR, table_key: TableKey, condition: Mapping[str, pa.Array]
) -> FittingRows:
    """Return a snapshot's entities of one type that the given schema can express, and the ids of all others."""
    transition = find_transition(snapshot.schema.ir, ir, table_key)
    if transition is None or transition.old_key not in snapshot.tables:
        empty_rows = row_schema(table_schema(ir, type_for_key(ir.catalog, table_key))).empty_table()
        return FittingRows(empty_rows, pa.array([], pa.string()))
    table = snapshot.table(transition.old_key)
    with explain_missing_files(snapshot):
        rows = find(table, condition, table.schema.names)
    return convert_fitting_rows(transition, rows)


def _find_differing_ids(entity_ids: pa.Array, first_rows: pa.Table, second_rows: pa.Table) -> pa.Array:
    """Return the ids whose rows differ between the two tables."""
    position_in_second = pc.index_in(first_rows["id"].combine_chunks(), value_set=second_rows["id"].combine_chunks())
    common_rows = first_rows.filter(pc.is_valid(position_in_second))
    equal_ids = common_rows.filter(pa.array(same_rows(common_rows, second_rows.take(position_in_second.drop_null()))))[
        "id"
    ]
    in_neither = pc.invert(pc.is_in(entity_ids, value_set=_ids_of_both(first_rows, second_rows)))
    is_same = pc.or_(in_neither, pc.is_in(entity_ids, value_set=equal_ids.combine_chunks()))
    return entity_ids.filter(pc.invert(is_same))


def _rows_with_ids(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=ids))


def _without_ids(rows: pa.Table, excluded_ids: frozenset[str]) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["id"], pa.array(sorted(excluded_ids), pa.string()))))


def _ids_of_both(first_rows: pa.Table, second_rows: pa.Table) -> pa.Array:
    return pa.concat_arrays([first_rows["id"].combine_chunks(), second_rows["id"].combine_chunks()]).unique()


def copy_columns(rows: pa.Table, source_rows: pa.Table, column_names: Iterable[str]) -> pa.Table:
    """Copy columns from `source_rows`, matching entities by id. Entities missing from `source_rows` get nulls."""
    positions = pc.index_in(rows["id"].combine_chunks(), value_set=source_rows["id"].combine_chunks())
    for column_name in column_names:
        column_index = rows.schema.get_field_index(column_name)
        copied = source_rows[column_name].combine_chunks().take(positions)
        rows = rows.set_column(column_index, rows.schema.field(column_index), copied)
    return rows


def _keep_values(rows: pa.Table, base_rows: pa.Table, column_names: Iterable[str]) -> pa.Table:
    """Return the rows with the base's values in the given columns, for the entities that the base contains."""
    is_in_base = pc.is_in(rows["id"], value_set=base_rows["id"].combine_chunks())
    base_values = copy_columns(rows, base_rows, column_names)
    for column_name in column_names:
        column_index = rows.schema.get_field_index(column_name)
        values = pc.if_else(is_in_base, base_values[column_name], rows[column_name])
        rows = rows.set_column(column_index, rows.schema.field(column_index), values)
    return rows
