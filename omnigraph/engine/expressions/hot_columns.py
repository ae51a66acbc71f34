"""An in-memory cache of frequently used columns, addressed by row id.

A column is loaded as soon as its cache misses have cost as much as loading the column would have. Values that repeat
often are dictionary-encoded. Each cached column belongs to one table version. The choice of columns to cache must
never affect a result.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.column_size import check_column_bytes
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.operators.rows import NULL_ROW, IntArray
from omnigraph.engine.query_caches import caches_of
from omnigraph.records.frozen import record
from omnigraph.storage.scan import row_id_array, scan
from omnigraph.storage.table import Table
from omnigraph.values.table_key import TableKey

from .id_order import IdOrder, build_id_order

# The unit of cost is the cost per row of loading a whole column.
_CALL_COST = 20_000  # cost per column of a storage call
_COLUMNS_PER_CALL = 16  # beyond 16 columns, additional columns do not increase the cost of a call
_ROW_COST = 40  # cost per row of a storage call
_SORT_COST = 2  # sorting ids costs twice as much as loading ids
_MAX_COLUMN_BYTES = 256 << 20  # maximum size of a column in bytes
_MAX_SPARSENESS = 4  # maximum ratio between the row id range and the number of rows
_MIN_REPETITION = 8  # if values repeat eight times or more on average, the column is dictionary-encoded
_WIDTH_SAMPLE_ROWS = 256  # rows sampled to estimate the width of a column
_REPETITION_SAMPLE_ROWS = 8192  # minimum number of rows sampled to detect repetition
_MAX_SAMPLE_STEP = 200  # sample at least 1/200 of the rows, so that values shared by eight rows repeat in a sample
_NEVER_COST = 1 << 60  # the cost of an unsuitable column, which is therefore never loaded again
_TAKE_FUNCTION = pc.get_function("array_take")


@record(eq=False)
class HotColumn:
    """One column of a table version, addressed by row id.

    Without `codes`, the value in row r is `values[r]`. With `codes`, it is `values[codes[r]]`, and the last entry in
    `values` is null. The value of a missing row is null.
    """

    values: pa.Array
    codes: npt.NDArray[Any] | None = None

    def take(self, row_ids: IntArray) -> pa.Array:
        """Return the values for the given rows; a null row id yields null."""
        return take_columns([self], row_ids)[0]

    def take_single(self, row_id: int) -> pa.Array:
        """Return the value for one row."""
        if row_id < 0 or row_id >= (len(self.values) if self.codes is None else len(self.codes)):
            return pa.nulls(1, self.values.type)
        return self.values.slice(row_id if self.codes is None else int(self.codes[row_id]), 1)

    def value_positions(self, row_ids: IntArray) -> IntArray:
        """Return the position of each row's value in `values`. The column must have `codes`."""
        codes = self.codes if self.codes is not None else np.empty(0, np.int64)
        if len(codes) == 0:
            return np.full(len(row_ids), len(self.values) - 1, np.int64)
        if _covers_all_rows(row_ids, len(codes)):
            return codes.astype(np.int64)
        positions = codes[row_ids].astype(np.int64)
        if int(row_ids.min(initial=0)) < 0:
            positions[row_ids < 0] = len(self.values) - 1
        return positions

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes."""
        return int(self.values.nbytes) + (self.codes.nbytes if self.codes is not None else 0)


def take_columns(
    columns: Sequence[HotColumn], row_ids: IntArray, max_column_bytes: int | None = None
) -> list[pa.Array]:
    """Return each column's values for the given rows; a null row id yields null.

    With `max_column_bytes`, raise `ResourceLimitExceeded` if values repeat so often that a returned column is probably
    larger than this limit.
    """
    if len(row_ids) == 1:
        row_id = int(row_ids[0])
        return [column.take_single(row_id) for column in columns]
    indices: pa.Array | None = None  # all columns without codes share these indices
    taken_columns = []
    for column in columns:
        if max_column_bytes is not None and len(row_ids) > len(column.values) > 0:
            check_column_bytes(column.values.nbytes // len(column.values) * len(row_ids), max_column_bytes)
        if column.codes is not None:
            taken_columns.append(_take_values(column.values, pa.array(column.value_positions(row_ids))))
        elif _covers_all_rows(row_ids, len(column.values)):
            taken_columns.append(column.values)
        else:
            indices = _as_indices(row_ids) if indices is None else indices
            taken_columns.append(_take_values(column.values, indices))
    return taken_columns


def _as_indices(row_ids: IntArray) -> pa.Array:
    if int(row_ids.min(initial=0)) >= 0:
        return pa.array(row_ids)
    is_null = row_ids < 0
    return pa.array(np.where(is_null, 0, row_ids), mask=is_null)


def _take_values(values: pa.Array, indices: pa.Array) -> pa.Array:
    return _TAKE_FUNCTION.call([values, indices])  # avoids the overhead of `Array.take`


def _covers_all_rows(row_ids: IntArray, column_length: int) -> bool:
    """Return whether `row_ids` lists all rows of a column in ascending order."""
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
    identity = context.table_identity(table_key)
    cached_columns: list[Any] = caches_of(context).memory.get_all(
        [(*identity, "column", name) for name in column_names]
    )
    if None not in cached_columns:
        return cached_columns
    missing_names = [name for name, column in zip(column_names, cached_columns, strict=True) if column is None]
    loaded_columns = _load_worthwhile_columns(context, table_key, missing_names, len(column_names), needed_rows)
    if len(loaded_columns) < len(missing_names):
        return None
    return [
        cached_column if cached_column is not None else loaded_columns[name]
        for name, cached_column in zip(column_names, cached_columns, strict=True)
    ]


def hot_rows(context: ExecutionContext, table_key: TableKey) -> IntArray | None:
    """Return all row ids in a table in ascending order, or None if caching them is not worthwhile."""
    miss_cost = context.row_count(table_key) // 2
    row_ids: IntArray | None = _load_if_worthwhile(
        context, table_key, ("rows",), miss_cost, partial(_load_row_ids, context, table_key)
    )
    return row_ids


def hot_id_order(context: ExecutionContext, table_key: TableKey, needed_rows: int) -> IdOrder | None:
    """Return the sorted ids in a table, or None if sorting is not worthwhile for the given number of lookups."""
    miss_cost = (_CALL_COST + _ROW_COST * needed_rows) // _SORT_COST
    id_order: IdOrder | None = _load_if_worthwhile(
        context, table_key, ("ranks",), miss_cost, partial(_load_id_order, context, table_key)
    )
    return id_order


def hot_derivation(
    context: ExecutionContext, table_key: TableKey, derivation_key: tuple[str, ...], derive: Callable[[], Any]
) -> Any:
    """Return a value derived from the columns of a table version. The value is computed only once."""
    return _load_if_worthwhile(context, table_key, derivation_key, context.row_count(table_key), derive)


def _load_if_worthwhile(
    context: ExecutionContext,
    table_key: TableKey,
    entry_name: tuple[str, ...],
    miss_cost: int,
    load_entry: Callable[[], Any],
) -> Any:
    """Return a cached entry. Load the entry as soon as its cache misses have cost as much as loading would."""
    root, location, version = context.table_identity(table_key)
    cache_key = (root, location, version, *entry_name)
    caches = caches_of(context)
    cached_entry = caches.memory.get(cache_key)
    if cached_entry is not None:
        return cached_entry
    family = (root, location, *entry_name)
    if caches.add_miss_cost(cache_key, miss_cost, family) < context.row_count(table_key):
        return None
    context.meter.enter_gate()  # enter the gate before taking a lock that other queries may wait for
    new_entry = caches.memory.get_or_build(cache_key, load_entry, lambda entry: int(entry.nbytes), family)
    if new_entry is None:
        caches.add_miss_cost(cache_key, -_NEVER_COST, family)
    return new_entry


def _is_flat(data_type: pa.DataType) -> bool:
    return not (pa.types.is_nested(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _load_worthwhile_columns(
    context: ExecutionContext, table_key: TableKey, column_names: Sequence[str], call_columns: int, needed_rows: int
) -> dict[str, HotColumn]:
    """Load and return the missing columns whose cache misses have cost as much as loading them.

    Each miss is charged the cost of reading the column for only the needed rows, in a storage call that reads
    `call_columns` columns.
    """
    caches, row_count = caches_of(context), context.row_count(table_key)
    root, location, version = context.table_identity(table_key)
    cache_keys = {name: (root, location, version, "column", name) for name in column_names}
    miss_cost = _CALL_COST * min(call_columns, _COLUMNS_PER_CALL) / call_columns + _ROW_COST * needed_rows
    families = {name: (root, location, "column", name) for name in column_names}
    costs = {name: caches.add_miss_cost(cache_keys[name], miss_cost, families[name]) for name in column_names}
    worthwhile_names = [name for name, cost in costs.items() if cost >= row_count]
    if not worthwhile_names:
        return {}
    context.meter.enter_gate()  # enter the gate before taking a lock that other queries may wait for
    with caches.memory.building((root, location, version, "columns")):
        columns = dict(zip(worthwhile_names, caches.memory.get_all(map(cache_keys.get, worthwhile_names)), strict=True))
        missing_names = [name for name, column in columns.items() if column is None]
        for name, column in _load_columns(context, table_key, missing_names):
            columns[name] = column
            caches.memory.put(cache_keys[name], column, column.nbytes, families[name])
    for name in worthwhile_names:
        if columns[name] is None:
            caches.add_miss_cost(cache_keys[name], -_NEVER_COST, families[name])
    return {name: column for name, column in columns.items() if column is not None}


def _load_columns(
    context: ExecutionContext, table_key: TableKey, column_names: Sequence[str]
) -> Iterator[tuple[str, HotColumn]]:
    """Load columns by row id, skipping columns that are too wide and tables whose row ids are too sparse."""
    table = context.table(table_key)
    schema = table.schema  # Lance decodes this property on each access
    flat_names = [name for name in column_names if _is_flat(schema.field(name).type)]
    for scanned_names in _group_by_size(table, flat_names, context.row_count(table_key)):
        scanned = scan(table, scanned_names, row_ids=True)
        row_ids = row_id_array(scanned)
        row_id_bound = int(row_ids.max()) + 1 if len(row_ids) else 0
        if row_id_bound > _MAX_SPARSENESS * len(row_ids) + _WIDTH_SAMPLE_ROWS:
            return
        positions = _positions_by_row_id(row_ids, row_id_bound)
        for name in scanned_names:
            values = scanned[name].combine_chunks()
            yield name, _encode_repeats(values if positions is None else values.take(positions))


def _group_by_size(table: Table, column_names: Sequence[str], row_count: int) -> list[list[str]]:
    """Group columns so that each group can be held in memory during a scan; columns that are too wide are omitted."""
    if not column_names:
        return []
    if row_count <= _WIDTH_SAMPLE_ROWS:
        return [list(column_names)]
    sample = scan(table, column_names, limit=_WIDTH_SAMPLE_ROWS)
    groups: list[list[str]] = [[]]
    group_bytes = 0.0
    for name, column in zip(column_names, sample.columns, strict=True):
        column_bytes = column.nbytes / max(sample.num_rows, 1) * row_count
        if column_bytes > _MAX_COLUMN_BYTES:
            continue
        if groups[-1] and group_bytes + column_bytes > _MAX_COLUMN_BYTES:
            groups.append([])
            group_bytes = 0.0
        groups[-1].append(name)
        group_bytes += column_bytes
    return [group for group in groups if group]


def _positions_by_row_id(row_ids: IntArray, row_id_bound: int) -> pa.Array | None:
    """Return the scan position of each row id, or None if the rows are already ordered by row id."""
    if row_id_bound == len(row_ids) and (row_ids == np.arange(row_id_bound)).all():
        return None
    position_by_row = np.full(row_id_bound, NULL_ROW, np.int64)
    position_by_row[row_ids] = np.arange(len(row_ids))
    return pa.array(position_by_row, mask=position_by_row < 0)


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
    """Return whether nearly all values in an evenly spaced sample are distinct, so that encoding is not worthwhile.

    Encoding such values is the most expensive case and saves nothing. A sample of this size contains repeated values
    only if the column has few distinct values.
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
    return build_id_order(entity_ids, row_ids)
