"""Read rows of one table version: scans with a filter, batches, rows by row id.

Filters are Arrow expressions, never text. A missing row id yields nulls and never shifts other
rows, although Lance silently drops it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .failures import reported
from .lost_index import ask, ask_batches
from .table import Table

Ids = npt.NDArray[np.int64]

ROW_ID, ROW_ADDRESS = "_rowid", "_rowaddr"
_DENSE = 6  # when more than one row in this many is needed, a scan is faster than a take
_SMALL = 2_000
# Lance reads ahead of a slow consumer up to this many bytes; its default is two gigabytes. A single
# batch may be larger.
_READ_AHEAD = 64 << 20


def scan(
    table: Table,
    columns: Sequence[str],
    where: Any = None,
    *,
    row_ids: bool = False,
    addresses: bool = False,
    limit: int | None = None,
) -> pa.Table:
    """Return the rows that pass the filter, in storage order, on request with ids and addresses."""

    def read(indexed: bool) -> pa.Table:
        found: pa.Table = table.dataset.to_table(
            columns=list(columns),
            filter=where,
            limit=limit,
            with_row_id=row_ids,
            with_row_address=addresses,
            use_scalar_index=indexed,
        )
        return found

    return ask(table, where, read)


def find_rows(table: Table, column: str, values: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return rows whose `column` is one of `values`, with `_rowid` and `_rowaddr`."""
    import pyarrow.compute as pc

    where = pc.field(column).isin(pa.array(values, table.schema.field(column).type))
    return scan(table, columns, where, row_ids=True, addresses=True)


def batches(
    table: Table,
    columns: Sequence[str],
    where: Any = None,
    *,
    row_ids: bool = False,
    size: int = 65_536,
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches; memory holds only a few batches."""

    def read(indexed: bool) -> Iterator[pa.RecordBatch]:
        found: Iterator[pa.RecordBatch] = table.dataset.to_batches(
            columns=list(columns),
            filter=where,
            with_row_id=row_ids,
            batch_size=size,
            batch_readahead=2,
            fragment_readahead=1,
            io_buffer_size=_READ_AHEAD,
            use_scalar_index=indexed,
        )
        return found

    return ask_batches(table, where, read)


def count(table: Table) -> int:
    """Return how many rows a table has."""
    return int(table.dataset.count_rows())


def take(table: Table, row_ids: Ids, columns: Sequence[str]) -> pa.Table:
    """Return rows by row id, in that order, repeated as given; missing ones (-1) are null."""
    wanted = distinct(row_ids)
    found = _fetch(table, wanted, columns)
    present = row_id_array(found)
    return aligned(found.select(list(columns)), present, row_ids)


def row_id_array(found: pa.Table) -> Ids:
    """Return the row ids of a scan as signed integers."""
    ids: Ids = found[ROW_ID].to_numpy().astype(np.int64, copy=False)
    return ids


def distinct(row_ids: Ids) -> Ids:
    """Return each row id once, in ascending order, without -1.

    >>> distinct(np.array([7, -1, 2, 7])).tolist()
    [2, 7]
    """
    if len(row_ids) > _SMALL and int(row_ids.max()) < _DENSE * len(row_ids):
        seen = np.zeros(int(row_ids.max()) + 2, np.bool_)  # the last slot is for -1
        seen[row_ids] = True
        return np.flatnonzero(seen[:-1])
    found = np.unique(row_ids)
    return found[found >= 0]


def _fetch(table: Table, wanted: Ids, columns: Sequence[str]) -> pa.Table:
    """Return rows in any order, with `_rowid`; more rows than requested if that is faster."""
    if len(wanted) == 0:
        empty = pa.schema([table.schema.field(name) for name in columns])
        return empty.append(pa.field(ROW_ID, pa.uint64())).empty_table()
    if len(wanted) > _SMALL and len(wanted) * _DENSE > count(table):
        return scan(table, columns, row_ids=True)
    with reported("none"):
        found: pa.Table = table.dataset._take_rows(
            pa.array(wanted.view(np.uint64)), columns=[*columns, ROW_ID]
        )
    return found


def aligned(found: pa.Table, present: Ids, asked: Ids) -> pa.Table:
    """Return rows in the order requested; `fetched_row_ids` are the row ids of `fetched_rows`."""
    if len(present) == len(asked) and bool((present == asked).all()):
        return found
    if len(present) == 0:
        empty = [pa.nulls(len(asked), one.type) for one in found.schema]
        return pa.table(empty, schema=pa.schema([f.with_nullable(True) for f in found.schema]))
    position = _positions(present, asked)
    missing = position < 0
    indices = pa.array(position, mask=missing if bool(missing.any()) else None)
    return found.take(indices)


def _positions(present: Ids, asked: Ids) -> Ids:
    """Return where each id is in `fetched_row_ids`, or -1."""
    if len(asked) == 0:
        return asked
    top = max(int(present.max()), int(asked.max()))
    if top < _DENSE * (len(present) + len(asked)) + _SMALL:
        where = np.full(top + 2, -1, np.int64)  # the last slot is for -1
        where[present] = np.arange(len(present))
        return where[asked]
    order = np.argsort(present, kind="stable")
    place = np.searchsorted(present[order], asked)
    place[place == len(order)] = 0
    position = order[place]
    return np.where(present[position] == asked, position, -1)
