"""Read rows from one table version with filtered scans, in batches, or by row id.

Filters are Arrow expressions, never strings. Lance silently skips missing row ids. This module instead returns a row of
nulls for each missing row id, so that the other rows keep their positions.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .bounded_scans import scan_table, scan_table_batches, take_stored_rows
from .failures import as_storage_errors
from .index_fallback import scan_batches_with_fallback, scan_with_fallback
from .table import Table
from .wide_rows import take_positions

RowIdArray = npt.NDArray[np.int64]

ROW_ID, ROW_ADDRESS = "_rowid", "_rowaddr"
_DENSE_RATIO = 6  # if more than 1/6 of the rows are needed, a scan is faster than a take
_SMALL_COUNT = 2_000
# Limits on what Lance reads ahead of a slow consumer, which is up to two gigabytes by default. A single batch may be
# larger.
BOUNDED_READ_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1, "io_buffer_size": 64 << 20}


def scan(
    table: Table,
    columns: Sequence[str],
    filter_expression: Any = None,
    *,
    row_ids: bool = False,
    addresses: bool = False,
    limit: int | None = None,
) -> pa.Table:
    """Return the rows that match a filter, in storage order, optionally with row ids and addresses."""

    def read_table(use_index: bool) -> pa.Table:
        return scan_table(
            table,
            columns,
            filter=filter_expression,
            limit=limit,
            with_row_id=row_ids,
            with_row_address=addresses,
            use_scalar_index=use_index,
        )

    return scan_with_fallback(table, filter_expression, read_table)


def find_rows(table: Table, column: str, values: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return the rows whose `column` is one of `values`, with `_rowid` and `_rowaddr`."""
    import pyarrow.compute as pc

    filter_expression = pc.field(column).isin(pa.array(values, table.schema.field(column).type))
    return scan(table, columns, filter_expression, row_ids=True, addresses=True)


def scan_batches(
    table: Table,
    columns: Sequence[str],
    filter_expression: Any = None,
    *,
    row_ids: bool = False,
    batch_rows: int = 65_536,
    batch_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that `scan` would return, in batches. Only a few batches are in memory at a time.

    `batch_bytes` is a target for the size of the values in a batch. A single row may be larger.
    """

    def start_batches(use_index: bool) -> Iterator[pa.RecordBatch]:
        return scan_table_batches(
            table,
            columns,
            batch_rows=batch_rows,
            filter=filter_expression,
            with_row_id=row_ids,
            batch_size_bytes=batch_bytes,
            use_scalar_index=use_index,
            **BOUNDED_READ_AHEAD,
        )

    return scan_batches_with_fallback(table, filter_expression, start_batches)


def count_rows(table: Table) -> int:
    """Return the number of rows in a table."""
    return int(table.dataset.count_rows())


def take_rows(table: Table, row_ids: RowIdArray, columns: Sequence[str]) -> pa.Table:
    """Return the rows with these row ids, in the given order and including duplicates.

    A row id of -1 yields a row of nulls.
    """
    wanted_row_ids = distinct_row_ids(row_ids)
    fetched_rows = _fetch_rows(table, wanted_row_ids, columns)
    fetched_row_ids = row_id_array(fetched_rows)
    return align_rows(fetched_rows.select(list(columns)), fetched_row_ids, row_ids)


def row_id_array(scanned_rows: pa.Table) -> RowIdArray:
    """Return the row ids from a scan as signed integers."""
    row_ids: RowIdArray = scanned_rows[ROW_ID].to_numpy().astype(np.int64, copy=False)
    return row_ids


def distinct_row_ids(row_ids: RowIdArray) -> RowIdArray:
    """Return the distinct row ids in ascending order, without -1.

    >>> distinct_row_ids(np.array([7, -1, 2, 7])).tolist()
    [2, 7]
    """
    if len(row_ids) > _SMALL_COUNT and int(row_ids.max()) < _DENSE_RATIO * len(row_ids):
        is_present = np.zeros(int(row_ids.max()) + 2, np.bool_)  # the last slot is for -1
        is_present[row_ids] = True
        return np.flatnonzero(is_present[:-1])
    unique_row_ids = np.unique(row_ids)
    return unique_row_ids[unique_row_ids >= 0]


def _fetch_rows(table: Table, wanted_row_ids: RowIdArray, columns: Sequence[str]) -> pa.Table:
    """Return the rows in any order, with `_rowid`.

    If reading more rows is faster, the result also contains rows that are not wanted.
    """
    if len(wanted_row_ids) == 0:
        table_schema = table.schema  # Lance decodes this property on each access
        empty_schema = pa.schema([table_schema.field(column_name) for column_name in columns])
        return empty_schema.append(pa.field(ROW_ID, pa.uint64())).empty_table()
    if len(wanted_row_ids) > _SMALL_COUNT and len(wanted_row_ids) * _DENSE_RATIO > count_rows(table):
        return scan(table, columns, row_ids=True)
    with as_storage_errors("none"):
        return take_stored_rows(table, pa.array(wanted_row_ids.view(np.uint64)), [*columns, ROW_ID])


def align_rows(fetched_rows: pa.Table, fetched_row_ids: RowIdArray, requested_row_ids: RowIdArray) -> pa.Table:
    """Return the fetched rows in the requested order. `fetched_row_ids` are the row ids of `fetched_rows`."""
    if len(fetched_row_ids) == len(requested_row_ids) and bool((fetched_row_ids == requested_row_ids).all()):
        return fetched_rows
    if len(fetched_row_ids) == 0:
        null_columns = [pa.nulls(len(requested_row_ids), column.type) for column in fetched_rows.schema]
        return pa.table(null_columns, schema=pa.schema([column.with_nullable(True) for column in fetched_rows.schema]))
    positions = _find_positions(fetched_row_ids, requested_row_ids)
    is_missing = positions < 0
    take_indices = pa.array(positions, mask=is_missing if bool(is_missing.any()) else None)
    return take_positions(fetched_rows, take_indices)


def _find_positions(fetched_row_ids: RowIdArray, requested_row_ids: RowIdArray) -> RowIdArray:
    """Return the position of each requested id in `fetched_row_ids`, or -1 if the id is missing."""
    if len(requested_row_ids) == 0:
        return requested_row_ids
    highest_row_id = max(int(fetched_row_ids.max()), int(requested_row_ids.max()))
    if highest_row_id < _DENSE_RATIO * (len(fetched_row_ids) + len(requested_row_ids)) + _SMALL_COUNT:
        position_by_row_id = np.full(highest_row_id + 2, -1, np.int64)  # the last slot is for -1
        position_by_row_id[fetched_row_ids] = np.arange(len(fetched_row_ids))
        return position_by_row_id[requested_row_ids]
    sort_order = np.argsort(fetched_row_ids, kind="stable")
    sorted_positions = np.searchsorted(fetched_row_ids[sort_order], requested_row_ids)
    sorted_positions[sorted_positions == len(sort_order)] = 0
    positions = sort_order[sorted_positions]
    return np.where(fetched_row_ids[positions] == requested_row_ids, positions, -1)
