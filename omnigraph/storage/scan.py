"""Reading rows of one table version: scans with a filter, batches, rows by row id.

Filters are Arrow expressions, never text. A row id that is not there leaves nulls and never shifts
the others: Lance drops it silently.
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
_DENSE = 6  # when more than one row in this many is wanted, a scan is quicker than a take
_SMALL = 2_000
# Lance reads ahead of a slow reader until this is full; its own choice is two gigabytes. A batch
# that is larger than this still comes.
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
    """The rows that pass `where`, in storage order, with `_rowid` and `_rowaddr` if asked for."""

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
    """Rows whose `column` is one of `values`, with `_rowid` and `_rowaddr`."""
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
    """The same rows a batch at a time; memory stays that of a few batches."""

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
    """How many rows a table has."""
    return int(table.dataset.count_rows())


def take(table: Table, row_ids: Ids, columns: Sequence[str]) -> pa.Table:
    """Rows by row id, in that order, each as often as it is named; absent ones (-1) are null."""
    wanted = distinct(row_ids)
    found = _fetch(table, wanted, columns)
    present = row_id_array(found)
    return aligned(found.select(list(columns)), present, row_ids)


def row_id_array(found: pa.Table) -> Ids:
    """The row ids of a scan as numbers."""
    ids: Ids = found[ROW_ID].to_numpy().astype(np.int64, copy=False)
    return ids


def distinct(row_ids: Ids) -> Ids:
    """Each row id once, in order, without nulls.

    >>> distinct(np.array([7, -1, 2, 7])).tolist()
    [2, 7]
    """
    if len(row_ids) > _SMALL and int(row_ids.max()) < _DENSE * len(row_ids):
        seen = np.zeros(int(row_ids.max()) + 2, np.bool_)  # the last place is that of -1
        seen[row_ids] = True
        return np.flatnonzero(seen[:-1])
    found = np.unique(row_ids)
    return found[found >= 0]


def _fetch(table: Table, wanted: Ids, columns: Sequence[str]) -> pa.Table:
    """Rows in any order, with `_rowid`; more than wanted when that is quicker."""
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
    """Rows put in the order asked for; `present` are the row ids of `found`, in its order."""
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
    """Where each id stands in `present`, or -1."""
    if len(asked) == 0:
        return asked
    top = max(int(present.max()), int(asked.max()))
    if top < _DENSE * (len(present) + len(asked)) + _SMALL:
        where = np.full(top + 2, -1, np.int64)  # the last place is that of -1
        where[present] = np.arange(len(present))
        return where[asked]
    order = np.argsort(present, kind="stable")
    place = np.searchsorted(present[order], asked)
    place[place == len(order)] = 0
    position = order[place]
    return np.where(present[position] == asked, position, -1)
