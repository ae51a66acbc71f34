"""Scalar functions over Arrow columns: text, numbers and parts of dates.

Every function processes one column. All other arguments are non-null and the same for all rows. This module validates
arguments whose values are known only at run time, such as a pattern passed as a parameter. The result is null where the
column is null.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan
from omnigraph.lang.query.check.functions import MAX_ROUND_DIGITS

from .arithmetic import as_floats, as_integers, checked, expression_error

_DATE_PARTS = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
_ROUNDING = {"floor": pc.floor, "ceil": pc.ceil}


def call_function(call: plan.ScalarCall, column: pa.Array, arguments: Sequence[Any]) -> pa.Array:
    """Apply a function to each value in a column."""
    if call.function in _DATE_PARTS:
        return _DATE_PARTS[call.function](_without_zone(column)).cast(pa.int64())
    return _FUNCTIONS[call.function](call, column, *arguments)


def _without_zone(column: pa.Array) -> pa.Array:
    """Convert times to UTC and remove the time zone, so that later functions need no time zone database."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return column
    return column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))


def _lower(call: plan.ScalarCall, column: pa.Array) -> pa.Array:
    return pc.utf8_lower(column)


def _upper(call: plan.ScalarCall, column: pa.Array) -> pa.Array:
    return pc.utf8_upper(column)


def _length(call: plan.ScalarCall, column: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(column) if pa.types.is_list(column.type) else pc.utf8_length(column)
    return lengths.cast(pa.int64())


def _substring(call: plan.ScalarCall, column: pa.Array, start: int, count: int | None = None) -> pa.Array:
    if start < 1 or (count is not None and count < 0):
        wrong_value = (
            f"the start must be at least 1, not {start}"
            if start < 1
            else f"the count must not be negative, got {count}"
        )
        raise expression_error(call.place, f"`substring`: {wrong_value}", "positions are counted from 1")
    stop = None if count is None else start - 1 + count
    return pc.utf8_slice_codeunits(column, start=start - 1, stop=stop)


def _replace(call: plan.ScalarCall, column: pa.Array, old_text: str, new_text: str) -> pa.Array:
    _require_text(call, old_text)
    return pc.replace_substring(column, pattern=old_text, replacement=new_text)


def _split(call: plan.ScalarCall, column: pa.Array, separator: str) -> pa.Array:
    _require_text(call, separator)
    return pc.split_pattern(column, pattern=separator)


def _require_text(call: plan.ScalarCall, argument: str) -> None:
    if not argument:
        raise expression_error(call.place, f"`{call.function}`: the search string must not be empty")


def _matches(call: plan.ScalarCall, column: pa.Array, pattern: str) -> pa.Array:
    try:
        return pc.match_substring_regex(column, pattern=pattern)
    except pa.ArrowInvalid as failure:
        reason = str(failure).removeprefix("Invalid regular expression: ")
        message = f"`matches`: {pattern!r} is not a valid regular expression: {reason}"
        raise expression_error(call.place, message, "use RE2 syntax") from failure


def _abs(call: plan.ScalarCall, column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return pc.abs(as_floats(column))
    return checked(pc.abs_checked, call.place, as_integers(column, call.place))


def _round(call: plan.ScalarCall, column: pa.Array, digits: int = 0) -> pa.Array:
    """Round half away from zero."""
    if abs(digits) > MAX_ROUND_DIGITS:
        message = (
            f"`round`: the number of digits must be between -{MAX_ROUND_DIGITS} and {MAX_ROUND_DIGITS}, not {digits}"
        )
        raise expression_error(call.place, message)
    if pa.types.is_floating(column.type):
        return pc.round(as_floats(column), ndigits=digits, round_mode="half_towards_infinity")
    integers = as_integers(column, call.place)
    if digits >= 0:
        return integers
    return checked(
        lambda values: pc.round(values, ndigits=digits, round_mode="half_towards_infinity"), call.place, integers
    )


def _floor_or_ceil(call: plan.ScalarCall, column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return _ROUNDING[call.function](as_floats(column))
    return as_integers(column, call.place)


_FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "lower": _lower,
    "upper": _upper,
    "length": _length,
    "substring": _substring,
    "replace": _replace,
    "split": _split,
    "matches": _matches,
    "abs": _abs,
    "round": _round,
    "floor": _floor_or_ceil,
    "ceil": _floor_or_ceil,
}
