"""The recursive merge base of a criss-cross history, which merges several common ancestors in memory.

Bases are merged pairwise over their own bases, with the granularity of the merge, in the order of
their ids. An entity on which the bases disagree is uncertain. An uncertain entity has no base
value, so any difference between the sides becomes a conflict.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.commit import Commit
from omnigraph.history.diff import align_columns, find_old_key, match_rows_by_id, snapshot_at
from omnigraph.history.merge_bases import merge_bases
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.missing_files import explain_missing_files
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.defaults import backfill_values
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import find
from omnigraph.storage.value_equality import same_rows
from omnigraph.values.table_key import TableKey

from .table_merge import Granularity, TableSides, changed_ids

_NO_TABLE = TableKey("")  # the table key for rows that were merged in memory
_BaseRows = tuple[pa.Table, frozenset[str]]  # rows, and the ids whose base value is uncertain


def sides_from_recursive_base(
    merge_inputs: MergeInputs, first_base_sides: TableSides, granularity: Granularity
) -> TableSides:
    """Return the sides of a table relative to the merge of all bases instead of the first base."""
    entity_ids = pa.concat_arrays([changed_ids(first_base_sides.ours), changed_ids(first_base_sides.theirs)]).unique()
    table_key = first_base_sides.table_key
    our_rows, their_rows = (
        _rows_by_id(snapshot, merge_inputs.target_snapshot, table_key, entity_ids)
        for snapshot in (merge_inputs.target_snapshot, merge_inputs.source_snapshot)
    )
    entity_ids = _find_differing_ids(entity_ids, our_rows, their_rows)
    our_rows = _rows_with_ids(our_rows, entity_ids)
    their_rows = _rows_with_ids(their_rows, entity_ids)
    base_ids = tuple(snapshot.commit_id for snapshot in merge_inputs.base_snapshots)
    base_rows, uncertain_ids = _merged_base_rows(merge_inputs, base_ids, table_key, entity_ids, granularity)
    base_rows = base_rows.filter(pc.invert(pc.is_in(base_rows["id"], pa.array(sorted(uncertain_ids), pa.string()))))
    schema = our_rows.schema
    return TableSides(
        table_key,
        match_rows_by_id(table_key, base_rows, our_rows, schema),
        match_rows_by_id(table_key, base_rows, their_rows, schema),
        granularity,
        uncertain_ids,
    )


def _merged_base_rows(
    merge_inputs: MergeInputs,
    commit_ids: tuple[str, ...],
    table_key: TableKey,
    entity_ids: pa.Array,
    granularity: Granularity,
) -> _BaseRows:
    """Return the rows of entities in the merge of the given commits."""
    merged_rows = _rows_at_commit(merge_inputs, commit_ids[0], table_key, entity_ids)
    uncertain_ids: frozenset[str] = frozenset()
    ancestors = _ancestors_of(merge_inputs, commit_ids[0])
    for commit_id in commit_ids[1:]:
        commit_ancestors = _ancestors_of(merge_inputs, commit_id)
        base_rows, uncertain_in_base = _merged_base_rows(
            merge_inputs, merge_bases(ancestors, commit_ancestors), table_key, entity_ids, granularity
        )
        commit_rows = _rows_at_commit(merge_inputs, commit_id, table_key, entity_ids)
        merged_rows, clashing_ids = _merge_rows(base_rows, merged_rows, commit_rows, uncertain_in_base, granularity)
        uncertain_ids |= clashing_ids
        ancestors = {**ancestors, **commit_ancestors}
    return merged_rows, uncertain_ids


def _merge_rows(
    base_rows: pa.Table,
    first_rows: pa.Table,
    second_rows: pa.Table,
    uncertain_ids: frozenset[str],
    granularity: Granularity,
) -> _BaseRows:
    """Merge two sets of rows over a base; an entity that both sets changed differently is uncertain."""
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


def _rows_at_commit(merge_inputs: MergeInputs, commit_id: str, table_key: TableKey, entity_ids: pa.Array) -> pa.Table:
    return _rows_by_id(
        snapshot_at(merge_inputs.target_snapshot, merge_inputs.target_snapshot.log, commit_id),
        merge_inputs.target_snapshot,
        table_key,
        entity_ids,
    )


def _rows_by_id(snapshot: Snapshot, target_snapshot: Snapshot, table_key: TableKey, entity_ids: pa.Array) -> pa.Table:
    return find_rows(snapshot, target_snapshot, table_key, {"id": entity_ids})


def find_rows(
    snapshot: Snapshot, target_snapshot: Snapshot, table_key: TableKey, condition: Mapping[str, pa.Array]
) -> pa.Table:
    """Return a snapshot's entities, converted to the target's columns."""
    target_schema = target_snapshot.table(table_key).schema
    former_table_key = find_old_key(snapshot, target_snapshot, table_key)
    if former_table_key not in snapshot.tables:
        return row_schema(target_schema).empty_table()
    former_table = snapshot.table(former_table_key)
    with explain_missing_files(snapshot):
        matched_rows = find(former_table, condition, former_table.schema.names)
    initial_values = backfill_values(type_for_key(target_snapshot.schema.ir.catalog, table_key))
    return align_columns(matched_rows, former_table.schema, target_schema, initial_values).cast(
        row_schema(target_schema)
    )


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


def _ids_of_both(first_rows: pa.Table, second_rows: pa.Table) -> pa.Array:
    return pa.concat_arrays([first_rows["id"].combine_chunks(), second_rows["id"].combine_chunks()]).unique()


def _ancestors_of(merge_inputs: MergeInputs, commit_id: str) -> dict[str, Commit]:
    return merge_inputs.target_snapshot.log.ancestors(commit_id)
