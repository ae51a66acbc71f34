"""Comparison by value across all types: exact between integers and floats of every width.

Owns the rules for numbers. A constant is first converted into a comparison that the column's type
expresses exactly (`normalize_comparison`); only such comparisons may be pushed into storage.
"""

import math
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.plan import CompareOperator
from omnigraph.values.spelling import narrow

Outcome = Literal["always", "never"]  # the result for every non-null value

_FUNCTIONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_PYTHON = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED: dict[CompareOperator, CompareOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


@dataclass(frozen=True, slots=True)
class Settled:
    """`column operator constant`, where the constant has the column's own type."""

    operator: CompareOperator
    constant: Any


def settle(kind: pa.DataType, operator: CompareOperator, constant: Any) -> Settled | Outcome:
    """Return the equivalent comparison whose constant is representable in the column's type.

    >>> test = settle(pa.int32(), "<", 2.5)
    >>> test.operator, test.constant
    ('<', 3)
    >>> settle(pa.int32(), "=", 2.5), settle(pa.int32(), ">", -1e300)
    ('never', 'always')
    """
    if pa.types.is_integer(kind):
        return _settle_integer(kind, operator, constant)
    if pa.types.is_floating(kind):
        return _settle_float(kind, operator, constant)
    return Settled(operator, constant)


def _settle_integer(
    kind: pa.DataType, operator: CompareOperator, constant: int | float
) -> Settled | Outcome:
    if isinstance(constant, float):
        settled = _whole(operator, constant)
        if isinstance(settled, str):
            return settled
        operator, constant = settled.operator, settled.constant
    low, high = _bounds(kind)
    if low <= constant <= high:
        return Settled(operator, constant)
    if operator in ("=", "!="):
        return "never" if operator == "=" else "always"
    return "always" if (operator in ("<", "<=")) == (constant > high) else "never"


def _whole(operator: CompareOperator, constant: float) -> Settled | Outcome:
    """Return the equivalent comparison of an integer with an integer constant."""
    if math.isnan(constant):
        return "always" if operator == "!=" else "never"
    if math.isinf(constant):
        if operator in ("=", "!="):
            return "never" if operator == "=" else "always"
        return "always" if (operator in ("<", "<=")) == (constant > 0) else "never"
    if constant.is_integer():
        return Settled(operator, int(constant))
    if operator in ("=", "!="):
        return "never" if operator == "=" else "always"
    return Settled(
        operator, math.ceil(constant) if operator in ("<", ">=") else math.floor(constant)
    )


def _settle_float(
    kind: pa.DataType, operator: CompareOperator, constant: int | float
) -> Settled | Outcome:
    nearest = _nearest_float(kind, constant)
    if nearest == constant or math.isnan(nearest):
        return Settled(operator, nearest)
    if operator in ("=", "!="):
        return "never" if operator == "=" else "always"
    # No float of this type lies between the constant and `nearest_float`, so the latter separates
    # the same values.
    above = nearest > constant
    if operator in ("<", "<="):
        return Settled("<" if above else "<=", nearest)
    return Settled(">=" if above else ">", nearest)


def _nearest_float(kind: pa.DataType, constant: int | float) -> float:
    value = float(constant)
    if kind.bit_width == 64 or not math.isfinite(value):
        return value
    single = narrow(value)
    return single if single is not None else math.copysign(math.inf, value)


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    if pa.types.is_signed_integer(kind):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def compare(left: pa.Array, operator: CompareOperator, right: pa.Array) -> pa.Array:
    """Compare two columns row by row; null where either is null."""
    if pa.types.is_integer(left.type) and pa.types.is_floating(right.type):
        return _integer_float(left, operator, right)
    if pa.types.is_floating(left.type) and pa.types.is_integer(right.type):
        return _integer_float(right, _TURNED[operator], left)
    if left.type != right.type:
        left, right = _same_type(left, right)
    return _FUNCTIONS[operator](left, right)


def compare_constant(left: pa.Array, operator: CompareOperator, constant: Any) -> pa.Array:
    """Compare a column with one value; null where either is null."""
    if constant is None:
        return pa.nulls(len(left), pa.bool_())
    settled = settle(left.type, operator, constant)
    if isinstance(settled, str):
        return _outcome(left, settled)
    scalar = pa.scalar(settled.constant, left.type)
    return _FUNCTIONS[settled.operator](left, scalar)


def turned(operator: CompareOperator) -> CompareOperator:
    """Return the operator for exchanged operands."""
    return _TURNED[operator]


def _outcome(column: pa.Array, outcome: Outcome) -> pa.Array:
    known = pa.array(np.full(len(column), outcome == "always"))
    return known if column.null_count == 0 else pc.if_else(column.is_valid(), known, None)


def _same_type(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cast both columns to a type that holds all values of either."""
    if pa.types.is_floating(left.type):
        wide = pa.float64()
    elif pa.types.is_uint64(left.type) or pa.types.is_uint64(right.type):
        wide = pa.decimal128(20, 0)
    else:
        wide = pa.int64()
    return left.cast(wide), right.cast(wide)


def _integer_float(left: pa.Array, operator: CompareOperator, right: pa.Array) -> pa.Array:
    """Compare integers with floats exactly, although not every 64-bit integer is a float."""
    if left.type.bit_width < 64:
        return _FUNCTIONS[operator](left.cast(pa.float64()), right.cast(pa.float64()))
    found = [
        None if one is None or other is None else _PYTHON[operator](one, other)
        for one, other in zip(left.to_pylist(), right.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.bool_())
