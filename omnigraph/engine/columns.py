"""Columns that are asked for again and again, in memory: by row id, as codes where values repeat.

Owns which columns are worth it: one is loaded when doing without has cost as much as loading it.
Columns belong to one version of a table. Nothing here is needed for an answer.
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

_CALL = 20_000  # a call to storage costs as much as loading so many rows,
_ROW = 40  # and each row of it as much as loading so many
_SORT = 2  # sorting ids costs as much as loading them so many times
_WIDEST = 256 << 20  # bytes of one column
_SPARSE = 4  # row ids may exceed rows so many times
_REPEATING = 8  # codes are used when values stand in so many rows on average
_SAMPLE = 256  # rows that tell how wide a column is
_MEETING = 8192  # rows that tell whether values repeat,
_APART = 200  # or one in so many: enough for values of eight rows each to meet
_NEVER = 1 << 60  # what was found not to be worth it is not tried again


@dataclass(frozen=True, slots=True, eq=False)
class HotColumn:
    """One column of a table version by row id.

    With `codes`, the value of row r is `values[codes[r]]`, and the last value is null; else it is
    `values[r]`. A row that is not there is null.
    """

    values: pa.Array
    codes: npt.NDArray[Any] | None = None

    def take(self, rows: Ids) -> pa.Array:
        """The values of rows; null for null."""
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
        """Where among the values those of the rows are; only with codes."""
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
        """Bytes of all arrays."""
        return int(self.values.nbytes) + (self.codes.nbytes if self.codes is not None else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The ids of a table version in order, their rows, and the place of each row."""

    ids: pa.Array
    rows: Ids
    places: Ids

    def find(self, text: str) -> int | None:
        """The row of an id."""
        at = int(pc.search_sorted(self.ids, pa.scalar(text, self.ids.type)).as_py())
        if at < len(self.ids) and self.ids[at].as_py() == text:
            return int(self.rows[at])
        return None

    def order(self, rows: Ids) -> Ids:
        """Numbers in the order of the ids of rows; null comes first."""
        return np.where(rows < 0, 0, self.places[rows] + 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.ids.nbytes) + self.rows.nbytes + self.places.nbytes


def _all_of(rows: Ids, count: int) -> bool:
    """Whether these are all rows of a column, in order."""
    return len(rows) == count and count > 0 and rows[0] == 0 and bool((rows[1:] > rows[:-1]).all())


def hot_columns(
    context: Context, key: str, names: Sequence[str], rows: int
) -> list[HotColumn] | None:
    """Columns in memory, if all of them are worth it for a caller who needs so many rows."""
    found: list[HotColumn] = []
    for name in names:
        load = partial(_load, context, key, name)
        one = _worth(context, key, ("column", name), _CALL + _ROW * rows, load)
        if one is not None:  # the others are not asked less for it
            found.append(one)
    return found if len(found) == len(names) else None


def hot_rows(context: Context, key: str) -> Ids | None:
    """All row ids of a table in order, if they are worth keeping."""
    cost = context.count(key) // 2
    found: Ids | None = _worth(context, key, ("rows",), cost, partial(_load_rows, context, key))
    return found


def hot_ranks(context: Context, key: str, rows: int) -> Ranks | None:
    """The order of ids, if it is worth it for a caller who looks so many of them up."""
    cost = (_CALL + _ROW * rows) // _SORT
    found: Ranks | None = _worth(context, key, ("ranks",), cost, partial(_rank, context, key))
    return found


def kept(context: Context, key: str, kind: tuple[str, ...], make: Callable[[], Any]) -> Any:
    """What is made of the columns of a table version, once."""
    return _worth(context, key, kind, context.count(key), make)


def _worth(
    context: Context, key: str, kind: tuple[str, ...], cost: int, make: Callable[[], Any]
) -> Any:
    """What is in memory; it is made when doing without has cost as much as making it."""
    place = (*context.place(key), *kind)
    caches = caches_of(context)
    held = caches.memory.get(place)
    if held is not None:
        return held
    if caches.spend(place, cost) < context.count(key):
        return None
    context.meter.enter()  # before a lock that others may wait for
    made = caches.memory.make(place, make, lambda one: int(one.nbytes))
    if made is None:
        caches.spend(place, -_NEVER)
    return made


def _is_flat(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _load(context: Context, key: str, name: str) -> HotColumn | None:
    """A column by row id; None when it is too wide, or row ids lie too far apart."""
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
    """Codes for values that repeat; all others as they are."""
    if pa.types.is_floating(values.type) or _seldom_repeat(values):
        return HotColumn(values)  # two zeros would become one
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if len(distinct) * _REPEATING > len(values):
        return HotColumn(values)
    kind = np.int16 if len(distinct) < 1 << 15 else np.int32
    codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False).astype(kind)
    return HotColumn(pa.concat_arrays([distinct, pa.nulls(1, distinct.type)]), codes)


def _seldom_repeat(values: pa.Array) -> bool:
    """Whether a few rows, taken evenly, are nearly all different: codes cost most where they fail.

    Values that stand in several rows each would meet among so many only if they are few.
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
