"""Joins with nested operators (`not { }`, `optional { }`), and tests of whether two variables refer to the same entity.

The inner operators run once per distinct combination of values in the outer variables that they need. Each combination
has a number, which links inner rows to outer rows.
"""

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import Codes, combination_codes
from omnigraph.lang.query import plan

from .rows import NULL_ROW, IntArray, Mask, Rows, VariableBinding

RunOperators = Callable[[ExecutionContext, Rows, Sequence[plan.Operator]], Rows]
_COMBINATION = "#at"  # variable that carries the combination number through the inner operators


def keep_rows_with_same_entity(context: ExecutionContext, rows: Rows, closing: plan.CloseCycle) -> Rows:
    """Return the rows in which two variables refer to the same entity, without the left variable.

    Null never equals null.
    """
    left, right = rows[closing.left], rows[closing.right]
    is_same: Mask = (left.row_ids == right.row_ids) & (left.row_ids != NULL_ROW)
    if left.type_indexes is not None or right.type_indexes is not None or left.table_keys != right.table_keys:
        table_keys = tuple(dict.fromkeys((*left.table_keys, *right.table_keys)))
        left_types = left.with_types(table_keys).type_indexes
        right_types = right.with_types(table_keys).type_indexes
        if left_types is not None and right_types is not None:
            is_same &= left_types == right_types
    matching_rows = rows.filter(is_same)
    return matching_rows.select_variables(variable for variable in matching_rows.bindings if variable != closing.left)


def anti_join(context: ExecutionContext, rows: Rows, join: plan.AntiJoin, run_operators: RunOperators) -> Rows:
    """Return the outer rows for which the inner operators produce no rows."""
    if rows.count == 0:
        return rows
    codes, inner_rows = _run_inner(context, rows, join.outer, join.inner, run_operators)
    has_match = np.zeros(int(codes.max()) + 1, np.bool_)
    has_match[inner_rows[_COMBINATION].row_ids] = True
    return rows.filter(~has_match[codes])


def left_join(context: ExecutionContext, rows: Rows, join: plan.LeftJoin, run_operators: RunOperators) -> Rows:
    """Join each outer row with all of its inner rows, or with nulls if it has no inner rows."""
    codes, inner_rows = _run_inner(context, rows, join.outer, join.inner, run_operators)
    combination_order = np.argsort(inner_rows[_COMBINATION].row_ids, kind="stable")
    inner_rows = inner_rows.take(combination_order)
    match_counts = np.bincount(inner_rows[_COMBINATION].row_ids, minlength=int(codes.max()) + 1 if len(codes) else 0)
    first_matches = np.cumsum(match_counts) - match_counts
    repetitions = np.maximum(match_counts[codes], 1)
    total = int(repetitions.sum())
    context.meter.charge_bytes(total * (rows.bytes_per_row + 8 * (2 + len(join.introduced))))
    positions = np.repeat(np.arange(rows.count), repetitions)
    inner_positions = np.arange(total) - np.repeat(np.cumsum(repetitions) - repetitions, repetitions)
    inner_positions += first_matches[codes][positions]
    inner_positions[(match_counts[codes] == 0)[positions]] = NULL_ROW
    new_bindings = {variable: _take_or_null(inner_rows[variable], inner_positions) for variable in join.introduced}
    return rows.take_with(positions, new_bindings)


def _run_inner(
    context: ExecutionContext,
    rows: Rows,
    outer_variables: tuple[str, ...],
    inner_operators: tuple[plan.Operator, ...],
    run_operators: RunOperators,
) -> tuple[Codes, Rows]:
    """Return the combination number for each outer row, and the inner rows for all combinations."""
    codes, first_rows = combination_codes(rows, outer_variables)
    combinations = Rows(rows.count, {variable: rows[variable] for variable in outer_variables}).take(first_rows)
    tagged = combinations.with_binding(_COMBINATION, VariableBinding((), np.arange(len(first_rows))))
    return codes, run_operators(context, tagged, inner_operators)


def _take_or_null(binding: VariableBinding, positions: IntArray) -> VariableBinding:
    """Return the values of a variable at the given positions, or null at a negative position."""
    is_null = positions < 0
    if len(binding.row_ids) == 0:
        type_indexes = np.zeros(len(positions), np.int16) if binding.type_indexes is not None else None
        null_ids = np.full(len(positions), NULL_ROW, np.int64)
        return VariableBinding(binding.table_keys, null_ids, type_indexes, binding.paths)
    present_binding = binding.take(np.where(is_null, 0, positions))
    row_ids = np.where(is_null, NULL_ROW, present_binding.row_ids)
    return VariableBinding(binding.table_keys, row_ids, present_binding.type_indexes, binding.paths)
