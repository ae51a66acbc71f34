"""Evaluation of scalar expressions over Arrow columns: dispatch, `case` and `coalesce`.

A value is computed only for the rows that use it: a `case` branch only for the rows that take the branch, and a
`coalesce` argument only for the rows in which all earlier arguments are null. An unused value therefore never raises an
error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError
from omnigraph.lang.query import plan
from omnigraph.storage.arrow import arrow_type

from . import arithmetic, scalar_functions
from .evaluate import ColumnSource, evaluate_value, true_mask

_Positions = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class SelectedRows:
    """A column source restricted to selected rows."""

    source: ColumnSource
    positions: _Positions

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.positions)

    def column(self, variable: str, column_name: str) -> pa.Array:
        """Return one column of a variable."""
        return self.source.column(variable, column_name).take(pa.array(self.positions))

    def of_type(self, variable: str, type_name: str) -> pa.Array:
        """Return a boolean column that is true where the node has the given type."""
        return self.source.of_type(variable, type_name).take(pa.array(self.positions))

    def constant(self, value: plan.Value) -> Any:
        """Return the value of a constant or parameter."""
        return self.source.constant(value)

    def aggregate(self, value: plan.Aggregate) -> pa.Array:
        """Return an aggregate's value for each selected group."""
        return self.source.aggregate(value).take(pa.array(self.positions))


def evaluate_scalar(source: ColumnSource, value: plan.ScalarValue) -> pa.Array:
    """Evaluate a scalar expression for every row. The result has the Arrow type for the expression's declared type."""
    match value:
        case plan.Arithmetic():
            operands = [evaluate_value(source, operand) for _, operand in value.steps]
            first = evaluate_value(source, value.first)
            operators = [operator for operator, _ in value.steps]
            return arithmetic.compute_chain(first, operators, operands, value.place)
        case plan.Negative():
            return arithmetic.negate(evaluate_value(source, value.operand), value.place)
        case plan.ScalarCall(function="coalesce"):
            return _first_valid(source, value)
        case plan.ScalarCall():
            return _call_function(source, value)
        case plan.Case():
            return _choose_branch(source, value)
    raise InternalError(reason=f"{type(value).__name__} is not a scalar expression")


def _call_function(source: ColumnSource, call: plan.ScalarCall) -> pa.Array:
    """Call a function whose arguments, except the first, are the same for every row."""
    column = evaluate_value(source, call.arguments[0])
    fixed_arguments = [source.constant(argument) for argument in call.arguments[1:]]
    if any(argument is None for argument in fixed_arguments):
        return pa.nulls(source.count, arrow_type(call.type))
    return scalar_functions.call_function(call, column, fixed_arguments)


def _choose_branch(source: ColumnSource, case: plan.Case) -> pa.Array:
    remaining_branches = list(case.branches)

    def next_step(rows: ColumnSource) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], plan.Value] | None:
        if not remaining_branches:
            return None
        predicate, result = remaining_branches.pop(0)
        return true_mask(rows, predicate), result

    return _fill_rows(source, next_step, case.default, arrow_type(case.type))


def _first_valid(source: ColumnSource, call: plan.ScalarCall) -> pa.Array:
    remaining_arguments = list(call.arguments[:-1])

    def next_step(rows: ColumnSource) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], plan.Value] | None:
        if not remaining_arguments:
            return None
        argument = remaining_arguments.pop(0)
        return true_mask(rows, plan.IsNull(argument, negated=True)), argument

    return _fill_rows(source, next_step, call.arguments[-1], arrow_type(call.type))


def _fill_rows(
    source: ColumnSource,
    next_step: Callable[[ColumnSource], tuple[np.ndarray[Any, np.dtype[np.bool_]], plan.Value] | None],
    default: plan.Value,
    result_type: pa.DataType,
) -> pa.Array:
    """For each row, evaluate the first value whose mask selects the row, or the default if no mask selects it."""
    remaining: _Positions = np.arange(source.count)
    filled_positions: list[_Positions] = []
    filled_values: list[pa.Array] = []
    while len(remaining) and (step := next_step(_select_rows(source, remaining))) is not None:
        selected_mask, value = step
        filled_positions.append(remaining[selected_mask])
        filled_values.append(_evaluate_selected(source, value, remaining[selected_mask], result_type))
        remaining = remaining[~selected_mask]
    filled_positions.append(remaining)
    filled_values.append(_evaluate_selected(source, default, remaining, result_type))
    stacked_position = np.empty(source.count, np.int64)
    stacked_position[np.concatenate(filled_positions)] = np.arange(source.count)
    return pa.concat_arrays(filled_values).take(pa.array(stacked_position))


def _select_rows(source: ColumnSource, positions: _Positions) -> ColumnSource:
    return source if len(positions) == source.count else SelectedRows(source, positions)


def _evaluate_selected(
    source: ColumnSource, value: plan.Value, positions: _Positions, result_type: pa.DataType
) -> pa.Array:
    if len(positions) == 0:
        return pa.nulls(0, result_type)
    column = evaluate_value(_select_rows(source, positions), value)
    return column if column.type == result_type else pc.cast(column, result_type, safe=False)
