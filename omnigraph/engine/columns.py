"""Frequently used columns in memory, addressed by row id; repeated values are dictionary codes.

Owns the decision which columns to load: one is loaded once its misses have cost as much as loading
it. Columns belong to one table version. Must never be needed for a correct result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.scan import row_id_array, scan

from .context import Context
from .neighbours import caches_of
from .rows import NULL, Ids

_CALL = 20_000  # cost of a storage call, in rows loaded
_ROW = 40  # cost of each row of such a call, in rows loaded
_SORT = 2  # cost of sorting ids, as a multiple of loading them
_WIDEST = 256 << 20  # maximum bytes of one column
_SPARSE = 4  # maximum ratio of the row id range to the number of rows
_REPEATING = 8  # dictionary codes are used if values repeat at least this often on average
_SAMPLE = 256  # rows sampled to estimate the width of a column
_MEETING = 8192  # rows sampled to detect repetition,
_APART = 200  # or one row in this many: enough for values with eight rows each to collide
_NEVER = 1 << 60  # a column that proved unsuitable is never tried again


@dataclass(frozen=True, slots=True, eq=False)
class HotColumn:
    """One column of a table version, addressed by row id.

    With `codes`, the value of row r is `values[codes[r]]` and the last value is null; otherwise it
    is `values[r]`. A missing row is null.
    """

    values: pa.Array
    codes: npt.NDArray[Any] | None = None

    def take(self, rows: Ids) -> pa.Array:
        """Return the values of rows; null for a null row id."""
        if len(rows) == 1:
            return self._one(int(rows[0]))
        if self.codes is not None:
            return self.values.take(pa.array(self.index(rows)))
        if _all_of(rows, len(self.values)):
            return self.values
        missing = rows < 0
        if missing.any():
            return self.values.take(pa.array(np.where(missing, 0, rows), mask=missing))
        return self.values.take(pa.array(rows))

    def _one(self, row: int) -> pa.Array:
        if row < 0 or row >= (len(self.values) if self.codes is None else len(self.codes)):
            return pa.nulls(1, self.values.type)
        return self.values.slice(row if self.codes is None else int(self.codes[row]), 1)

    def index(self, rows: Ids) -> Ids:
        """Return the position of each row's value in `values`; only valid with codes."""
        codes = self.codes if self.codes is not None else np.empty(0, np.int64)
        if len(codes) == 0:
            return np.full(len(rows), len(self.values) - 1, np.int64)
        if _all_of(rows, len(codes)):
            return codes.astype(np.int64)
        found = codes[rows].astype(np.int64)
        found[rows < 0] = len(self.values) - 1
        return found

    @property
    def nbytes(self) -> int:
        """Total bytes of all arrays."""
        return int(self.values.nbytes) + (self.codes.nbytes if self.codes is not None else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The sorted ids of a table version, their rows, and the rank of each row."""

    ids: pa.Array
    rows: Ids
    places: Ids

    def find(self, text: str) -> int | None:
        """Return the row of an id, or None."""
        at = int(pc.search_sorted(self.ids, pa.scalar(text, self.ids.type)).as_py())
        if at < len(self.ids) and self.ids[at].as_py() == text:
            return int(self.rows[at])
        return None

    def order(self, rows: Ids) -> Ids:
        """Return numbers in the order of the rows' ids; null comes first."""
        return np.where(rows < 0, 0, self.places[rows] + 1)

    @property
    def nbytes(self) -> int:
        """Total bytes of all arrays."""
        return int(self.ids.nbytes) + self.rows.nbytes + self.places.nbytes


def _all_of(rows: Ids, count: int) -> bool:
    """Return whether these are all rows of a column, in order."""
    return len(rows) == count and count > 0 and rows[0] == 0 and bool((rows[1:] > rows[:-1]).all())


def hot_columns(
    context: Context, key: str, names: Sequence[str], rows: int
) -> list[HotColumn] | None:
    """Return columns from memory if all are worthwhile for a caller that needs so many rows."""
    found: list[HotColumn] = []
    for name in names:
        load = partial(_load, context, key, name)
        one = _worth(context, key, ("column", name), _CALL + _ROW * rows, load)
        if one is not None:  # no early exit: the others must accrue miss costs too
            found.append(one)
    return found if len(found) == len(names) else None


def hot_rows(context: Context, key: str) -> Ids | None:
    """Return all row ids of a table in order, if they are worth caching."""
    cost = context.count(key) // 2
    found: Ids | None = _worth(context, key, ("rows",), cost, partial(_load_rows, context, key))
    return found


def hot_ranks(context: Context, key: str, rows: int) -> Ranks | None:
    """Return the order of ids, if worthwhile for a caller that looks up so many of them."""
    cost = (_CALL + _ROW * rows) // _SORT
    found: Ranks | None = _worth(context, key, ("ranks",), cost, partial(_rank, context, key))
    return found


def kept(context: Context, key: str, kind: tuple[str, ...], make: Callable[[], Any]) -> Any:
    """Return something derived once from the columns of a table version."""
    return _worth(context, key, kind, context.count(key), make)


def _worth(
    context: Context, key: str, kind: tuple[str, ...], cost: int, make: Callable[[], Any]
) -> Any:
    """Return a cached entry; load it once its misses have cost as much as loading it."""
    place = (*context.place(key), *kind)
    caches = caches_of(context)
    held = caches.memory.get(place)
    if held is not None:
        return held
    if caches.spend(place, cost) < context.count(key):
        return None
    context.meter.enter()  # before taking a lock that other queries may wait for
    made = caches.memory.make(place, make, lambda one: int(one.nbytes))
    if made is None:
        caches.spend(place, -_NEVER)
    return made


def _is_flat(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _load(context: Context, key: str, name: str) -> HotColumn | None:
    """Load a column by row id; None if it is too wide or its row ids are too sparse."""
    table, count = context.table(key), context.count(key)
    if not _is_flat(table.schema.field(name).type):
        return None
    sample = scan(table, [name], limit=_SAMPLE)
    if sample.num_rows and sample.nbytes / sample.num_rows * count > _WIDEST:
        return None
    found = scan(table, [name], row_ids=True)
    rows, values = row_id_array(found), found[name].combine_chunks()
    highest = int(rows.max()) + 1 if len(rows) else 0
    if highest > _SPARSE * len(rows) + _SAMPLE:
        return None
    if highest != len(rows) or not (rows == np.arange(highest)).all():
        place = np.full(highest, NULL, np.int64)
        place[rows] = np.arange(len(rows))
        values = values.take(pa.array(place, mask=place < 0))
    return _coded(values)


def _coded(values: pa.Array) -> HotColumn:
    """Dictionary-encode values that repeat; keep all others as they are."""
    if pa.types.is_floating(values.type) or _seldom_repeat(values):
        return HotColumn(values)  # encoding floats would merge 0.0 and -0.0
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if len(distinct) * _REPEATING > len(values):
        return HotColumn(values)
    kind = np.int16 if len(distinct) < 1 << 15 else np.int32
    codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False).astype(kind)
    return HotColumn(pa.concat_arrays([distinct, pa.nulls(1, distinct.type)]), codes)


def _seldom_repeat(values: pa.Array) -> bool:
    """Return whether an even sample of rows is nearly all distinct, so that encoding would not pay.

    Encoding costs most where it is useless. Values with several rows each collide in a sample of
    this size only if there are few of them.
    """
    step = min(len(values) // _MEETING, _APART)
    if step < _REPEATING:
        return False
    some = values.take(pa.array(np.arange(0, len(values), step)))
    return bool(pc.count_distinct(some, mode="all").as_py() > len(some) * 0.98)


def _load_rows(context: Context, key: str) -> Ids:
    return np.sort(row_id_array(scan(context.table(key), [], row_ids=True)))


def _rank(context: Context, key: str) -> Ranks | None:
    found = scan(context.table(key), ["id"], row_ids=True)
    if found.nbytes > _WIDEST or not found.num_rows:
        return None
    rows, ids = row_id_array(found), found["id"].combine_chunks()
    if not pc.all(pc.less(ids[:-1], ids[1:])).as_py():
        order = pc.sort_indices(ids).to_numpy()
        rows, ids = rows[order], ids.take(pa.array(order))
    if int(rows.max()) + 1 > _SPARSE * len(rows) + _SAMPLE:
        return None
    places = np.full(int(rows.max()) + 1, NULL, np.int64)
    places[rows] = np.arange(len(rows))
    return Ranks(ids, rows, places)
