"""Frequently used columns in memory, addressed by row id; repeated values are dictionary-encoded.

This module decides which columns to load: a column is loaded once its cache misses have cost as much as loading it
would have. Columns belong to one table version. The correctness of a result must never depend on which columns are
cached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.operators.rows import NULL_ROW, IntArray
from omnigraph.engine.query_caches import caches_of
from omnigraph.storage.scan import row_id_array, scan
from omnigraph.values.table_key import TableKey

_CALL_COST = 20_000  # cost of a storage call, measured in rows loaded
_ROW_COST = 40  # cost of each row of such a call, measured in rows loaded
_SORT_COST = 2  # cost of sorting ids, as a multiple of loading them
_MAX_COLUMN_BYTES = 256 << 20  # maximum size of a column in bytes
_MAX_SPARSENESS = 4  # maximum ratio of the row id range to the number of rows
_MIN_REPETITION = 8  # dictionary codes are used if values repeat at least this often on average
_WIDTH_SAMPLE_ROWS = 256  # rows sampled to estimate the width of a column
_REPETITION_SAMPLE_ROWS = 8192  # minimum number of rows sampled to detect repetition
# Samples include at least one in this many rows, so that a sample repeats some values if each occurs in eight rows.
_MAX_SAMPLE_STEP = 200
_NEVER_COST = 1 << 60  # a cost so high that an unsuitable column is never tried again


@dataclass(frozen=True, slots=True, eq=False)
class HotColumn:
    """One column of a table version, addressed by row id.

    With `codes`, the value of row r is `values[codes[r]]` and the last entry of `values` is null;
    otherwise the value is `values[r]`. The value of a missing row is null.
    """

    values: pa.Array
    codes: npt.NDArray[Any] | None = None

    def take(self, row_ids: IntArray) -> pa.Array:
        """Return the values of the given rows; a null row id yields null."""
        if len(row_ids) == 1:
            return self._take_single(int(row_ids[0]))
        if self.codes is not None:
            return self.values.take(pa.array(self.value_positions(row_ids)))
        if _covers_all_rows(row_ids, len(self.values)):
            return self.values
        is_null = row_ids < 0
        if is_null.any():
            return self.values.take(pa.array(np.where(is_null, 0, row_ids), mask=is_null))
        return self.values.take(pa.array(row_ids))

    def _take_single(self, row_id: int) -> pa.Array:
        if row_id < 0 or row_id >= (len(self.values) if self.codes is None else len(self.codes)):
            return pa.nulls(1, self.values.type)
        return self.values.slice(row_id if self.codes is None else int(self.codes[row_id]), 1)

    def value_positions(self, row_ids: IntArray) -> IntArray:
        """Return the position of each row's value in `values`; the column must have codes."""
        codes = self.codes if self.codes is not None else np.empty(0, np.int64)
        if len(codes) == 0:
            return np.full(len(row_ids), len(self.values) - 1, np.int64)
        if _covers_all_rows(row_ids, len(codes)):
            return codes.astype(np.int64)
        positions = codes[row_ids].astype(np.int64)
        positions[row_ids < 0] = len(self.values) - 1
        return positions

    @property
    def nbytes(self) -> int:
        """Total bytes of all arrays."""
        return int(self.values.nbytes) + (self.codes.nbytes if self.codes is not None else 0)


@dataclass(frozen=True, slots=True, eq=False)
class IdOrder:
    """A table version's ids in sorted order, the row of each id, and the rank of each row."""

    ids: pa.Array
    rows: IntArray
    rank_by_row: IntArray

    def find_row(self, entity_id: str) -> int | None:
        """Return the row with the given id, or None."""
        position = int(pc.search_sorted(self.ids, pa.scalar(entity_id, self.ids.type)).as_py())
        if position < len(self.ids) and self.ids[position].as_py() == entity_id:
            return int(self.rows[position])
        return None

    def order_numbers(self, row_ids: IntArray) -> IntArray:
        """Return numbers that sort like the rows' ids; null comes first."""
        return np.where(row_ids < 0, 0, self.rank_by_row[row_ids] + 1)

    @property
    def nbytes(self) -> int:
        """Total bytes of all arrays."""
        return int(self.ids.nbytes) + self.rows.nbytes + self.rank_by_row.nbytes


def _covers_all_rows(row_ids: IntArray, column_length: int) -> bool:
    """Return whether the given rows are all rows of a column, in order."""
    return (
        len(row_ids) == column_length
        and column_length > 0
        and row_ids[0] == 0
        and bool((row_ids[1:] > row_ids[:-1]).all())
    )


def hot_columns(
    context: ExecutionContext, table_key: TableKey, column_names: Sequence[str], needed_rows: int
) -> list[HotColumn] | None:
    """Return columns from memory, or None if loading them is not worthwhile for the given number of rows."""
    loaded_columns: list[HotColumn] = []
    for column_name in column_names:
        load_column = partial(_load_column, context, table_key, column_name)
        hot_column = _load_if_worthwhile(
            context, table_key, ("column", column_name), _CALL_COST + _ROW_COST * needed_rows, load_column
        )
        if hot_column is not None:  # no early exit, because the other columns must accrue miss costs as well
            loaded_columns.append(hot_column)
    return loaded_columns if len(loaded_columns) == len(column_names) else None


def hot_rows(context: ExecutionContext, table_key: TableKey) -> IntArray | None:
    """Return all row ids of a table in order, or None if caching them is not worthwhile."""
    miss_cost = context.row_count(table_key) // 2
    row_ids: IntArray | None = _load_if_worthwhile(
        context, table_key, ("rows",), miss_cost, partial(_load_row_ids, context, table_key)
    )
    return row_ids


