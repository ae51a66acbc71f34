"""Row values in encoded form: an array of values, and an index that maps each row to one of these values.

A property is read once per entity, regardless of how many rows contain the entity.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.operators.fetch import RowSource
from omnigraph.engine.operators.rows import IntArray, Mask, Rows
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_variables import variables_of
from omnigraph.records.frozen import record

from . import evaluate
from .hot_columns import hot_columns
from .value_codes import Codes, Numbers, dense_codes, entity_codes, order_codes, value_codes

_MARKS_PER_VALUE = 16  # if the id range is at most 16 times the input size, a mark array is faster than sorting


@record(eq=False)
class RowValues:
    """Values for a sequence of rows.

    Row i has the value `values[value_index[i]]`, or `values[i]` if `value_index` is None.
    """

    values: pa.Array
    value_index: IntArray | None = None

    def materialize(self) -> pa.Array:
        """Return one value per row."""
        return self.values if self.value_index is None else self.values.take(pa.array(self.value_index))

    def is_valid(self) -> Mask:
        """Return a mask of the rows whose value is not null."""
        return self._expand_to_rows(self.values.is_valid().to_numpy(zero_copy_only=False))

    def valid_positions(self) -> IntArray | None:
        """Return the positions of the rows with a non-null value, or None if no value is null."""
        if self.values.null_count == 0:
            return None
        valid_mask = self.is_valid()
        return None if bool(valid_mask.all()) else np.flatnonzero(valid_mask)

    def codes(self) -> Codes:
        """Return a code per row, with equal codes for equal values."""
        return self._expand_to_rows(value_codes(self.values))

    def sort_numbers(self, *, descending: bool = False, limit: int | None = None) -> Numbers:
        """Return a number per row. The numbers sort like the values."""
        if self.value_index is not None:
            limit = None  # the first values in sort order may occur in any number of rows
        return self._expand_to_rows(order_codes(self.values, descending=descending, row_limit=limit))

    def numeric(self) -> npt.NDArray[Any]:
        """Return each row's value as a number, which is arbitrary where the value is null."""
        filled = self.values.fill_null(0) if self.values.null_count else self.values
        return self._expand_to_rows(filled.to_numpy(zero_copy_only=False))

    def take(self, positions: IntArray) -> "RowValues":
        """Return the values for the given rows."""
        if self.value_index is not None:
            return RowValues(self.values, self.value_index[positions])
        return RowValues(self.values.take(pa.array(positions)))

    def _expand_to_rows(self, per_value: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return per_value if self.value_index is None else per_value[self.value_index]


def count_distinct_entities(rows: Rows, variable: str) -> int:
    """Return the number of distinct entities that a variable is bound to, excluding null."""
    entity_numbers = entity_codes(rows[variable])
    entity_numbers = (
        entity_numbers[entity_numbers >= 0] if len(entity_numbers) and int(entity_numbers.min()) < 0 else entity_numbers
    )
    if len(entity_numbers) == 0 or int(entity_numbers.max()) > _MARKS_PER_VALUE * len(entity_numbers):
        return len(np.unique(entity_numbers))
    is_present = np.zeros(int(entity_numbers.max()) + 1, np.bool_)
    is_present[entity_numbers] = True
    return int(np.count_nonzero(is_present))


def entity_values(rows: Rows, variable: str) -> RowValues:
    """Return a number for each entity, so that distinct entities can be counted without reading any column."""
    entity_numbers = entity_codes(rows[variable])
    null_mask = entity_numbers < 0
    return RowValues(pa.array(entity_numbers, mask=null_mask if bool(null_mask.any()) else None))


def evaluate_rows(context: ExecutionContext, rows: Rows, value: plan.Value) -> RowValues:
    """Evaluate a value for every row; constants are computed once, and properties are read once per entity."""
    if evaluate.is_constant(value):
        constant_column = evaluate.evaluate_value(RowSource(context, Rows.single()), value)
        return RowValues(constant_column, np.zeros(rows.count, np.int64))
    variables = tuple(variables_of(value))
    if len(variables) != 1:
        return RowValues(evaluate.evaluate_value(RowSource(context, rows), value))
    cached_values = _cached_property(context, rows, value)
    if cached_values is not None:
        return cached_values
    entity_numbers = entity_codes(rows[variables[0]])
    if bool((entity_numbers[1:] > entity_numbers[:-1]).all()):  # rows in scan order contain each entity once
        return RowValues(evaluate.evaluate_value(RowSource(context, rows), value))
    codes, first_positions = dense_codes(entity_numbers)
    if len(first_positions) == rows.count:
        return RowValues(evaluate.evaluate_value(RowSource(context, rows), value))
    distinct_rows = Rows.from_bindings({variables[0]: rows[variables[0]].take(first_positions)})
    return RowValues(evaluate.evaluate_value(RowSource(context, distinct_rows), value), codes)


def _cached_property(context: ExecutionContext, rows: Rows, value: plan.Value) -> RowValues | None:
    """Return a property as codes from a cached column, or None if the column is not cached as codes."""
    if not isinstance(value, plan.PropertyValue):
        return None
    binding = rows[value.variable]
    if len(binding.table_keys) != 1:
        return None
    cached_columns = hot_columns(context, binding.table_keys[0], [value.name], rows.count)
    if cached_columns is None or cached_columns[0].codes is None:
        return None
    return RowValues(cached_columns[0].values, cached_columns[0].value_positions(binding.row_ids))
