"""Read the complete rows that differ between two table versions, avoiding full scans where possible."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .batch_sizes import BlockSize
from .blobs import is_blob_field, row_schema
from .bounded_scans import scan_table_batches, take_from_fragment
from .deletion_list import RowOffsets
from .deletions import deleted_offsets
from .failures import as_storage_errors
from .find_rows import read_batches, read_rows, replace_described_blobs, take_with_blobs
from .fragment_rows import StoredRowIds, fragment_row_ids, read_fragments, read_row_ids
from .pending_blobs import running_write
from .row_ids import row_ids_at
from .scan import ROW_ID
from .store import Store
from .table import Table
from .value_equality import same_rows
from .version_difference import FragmentDifference, FragmentPair
from .wide_rows import take_positions

RowPositions = npt.NDArray[np.int64]


_CHUNK_ROWS = 8_192  # number of rows from each version that are compared per batch


_SCAN_RATIO = 6  # if more than 1/6 of the rows are needed, a scan is faster than a take


def differing_rows(
    store: Store, difference: FragmentDifference, *, same_columns: bool = True
) -> tuple[pa.Table, pa.Table]:
    """Return the complete rows that may differ between the versions, as a pair (old, new) with blobs as bytes.

    If two fragments differ only in their deleted rows, only the rows that exist in one version but not in the other are
    read. If `same_columns` is true and many rows moved to other files, these rows are first compared in chunks, so that
    the unchanged rows are never all in memory at once.
    """
    with as_storage_errors("none"):
        old_ids = read_row_ids(difference.old_table, difference.removed)
        new_ids = read_row_ids(difference.new_table, difference.added)
        if same_columns and len(np.intersect1d(old_ids, new_ids, assume_unique=True)) > _CHUNK_ROWS:
            moved_ids = _find_moved_rows(difference)
            old_ids, new_ids = (np.setdiff1d(row_ids, moved_ids, assume_unique=True) for row_ids in (old_ids, new_ids))
        old_parts = [_take_from_fragments(difference.old_table, difference.removed, old_ids)]
        new_parts = [_take_from_fragments(difference.new_table, difference.added, new_ids)]
        for pair in difference.redeleted:
            old_part, new_part = _redeleted_rows(store, difference, pair)
            old_parts.append(old_part)
            new_parts.append(new_part)
        return _concatenate_parts(old_parts), _concatenate_parts(new_parts)


def _find_moved_rows(difference: FragmentDifference) -> StoredRowIds:
    """Return the row ids of rows that moved to other files but are otherwise unchanged.

    The old rows are scanned, and the new rows are taken by position. Maintenance preserves row order, so rows that are
    adjacent in the old files are usually adjacent in the new files.
    """
    ids_by_fragment = [fragment_row_ids(difference.new_table, fragment) for fragment in difference.added]
    new_ids = np.concatenate(ids_by_fragment)
    fragment_sizes = [len(fragment_ids) for fragment_ids in ids_by_fragment]
    id_order, fragment_starts = np.argsort(new_ids), np.cumsum([0, *fragment_sizes])
    unchanged_ids = []
    for old_batch in _scan_fragments(difference.old_table, difference.removed):
        old_ids = old_batch[ROW_ID].to_numpy()
        positions = np.minimum(np.searchsorted(new_ids, old_ids, sorter=id_order), len(new_ids) - 1)
        is_moved = new_ids[id_order[positions]] == old_ids
        moved_batch = old_batch if is_moved.all() else old_batch.filter(pa.array(is_moved))
        old_rows = pa.Table.from_batches([moved_batch]).select(difference.old_table.schema.names)
        new_rows = _take_added_rows(difference, id_order[positions[is_moved]], fragment_starts, old_ids[is_moved])
        unchanged_ids.append(old_ids[is_moved][same_rows(old_rows, new_rows)])
    return np.concatenate(unchanged_ids)


def _take_added_rows(
    difference: FragmentDifference, positions: RowPositions, fragment_starts: RowPositions, row_ids: StoredRowIds
) -> pa.Table:
    """Return the rows at these positions, in the given order. Positions are counted across all added fragments."""
    table = difference.new_table
    if any(is_blob_field(column) for column in table.schema):
        return take_with_blobs(table, pa.array(row_ids))
    sort_order = np.argsort(positions, kind="stable")
    sorted_positions, row_parts = positions[sort_order], []
    for number, fragment in enumerate(difference.added):
        first, end = np.searchsorted(sorted_positions, fragment_starts[number : number + 2])
        if end > first:
            local_positions = (sorted_positions[first:end] - fragment_starts[number]).tolist()
            row_parts.append(take_from_fragment(table, fragment, local_positions, table.schema.names))
    rows = pa.concat_tables(row_parts) if row_parts else row_schema(table.schema).empty_table()
    if bool((sort_order[1:] > sort_order[:-1]).all()):
        return rows
    inverse_order = np.empty(len(sort_order), np.int64)
    inverse_order[sort_order] = np.arange(len(sort_order))
    return take_positions(rows, pa.array(inverse_order))


def _scan_fragments(table: Table, fragments: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in some fragments, with `_rowid`. During a write, large blobs are replaced by placeholders."""
    is_written = running_write() is not None and any(is_blob_field(column) for column in table.schema)
    batches = scan_table_batches(
        table,
        table.schema.names,
        batch_rows=_CHUNK_ROWS,
        fragments=list(fragments),
        with_row_id=True,
        with_row_address=is_written,
        blob_handling="blobs_descriptions" if is_written else "all_binary",
        batch_readahead=2,
        fragment_readahead=1,
    )
    for batch in batches:
        if is_written:
            yield from replace_described_blobs(table, pa.Table.from_batches([batch])).combine_chunks().to_batches()
        else:
            yield batch


