"""Arithmetic on Arrow columns with `+ - * / %` and unary minus, and concatenation of strings with `+`.

Integer arithmetic uses 64 bits and raises `ExpressionError` if a result does not fit. Float arithmetic follows IEEE
754. The result is null where an operand is null or a divisor is zero.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExpressionError
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.lang.query import plan

_INTEGER_FUNCTIONS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_FLOAT_FUNCTIONS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
}


def expression_error(place: plan.SourcePlace, message: str, hint: str | None = None) -> ExpressionError:
    """Return an error for an expression that cannot be evaluated, including its position in the query."""
    diagnostic = Diagnostic.at_span(place.source, place.span, message, kind="input", hint=hint)
    return ExpressionError(diagnostics=(diagnostic,), source=place.source)


def compute_chain(
    first: pa.Array, operators: Sequence[str], operands: Sequence[pa.Array], place: plan.SourcePlace
) -> pa.Array:
    """Evaluate a chain of operators from left to right."""
    result = first
    for operator, operand in zip(operators, operands, strict=True):
        result = _compute_step(result, operator, operand, place)
    return result


def negate(column: pa.Array, place: plan.SourcePlace) -> pa.Array:
    """Negate each number."""
    if pa.types.is_floating(column.type):
        return pc.negate(as_floats(column))
    return checked(pc.negate_checked, place, as_integers(column, place))


def as_integers(column: pa.Array, place: plan.SourcePlace) -> pa.Array:
    """Convert integers to I64; raise an error for a U64 value that does not fit."""
    return column if column.type == pa.int64() else checked(lambda values: values.cast(pa.int64()), place, column)


def as_floats(column: pa.Array) -> pa.Array:
    """Convert numbers to F64; a large integer becomes the nearest float."""
    return column if column.type == pa.float64() else pc.cast(column, pa.float64(), safe=False)


def checked(function: Callable[..., pa.Array], place: plan.SourcePlace, *columns: pa.Array) -> pa.Array:
    """Call a checked Arrow function; raise `ExpressionError` if an integer result does not fit in 64 bits."""
    try:
        return function(*columns)
    except pa.ArrowInvalid as failure:
        hint = "compute with floats, as in `1.0 * $x.n`, or exclude the rows with `case`"
        raise expression_error(place, "the result of this expression does not fit in I64", hint) from failure


def _compute_step(left: pa.Array, operator: str, right: pa.Array, place: plan.SourcePlace) -> pa.Array:
    if pa.types.is_string(left.type):
        return pc.binary_join_element_wise(left, right, "")
    has_integers = pa.types.is_integer(left.type) and pa.types.is_integer(right.type)
    if has_integers and operator != "/":
        left, right = as_integers(left, place), as_integers(right, place)
        if operator == "%":
            return _integer_remainder(left, right)
        return checked(_INTEGER_FUNCTIONS[operator], place, left, right)
    left, right = as_floats(left), as_floats(right)
    if operator == "%":
        return _float_remainder(left, right)
    return _FLOAT_FUNCTIONS[operator](left, _without_zeros(right) if operator == "/" else right)


def _without_zeros(divisors: pa.Array) -> pa.Array:
    """Return the divisors with zeros replaced by null."""
    return pc.if_else(pc.equal(divisors, pa.scalar(0, divisors.type)), pa.scalar(None, divisors.type), divisors)


def _integer_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return remainders with the sign of the dividend.

    A divisor of -1 is replaced by 1, which leaves the same remainder but cannot overflow.
    """
    divisors = _without_zeros(right)
    divisors = pc.if_else(pc.equal(divisors, pa.scalar(-1)), pa.scalar(1, pa.int64()), divisors)
    return pc.subtract(left, pc.multiply(pc.divide(left, divisors), divisors))


def _float_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    divisors = _without_zeros(right)
    is_null = pc.or_(left.is_null(), divisors.is_null()).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        remainders: np.ndarray[Any, Any] = np.fmod(_filled(left), _filled(divisors))
    return pa.array(remainders, pa.float64(), mask=is_null, from_pandas=False)


def _filled(column: pa.Array) -> np.ndarray[Any, Any]:
    numbers: np.ndarray[Any, Any] = column.fill_null(1.0).to_numpy(zero_copy_only=False)
    return numbers