def hot_id_order(context: ExecutionContext, table_key: TableKey, needed_rows: int) -> IdOrder | None:
    """Return the sorted ids of a table, or None if sorting is not worthwhile for the given number of lookups."""
    miss_cost = (_CALL_COST + _ROW_COST * needed_rows) // _SORT_COST
    id_order: IdOrder | None = _load_if_worthwhile(
        context, table_key, ("ranks",), miss_cost, partial(_load_id_order, context, table_key)
    )
    return id_order


def hot_derivation(
    context: ExecutionContext, table_key: TableKey, derivation_key: tuple[str, ...], derive: Callable[[], Any]
) -> Any:
    """Return a value that is derived once from the columns of a table version."""
    return _load_if_worthwhile(context, table_key, derivation_key, context.row_count(table_key), derive)


def _load_if_worthwhile(
    context: ExecutionContext,
    table_key: TableKey,
    entry_name: tuple[str, ...],
    miss_cost: int,
    load_entry: Callable[[], Any],
) -> Any:
    """Return a cached entry; load it once its cache misses have cost as much as loading it."""
    cache_key = (*context.table_identity(table_key), *entry_name)
    caches = caches_of(context)
    cached_entry = caches.memory.get(cache_key)
    if cached_entry is not None:
        return cached_entry
    if caches.add_miss_cost(cache_key, miss_cost) < context.row_count(table_key):
        return None
    context.meter.enter_gate()  # must happen before taking a lock that other queries may wait for
    new_entry = caches.memory.get_or_build(cache_key, load_entry, lambda entry: int(entry.nbytes))
    if new_entry is None:
        caches.add_miss_cost(cache_key, -_NEVER_COST)
    return new_entry


def _is_flat(data_type: pa.DataType) -> bool:
    return not (pa.types.is_nested(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _load_column(context: ExecutionContext, table_key: TableKey, column_name: str) -> HotColumn | None:
    """Load a column by row id, or return None if it is too wide or its row ids are too sparse."""
    table, row_count = context.table(table_key), context.row_count(table_key)
    if not _is_flat(table.schema.field(column_name).type):
        return None
    sample = scan(table, [column_name], limit=_WIDTH_SAMPLE_ROWS)
    if sample.num_rows and sample.nbytes / sample.num_rows * row_count > _MAX_COLUMN_BYTES:
        return None
    scanned = scan(table, [column_name], row_ids=True)
    row_ids, values = row_id_array(scanned), scanned[column_name].combine_chunks()
    row_id_bound = int(row_ids.max()) + 1 if len(row_ids) else 0
    if row_id_bound > _MAX_SPARSENESS * len(row_ids) + _WIDTH_SAMPLE_ROWS:
        return None
    if row_id_bound != len(row_ids) or not (row_ids == np.arange(row_id_bound)).all():
        position_by_row = np.full(row_id_bound, NULL_ROW, np.int64)
        position_by_row[row_ids] = np.arange(len(row_ids))
        values = values.take(pa.array(position_by_row, mask=position_by_row < 0))
    return _encode_repeats(values)


def _encode_repeats(values: pa.Array) -> HotColumn:
    """Dictionary-encode values that repeat often enough; return other values unchanged."""
    if pa.types.is_floating(values.type) or _is_mostly_distinct(values):
        return HotColumn(values)  # encoding floats would merge 0.0 and -0.0
    dictionary_array = values.dictionary_encode()
    distinct_values = dictionary_array.dictionary
    if len(distinct_values) * _MIN_REPETITION > len(values):
        return HotColumn(values)
    code_type = np.int16 if len(distinct_values) < 1 << 15 else np.int32
    codes = dictionary_array.indices.fill_null(len(distinct_values)).to_numpy(zero_copy_only=False).astype(code_type)
    return HotColumn(pa.concat_arrays([distinct_values, pa.nulls(1, distinct_values.type)]), codes)


def _is_mostly_distinct(values: pa.Array) -> bool:
    """Return whether nearly all values in an even sample of rows are distinct, which makes encoding pointless.

    Encoding is most expensive for mostly distinct values, for which it saves nothing. A sample of this size contains
    repeated values only if the column has few distinct values.
    """
    sample_step = min(len(values) // _REPETITION_SAMPLE_ROWS, _MAX_SAMPLE_STEP)
    if sample_step < _MIN_REPETITION:
        return False
    sample = values.take(pa.array(np.arange(0, len(values), sample_step)))
    return bool(pc.count_distinct(sample, mode="all").as_py() > len(sample) * 0.98)


def _load_row_ids(context: ExecutionContext, table_key: TableKey) -> IntArray:
    return np.sort(row_id_array(scan(context.table(table_key), [], row_ids=True)))


def _load_id_order(context: ExecutionContext, table_key: TableKey) -> IdOrder | None:
    scanned = scan(context.table(table_key), ["id"], row_ids=True)
    if scanned.nbytes > _MAX_COLUMN_BYTES or not scanned.num_rows:
        return None
    row_ids, entity_ids = row_id_array(scanned), scanned["id"].combine_chunks()
    if not pc.all(pc.less(entity_ids[:-1], entity_ids[1:])).as_py():
        sorted_positions = pc.sort_indices(entity_ids).to_numpy()
        row_ids, entity_ids = row_ids[sorted_positions], entity_ids.take(pa.array(sorted_positions))
    if int(row_ids.max()) + 1 > _MAX_SPARSENESS * len(row_ids) + _WIDTH_SAMPLE_ROWS:
        return None
    rank_by_row = np.full(int(row_ids.max()) + 1, NULL_ROW, np.int64)
    rank_by_row[row_ids] = np.arange(len(row_ids))
    return IdOrder(entity_ids, row_ids, rank_by_row)