def _redeleted_rows(store: Store, difference: FragmentDifference, pair: FragmentPair) -> tuple[pa.Table, pa.Table]:
    """Return the rows in a fragment that exist in only one of the two versions, as (old, new)."""
    old_offsets = deleted_offsets(store, difference.old_table, pair.old_fragment)
    new_offsets = deleted_offsets(store, difference.new_table, pair.new_fragment)
    if old_offsets is None or new_offsets is None:
        old_ids = fragment_row_ids(difference.old_table, pair.old_fragment)
        new_ids = fragment_row_ids(difference.new_table, pair.new_fragment)
        removed_ids, added_ids = np.setdiff1d(old_ids, new_ids), np.setdiff1d(new_ids, old_ids)
        return rows_by_id(difference.old_table, removed_ids), rows_by_id(difference.new_table, added_ids)
    removed_offsets = np.setdiff1d(new_offsets, old_offsets)
    added_offsets = np.setdiff1d(old_offsets, new_offsets)
    return _rows_at_offsets(difference.old_table, pair.old_fragment, removed_offsets, old_offsets), _rows_at_offsets(
        difference.new_table, pair.new_fragment, added_offsets, new_offsets
    )


def one_sided_rows(store: Store, old_form: tuple[Table, int], new_form: tuple[Table, int]) -> tuple[pa.Table, pa.Table]:
    """Return the `id` and `_rowid` of the rows that exist in only one of two states of a fragment.

    Each state is specified by a table version and the id of the fragment in that version. If possible, no other rows
    are read.
    """
    fragment_forms = [(table, table.dataset.get_fragment(fragment_id)) for table, fragment_id in (old_form, new_form)]
    with as_storage_errors("none"):
        deleted = [deleted_offsets(store, *form) for form in fragment_forms]
        if deleted[0] is None or deleted[1] is None:
            old_rows, new_rows = (read_fragments(table, [fragment], ["id"]) for table, fragment in fragment_forms)
            old_ids, new_ids = old_rows[ROW_ID].to_numpy(), new_rows[ROW_ID].to_numpy()
            return (
                old_rows.filter(pa.array(~np.isin(old_ids, new_ids))),
                new_rows.filter(pa.array(~np.isin(new_ids, old_ids))),
            )
        removed_offsets = np.setdiff1d(deleted[1], deleted[0])
        added_offsets = np.setdiff1d(deleted[0], deleted[1])
        return _ids_at_offsets(fragment_forms[0][1], removed_offsets, deleted[0]), _ids_at_offsets(
            fragment_forms[1][1], added_offsets, deleted[1]
        )


