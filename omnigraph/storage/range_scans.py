"""Read a large table in ranges of rows, so that a slow consumer needs little memory.

As soon as a scan reaches a fragment, Lance reads the fragment's pages, regardless of the read-ahead options, and keeps
them until the consumer has received their rows. A read of a range loads only what the range needs. This module never
reads a small table in ranges, because a scan takes fewer requests.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from .batch_sizes import FIRST_BATCH_ROWS, BlockSize, read_in_blocks, take_in_blocks
from .bounded_scans import scan_table_batches
from .failures import as_storage_errors
from .index_fallback import scan_batches_with_fallback
from .scan import BOUNDED_READ_AHEAD, ROW_ID, scan_batches
from .table import Table

LARGE_TABLE_BYTES = 32 << 20
BATCH_BYTES = 8 << 20  # the target for a batch of a small table
# The targets for the values in a range. Reading and encoding a range takes about forty times this much memory, because
# the allocator keeps freed memory for each thread. In an object store, every range takes a round trip.
_LOCAL_RANGE_BYTES = 512 << 10
_REMOTE_RANGE_BYTES = 4 << 20
_FIRST_RANGE_ROWS = 2  # the size of the values is not known yet
_EXAMINED_FRAGMENTS = 256
_MAX_JOINED_BATCHES = 256  # the consumer checks its time limit and for cancellation whenever it receives rows
RowBatches = Generator[pa.RecordBatch, None, int]


def stream_rows(
    table: Table, columns: Sequence[str], filter_expression: Any = None, *, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that match a filter in batches, in storage order and with row ids.

    The memory needed depends neither on the size of the table nor on the speed of the consumer. The exception is a
    filter on long texts, for which the filtered column is read as in any other scan.
    """
    if not columns or not _is_large(table):
        return scan_batches(
            table, columns, filter_expression, row_ids=True, batch_rows=batch_rows, batch_bytes=BATCH_BYTES
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
    """Yield all rows, in ranges as long as they are wide, and from a single scan as long as they are narrow."""
    row_count, next_row = table.dataset.count_rows(), 0
    wide_row_bytes = LARGE_TABLE_BYTES / max(row_count, 1)
    while next_row < row_count:
        next_row = yield from _read_wide_rows(table, columns, next_row, row_count, batch_rows, wide_row_bytes)
        next_row = yield from _read_narrow_rows(table, columns, next_row, batch_rows, wide_row_bytes)


def _read_wide_rows(
    table: Table, columns: Sequence[str], first_row: int, row_count: int, batch_rows: int, wide_row_bytes: float
) -> RowBatches:
    """Yield rows in ranges until they are no longer wide, and return the position of the next row."""

    def read_range(position: int, length: int) -> pa.Table:
        scanner = table.dataset.scanner(
            columns=list(columns), with_row_id=True, offset=first_row + position, limit=length, batch_readahead=1
        )
        rows: pa.Table = scanner.to_table()
        return rows

    read_rows, read_bytes = 0, 0
    for rows in read_in_blocks(row_count - first_row, read_range, _first_range(table)):
        yield from rows.to_batches(max_chunksize=batch_rows)
        read_rows, read_bytes = read_rows + rows.num_rows, read_bytes + rows.nbytes
        if read_rows >= FIRST_BATCH_ROWS and read_bytes <= wide_row_bytes * read_rows:
            break
    return first_row + read_rows


def _read_narrow_rows(
    table: Table, columns: Sequence[str], first_row: int, batch_rows: int, wide_row_bytes: float
) -> RowBatches:
    """Yield rows from a single scan, which is faster, until they become wide, and return the next row's position."""
    batches = scan_table_batches(
        table,
        columns,
        batch_rows=batch_rows,
        with_row_id=True,
        offset=first_row,
        batch_size_bytes=BATCH_BYTES,
        **BOUNDED_READ_AHEAD,
    )
    read_rows, read_bytes = 0, 0
    for batch in batches:
        yield batch
        read_rows, read_bytes = read_rows + batch.num_rows, read_bytes + batch.nbytes
        if read_rows >= FIRST_BATCH_ROWS and read_bytes > wide_row_bytes * read_rows:
            break
    return first_row + read_rows


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
    """Yield the row ids in arrays that are large enough for a block, or that contain the ids of many batches."""
    pending_ids: list[pa.Array] = []
    pending_rows = 0
    for batch in id_batches:
        pending_ids.append(batch[ROW_ID])
        pending_rows += batch.num_rows
        if pending_rows >= block_size.rows or len(pending_ids) >= _MAX_JOINED_BATCHES:
            yield pa.concat_arrays(pending_ids)
            pending_ids, pending_rows = [], 0
    if pending_ids:
        yield pa.concat_arrays(pending_ids)


def _first_range(table: Table) -> BlockSize:
    is_remote = "://" in table.dataset.uri
    return BlockSize(_FIRST_RANGE_ROWS, target_bytes=_REMOTE_RANGE_BYTES if is_remote else _LOCAL_RANGE_BYTES)
