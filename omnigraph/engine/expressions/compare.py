"""Comparison by value across types. Integers and floats of any width are compared exactly.

`normalize_comparison` converts a comparison with a constant to an equivalent comparison in the column's type. Only such
comparisons may be pushed down to storage.
"""

import math
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.plan import CompareOperator
from omnigraph.records.frozen import record
from omnigraph.values.canonical_form import narrow_to_f32

ConstantOutcome = Literal["always", "never"]  # the result for every non-null value

_ARROW_FUNCTIONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NUMPY_FUNCTIONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_SWAPPED_OPERATORS: dict[CompareOperator, CompareOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


@record
class ColumnComparison:
    """The comparison `column operator constant`, where the constant has the column's type."""

    operator: CompareOperator
    constant: Any


def normalize_comparison(
    column_type: pa.DataType, operator: CompareOperator, constant: Any
) -> ColumnComparison | ConstantOutcome:
    """Return an equivalent comparison whose constant is representable in the column's type.

    >>> test = normalize_comparison(pa.int32(), "<", 2.5)
    >>> test.operator, test.constant
    ('<', 3)
    >>> normalize_comparison(pa.int32(), "=", 2.5), normalize_comparison(pa.int32(), ">", -1e300)
    ('never', 'always')
    """
    if pa.types.is_integer(column_type):
        return _normalize_for_integers(column_type, operator, constant)
    if pa.types.is_floating(column_type):
        return _normalize_for_floats(column_type, operator, constant)
    return ColumnComparison(operator, constant)


def _normalize_for_integers(
    column_type: pa.DataType, operator: CompareOperator, constant: int | float
) -> ColumnComparison | ConstantOutcome:
    if isinstance(constant, float):
        rounded = _round_constant(operator, constant)
        if isinstance(rounded, str):
            return rounded
        operator, constant = rounded.operator, rounded.constant
    lowest, highest = _integer_bounds(column_type)
    if lowest <= constant <= highest:
        return ColumnComparison(operator, constant)
    if operator in ("=", "!="):
        return "never" if operator == "=" else "always"
    return "always" if (operator in ("<", "<=")) == (constant > highest) else "never"


def _round_constant(operator: CompareOperator, constant: float) -> ColumnComparison | ConstantOutcome:
    """Convert a comparison of an integer column with a float to an equivalent comparison with an integer."""
    if math.isnan(constant):
        return "always" if operator == "!=" else "never"
    if math.isinf(constant):
        if operator in ("=", "!="):
            return "never" if operator == "=" else "always"
        return "always" if (operator in ("<", "<=")) == (constant > 0) else "never"
    if constant.is_integer():
        return ColumnComparison(operator, int(constant))
    if operator in ("=", "!="):
        return "never" if operator == "=" else "always"
    return ColumnComparison(operator, math.ceil(constant) if operator in ("<", ">=") else math.floor(constant))


def _normalize_for_floats(
    column_type: pa.DataType, operator: CompareOperator, constant: int | float
) -> ColumnComparison | ConstantOutcome:
    nearest_float = _nearest_float(column_type, constant)
    if nearest_float == constant or math.isnan(nearest_float):
        return ColumnComparison(operator, nearest_float)
    if operator in ("=", "!="):
        return "never" if operator == "=" else "always"
    # No float of this type lies between the constant and `nearest_float`, so a comparison with `nearest_float` has the
    # same result.
    is_above = nearest_float > constant
    if operator in ("<", "<="):
        return ColumnComparison("<" if is_above else "<=", nearest_float)
    return ColumnComparison(">=" if is_above else ">", nearest_float)


def _nearest_float(column_type: pa.DataType, constant: int | float) -> float:
    double_value = float(constant)
    if column_type.bit_width == 64 or not math.isfinite(double_value):
        return double_value
    single_precision = narrow_to_f32(double_value)
    return single_precision if single_precision is not None else math.copysign(math.inf, double_value)


def _integer_bounds(column_type: pa.DataType) -> tuple[int, int]:
    bit_width = column_type.bit_width
    if pa.types.is_signed_integer(column_type):
        return -(1 << (bit_width - 1)), (1 << (bit_width - 1)) - 1
    return 0, (1 << bit_width) - 1


def compare_columns(left: pa.Array, operator: CompareOperator, right: pa.Array) -> pa.Array:
    """Compare two columns row by row; the result is null where either value is null."""
    if pa.types.is_integer(left.type) and pa.types.is_floating(right.type):
        return _compare_integers_to_floats(left, operator, right)
    if pa.types.is_floating(left.type) and pa.types.is_integer(right.type):
        return _compare_integers_to_floats(right, _SWAPPED_OPERATORS[operator], left)
    if left.type != right.type:
        left, right = _cast_to_common_type(left, right)
    return _ARROW_FUNCTIONS[operator](left, right)


def compare_constant(column: pa.Array, operator: CompareOperator, constant: Any) -> pa.Array:
    """Compare a column with one value; the result is null where either value is null."""
    if constant is None:
        return pa.nulls(len(column), pa.bool_())
    comparison = normalize_comparison(column.type, operator, constant)
    if isinstance(comparison, str):
        return _outcome_column(column, comparison)
    constant_scalar = pa.scalar(comparison.constant, column.type)
    return _ARROW_FUNCTIONS[comparison.operator](column, constant_scalar)


def swap_operator(operator: CompareOperator) -> CompareOperator:
    """Return the operator to use when the operands are swapped."""
    return _SWAPPED_OPERATORS[operator]


def _outcome_column(column: pa.Array, outcome: ConstantOutcome) -> pa.Array:
    outcomes = pa.array(np.full(len(column), outcome == "always"))
    return outcomes if column.null_count == 0 else pc.if_else(column.is_valid(), outcomes, None)


def _cast_to_common_type(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cast both columns to a type that can hold all values of either column."""
    if pa.types.is_floating(left.type):
        common_type = pa.float64()
    elif pa.types.is_uint64(left.type) or pa.types.is_uint64(right.type):
        common_type = pa.decimal128(20, 0)
    else:
        common_type = pa.int64()
    return left.cast(common_type), right.cast(common_type)


def _compare_integers_to_floats(integers: pa.Array, operator: CompareOperator, floats: pa.Array) -> pa.Array:
    """Compare integers with floats exactly, although not every 64-bit integer is representable as a float."""
    if integers.type.bit_width < 64:
        return _ARROW_FUNCTIONS[operator](integers.cast(pa.float64()), floats.cast(pa.float64()))
    is_null = pc.or_(integers.is_null(), floats.is_null()).to_numpy(zero_copy_only=False)
    numbers = integers.fill_null(0).to_numpy(zero_copy_only=False)
    float_numbers = floats.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    outcomes = _NUMPY_FUNCTIONS[operator](_compare_signs(numbers, float_numbers), 0)
    outcomes = np.where(np.isnan(float_numbers), operator == "!=", outcomes)
    return pa.array(outcomes, pa.bool_(), mask=is_null)


def _compare_signs(integers: npt.NDArray[Any], floats: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """For each pair, return -1, 0 or 1 if the integer is less than, equal to or greater than the float.

    Each integer is compared with the floor of the float, because that comparison is exact.
    """
    limits = np.iinfo(integers.dtype)
    too_high, too_low = floats >= float(limits.max), floats < float(limits.min)  # as a float, the maximum is rounded up
    floors = np.floor(np.where(too_high | too_low | np.isnan(floats), 0.0, floats))
    whole_parts = floors.astype(integers.dtype)
    signs = np.where(integers < whole_parts, -1, np.where(integers > whole_parts, 1, 0))
    signs = np.where((signs == 0) & (floats > floors), -1, signs)
    return np.where(too_high, -1, np.where(too_low, 1, signs)).astype(np.int8)