def _ids_at_offsets(fragment: Any, offsets: RowOffsets, skipped_offsets: RowOffsets) -> pa.Table:
    """Return the ids and row ids of the rows at these offsets. `skipped_offsets` are the offsets of deleted rows."""
    live_positions = (offsets - np.searchsorted(skipped_offsets, offsets)).tolist()
    id_rows = pa.table(fragment.take(live_positions, columns=["id"])) if live_positions else _EMPTY_IDS
    row_ids = row_ids_at(fragment, offsets.tolist()) if live_positions else []
    return id_rows.select(["id"]).append_column(ROW_ID, pa.array(row_ids, pa.uint64()))


_EMPTY_IDS = pa.table({"id": pa.array([], pa.string())})


def _rows_at_offsets(table: Table, fragment: Any, offsets: RowOffsets, skipped_offsets: RowOffsets) -> pa.Table:
    """Return the rows at these offsets.

    `skipped_offsets` are the offsets of deleted rows, which Lance does not count as positions.
    """
    if not len(offsets) or any(is_blob_field(column) for column in table.schema):
        row_ids = row_ids_at(fragment, offsets.tolist()) if len(offsets) else []
        return take_with_blobs(table, pa.array(row_ids, pa.uint64()))
    live_positions = offsets - np.searchsorted(skipped_offsets, offsets)
    return take_from_fragment(table, fragment, live_positions.tolist(), table.schema.names)


def _take_from_fragments(table: Table, fragments: Sequence[Any], row_ids: StoredRowIds) -> pa.Table:
    """Return the rows of these fragments with the given row ids, using a scan unless only a few rows are needed."""
    column_names = table.schema.names
    if not len(row_ids):
        return take_with_blobs(table, pa.array(row_ids))
    if len(row_ids) * _SCAN_RATIO < sum(fragment.physical_rows for fragment in fragments):
        return take_with_blobs(table, pa.array(row_ids))
    row_id_set = pa.array(row_ids)
    matching_batches = [_filter_by_row_id(batch, row_id_set) for batch in _scan_fragments(table, fragments)]
    if not matching_batches:
        return row_schema(table.schema).empty_table()
    return pa.Table.from_batches(matching_batches).select(column_names)


def _filter_by_row_id(batch: pa.RecordBatch, row_id_set: pa.Array) -> pa.RecordBatch:
    """Return the rows with the given row ids, without copying them if all rows match."""
    is_wanted = pc.is_in(batch[ROW_ID], value_set=row_id_set)
    return batch if pc.all(is_wanted).as_py() else batch.filter(is_wanted)


def _concatenate_parts(row_parts: Sequence[pa.Table]) -> pa.Table:
    full_schema = row_parts[0].schema.remove_metadata()
    bare_schema = pa.schema([pa.field(column.name, column.type) for column in full_schema])
    return pa.concat_tables([part.cast(bare_schema) for part in row_parts])


def are_rows_equal(
    old_table: Table, old_ids: StoredRowIds, new_table: Table, new_ids: StoredRowIds
) -> npt.NDArray[np.bool_]:
    """Return a mask of the row pairs that are equal. Both tables must have the same columns."""
    is_equal = np.ones(len(old_ids), np.bool_)
    chunk_start, chunk_size = 0, BlockSize(max_rows=_CHUNK_ROWS)
    while chunk_start < len(old_ids):
        chunk = slice(chunk_start, chunk_start + chunk_size.rows)
        old_rows = take_with_blobs(old_table, pa.array(old_ids[chunk]))
        new_rows = take_with_blobs(new_table, pa.array(new_ids[chunk]))
        is_equal[chunk] = same_rows(old_rows, new_rows)
        chunk_start = chunk.stop
        chunk_size.adapt(old_rows.num_rows, old_rows.nbytes + new_rows.nbytes)
    return is_equal


def rows_by_id(table: Table, row_ids: StoredRowIds) -> pa.Table:
    """Return the complete rows with these row ids, in arbitrary order and with blobs as bytes."""
    if len(row_ids) * _SCAN_RATIO < table.dataset.count_rows():
        return take_with_blobs(table, pa.array(row_ids))
    column_names, row_id_set = table.schema.names, pa.array(row_ids)
    matching_parts = [read_rows(table, column_names, pc.scalar(False), with_row_ids=True)]
    matching_parts += (
        pa.table(batch.filter(pc.is_in(batch[ROW_ID], value_set=row_id_set)))
        for batch in read_batches(table, column_names, with_row_ids=True)
    )
    return pa.concat_tables(matching_parts).select(column_names)
