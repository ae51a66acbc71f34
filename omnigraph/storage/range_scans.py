"""Read a large table in ranges of rows, so that a slow consumer needs little memory.

As soon as a scan reaches a fragment, Lance reads the fragment's pages, regardless of the read-ahead options, and keeps
them until the consumer has received their rows. A read of a range loads only what the range needs. This module never
reads a small table in ranges, because a scan takes fewer requests.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from .batch_sizes import FIRST_BATCH_ROWS, BlockSize, read_in_blocks, take_in_blocks
from .bounded_scans import scan_table_batches
from .failures import as_storage_errors
from .index_fallback import scan_batches_with_fallback
from .scan import ROW_ID, scan_batches
from .table import Table

LARGE_TABLE_BYTES = 32 << 20
_BATCH_BYTES = 8 << 20  # the target for a batch of a small table
# The targets for the values in a range. Reading and encoding a range takes about forty times this much memory, because
# the allocator keeps freed memory for each thread. In an object store, every range takes a round trip.
_LOCAL_RANGE_BYTES = 512 << 10
_REMOTE_RANGE_BYTES = 4 << 20
_FIRST_RANGE_ROWS = 2  # the size of the values is not known yet
_EXAMINED_FRAGMENTS = 256


def stream_rows(
    table: Table, columns: Sequence[str], filter_expression: Any = None, *, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that match a filter in batches, in storage order and with row ids.

    The memory needed depends neither on the size of the table nor on the speed of the consumer. The exception is a
    filter on long texts, for which the filtered column is read as in any other scan.
    """
    if not columns or not _is_large(table):
        return scan_batches(
            table, columns, filter_expression, row_ids=True, batch_rows=batch_rows, batch_bytes=_BATCH_BYTES
        )
    if filter_expression is not None:
        return _take_matching_rows(table, columns, filter_expression, batch_rows)
    return scan_batches_with_fallback(table, None, lambda _: _read_ranges(table, columns, batch_rows))


def _is_large(table: Table) -> bool:
    """Return whether the data files are large, judging by the sizes of the first fragments."""
    fragments = table.dataset.get_fragments()
    examined_fragments = fragments[:_EXAMINED_FRAGMENTS]
    data_files = chain.from_iterable(fragment.metadata.files for fragment in examined_fragments)
    examined_bytes = sum(data_file.file_size_bytes or 0 for data_file in data_files)
    return examined_bytes * len(fragments) > LARGE_TABLE_BYTES * len(examined_fragments)


def _read_ranges(table: Table, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    def read_range(first_row: int, row_count: int) -> pa.Table:
        scanner = table.dataset.scanner(
            columns=list(columns), with_row_id=True, offset=first_row, limit=row_count, batch_readahead=1
        )
        rows: pa.Table = scanner.to_table()
        return rows

    row_count, read_rows, read_bytes = table.dataset.count_rows(), 0, 0
    for rows in read_in_blocks(row_count, read_range, _first_range(table)):
        yield from rows.to_batches(max_chunksize=batch_rows)
        read_rows, read_bytes = read_rows + rows.num_rows, read_bytes + rows.nbytes
        if read_rows >= FIRST_BATCH_ROWS and read_bytes * row_count <= LARGE_TABLE_BYTES * read_rows:
            yield from _scan_remaining_rows(table, columns, read_rows, batch_rows)
            return


def _scan_remaining_rows(
    table: Table, columns: Sequence[str], first_row: int, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows from `first_row` on with a single scan, which is faster for narrow columns of a large table."""
    return scan_table_batches(
        table,
        columns,
        batch_rows=batch_rows,
        with_row_id=True,
        offset=first_row,
        batch_size_bytes=_BATCH_BYTES,
        batch_readahead=2,
        fragment_readahead=1,
    )


def _take_matching_rows(
    table: Table, columns: Sequence[str], filter_expression: Any, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows. The scan for the filter returns only row ids, and the values are read by row id."""

    def take(row_ids: pa.Array) -> pa.Table:
        rows: pa.Table = table.dataset._take_rows(row_ids, columns=[*columns, ROW_ID])
        return rows

    block_size, id_batches = _first_range(table), scan_batches(table, [], filter_expression, row_ids=True)
    with as_storage_errors("none"):
        for row_ids in _join_short_batches(id_batches, block_size):
            for rows in take_in_blocks(row_ids, take, block_size):
                yield from rows.to_batches(max_chunksize=batch_rows)


def _join_short_batches(id_batches: Iterator[pa.RecordBatch], block_size: BlockSize) -> Iterator[pa.Array]:
    """Yield the row ids in arrays that are large enough for a block, except for the last array."""
    pending_ids: list[pa.Array] = []
    for batch in id_batches:
        pending_ids.append(batch[ROW_ID])
        if sum(map(len, pending_ids)) >= block_size.rows:
            yield pa.concat_arrays(pending_ids)
            pending_ids = []
    if pending_ids:
        yield pa.concat_arrays(pending_ids)


def _first_range(table: Table) -> BlockSize:
    is_remote = "://" in table.dataset.uri
    return BlockSize(_FIRST_RANGE_ROWS, target_bytes=_REMOTE_RANGE_BYTES if is_remote else _LOCAL_RANGE_BYTES)
