"""Convert input values to stored values, or report why a value does not match its type.

The stored forms are str, bool, int, float (F32 already narrowed), int for days or milliseconds since 1970, bytes,
`BlobUri` or `BlobSource`, tuples for lists and vectors, and None. This module does not check enum membership, which is
a graph rule. The errors that users see are raised by `coerce`.
"""

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from enum import Enum
from functools import lru_cache
from typing import Any

from omnigraph.records.frozen import record
from omnigraph.values.blobs import BlobSource, BlobUri, blob_source, parse_blob
from omnigraph.values.canonical_form import narrow_to_f32
from omnigraph.values.dates import (
    FIRST_DAY,
    FIRST_MILLIS,
    LAST_DAY,
    LAST_MILLIS,
    date_to_days,
    date_to_millis,
    parse_date,
    parse_datetime,
)
from omnigraph.values.describe_value import describe
from omnigraph.values.mismatch import ConversionMismatch, read_stand_in
from omnigraph.values.naive_times import hint_for
from omnigraph.values.types import PropertyType, ScalarType

_INTEGER_TEXT = re.compile(r"-?[0-9]{1,40}")
_MAX_SAFE_INTEGER = 2**53 - 1  # the largest integer that JavaScript represents exactly
_I64_MAX = 2**63 - 1

RANGES: dict[ScalarType, tuple[int, int]] = {
    ScalarType.I32: (-(2**31), 2**31 - 1),
    ScalarType.I64: (-(2**63), _I64_MAX),
    ScalarType.U32: (0, 2**32 - 1),
    ScalarType.U64: (0, 2**64 - 1),
}
"""The smallest and largest values of each integer type."""


@record
class InputRules:
    """The input forms that are accepted in addition to the usual form of each type, such as `"12"` for an integer."""

    integer_text: bool = False  # "12" for an integer
    integral_float: bool = False  # 3.0 for an integer
    epoch_number: bool = False  # 19723 for a Date
    # Reject integers that JavaScript cannot represent exactly, unless they are passed as strings.
    safe_integers: bool = False
    max_integer: int = 2**64 - 1


PARAMETER_RULES = InputRules(integer_text=True, max_integer=_I64_MAX)
JAVASCRIPT_RULES = InputRules(integer_text=True, max_integer=_I64_MAX, safe_integers=True)
PYTHON_RULES = InputRules(integer_text=True)
LOAD_RULES = InputRules(epoch_number=True)
ASSIGNMENT_RULES = InputRules(integral_float=True, epoch_number=True)


Converter = Callable[[Any], Any]


@lru_cache(maxsize=1024)
def converter_for(property_type: PropertyType, rules: InputRules) -> Converter:
    """Return a function that converts input values to stored values. The function may raise `ConversionMismatch`.

    >>> converter_for(PropertyType(ScalarType.DATE), LOAD_RULES)("1970-01-02")
    1
    """
    type_text = property_type.as_nullable(False).display()
    convert_non_null = _non_null_converter(property_type, rules, type_text)

    def convert(value: Any) -> Any:
        if value is None:
            if property_type.nullable:
                return None
            raise ConversionMismatch(type_text, "null")
        try:
            return convert_non_null(unwrap_value(value))
        except ConversionMismatch as mismatch:
            raise read_stand_in(value) or mismatch from None

    return convert


def _non_null_converter(property_type: PropertyType, rules: InputRules, type_text: str) -> Converter:
    scalar_type = ScalarType.F32 if property_type.is_vector else property_type.scalar
    scalar_converter = _SCALAR_CONVERTERS[scalar_type]

    def convert_scalar(value: Any) -> Any:
        return scalar_converter(scalar_type, rules, value)

    def convert_array(items: Any) -> tuple[Any, ...]:
        if not isinstance(items, (list, tuple)):
            raise ConversionMismatch(f"{type_text} (an array)", describe(items))
        if property_type.is_vector and len(items) != property_type.vector_dim:
            raise ConversionMismatch(type_text, f"an array of length {len(items)}")
        return tuple(
            _convert_element(type_text, convert_scalar, position, item) for position, item in enumerate(items, 1)
        )

    return convert_array if property_type.is_list or property_type.is_vector else convert_scalar


def _convert_element(type_text: str, convert_scalar: Converter, position: int, item: Any) -> Any:
    try:
        return convert_scalar(unwrap_value(item))
    except ConversionMismatch as mismatch:
        raise ConversionMismatch(type_text, f"{mismatch.actual} at position {position}", mismatch.hint) from None


def unwrap_value(value: Any) -> Any:
    """Unwrap Enum, NumPy and Arrow values, using duck typing to avoid importing NumPy or Arrow."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, int, float, list, tuple, memoryview)):
        return value
    for method_name in ("tolist", "to_pylist", "as_py"):
        if hasattr(value, method_name):
            return getattr(value, method_name)()
    return value


def _convert_text(scalar_type: ScalarType, rules: InputRules, value: Any) -> str:
    if isinstance(value, str) and _is_unicode(value):
        return str(value)
    raise ConversionMismatch(scalar_type.value, describe(value))


def _convert_blob(scalar_type: ScalarType, rules: InputRules, value: Any) -> bytes | BlobUri | BlobSource:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, BlobUri | BlobSource):
        return value
    if not isinstance(value, str) and (source := blob_source(value)) is not None:
        return source
    blob = parse_blob(_convert_text(scalar_type, rules, value))
    if blob is None:
        raise ConversionMismatch("Blob (base64 with padding)", "malformed base64")
    return blob


def _convert_bool(scalar_type: ScalarType, rules: InputRules, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ConversionMismatch(scalar_type.value, describe(value))


def _convert_integer(scalar_type: ScalarType, rules: InputRules, value: Any) -> int:
    integer = _parse_integer(rules, value)
    if integer is None:
        raise ConversionMismatch(scalar_type.value, describe(value))
    lowest, highest = RANGES[scalar_type]
    highest = min(highest, rules.max_integer)
    if not lowest <= integer <= highest:
        raise ConversionMismatch(f"{scalar_type.value} ({lowest} to {highest})", describe(value))
    if rules.safe_integers and not isinstance(value, str) and abs(integer) > _MAX_SAFE_INTEGER:
        raise ConversionMismatch(
            f"{scalar_type.value} as a string (integers beyond 2^53 must be strings)", describe(value)
        )
    return integer


def _parse_integer(rules: InputRules, value: Any) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return int(value)
        case str() if rules.integer_text and _INTEGER_TEXT.fullmatch(value):
            return int(value)
        case float() if rules.integral_float and value.is_integer():
            return int(value)
    return None


def _convert_float(scalar_type: ScalarType, rules: InputRules, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConversionMismatch(scalar_type.value, describe(value))
    try:
        converted: float | None = float(value)
    except OverflowError:  # the integer is too large for any float
        converted = None
    if converted is not None and scalar_type is ScalarType.F32:
        converted = narrow_to_f32(converted) if math.isfinite(converted) else None
    if converted is None or not math.isfinite(converted):
        raise ConversionMismatch(f"finite {scalar_type.value}", describe(value))
    return converted


def _convert_date(scalar_type: ScalarType, rules: InputRules, value: Any) -> int:
    return _convert_time(scalar_type, rules, value, parse_date, date_to_days, (FIRST_DAY, LAST_DAY))


def _convert_datetime(scalar_type: ScalarType, rules: InputRules, value: Any) -> int:
    return _convert_time(scalar_type, rules, value, parse_datetime, date_to_millis, (FIRST_MILLIS, LAST_MILLIS))


def _convert_time(
    scalar_type: ScalarType,
    rules: InputRules,
    value: Any,
    parse_text: Callable[[str], int | None],
    convert_date: Callable[[date], int | None],
    allowed_range: tuple[int, int],
) -> int:
    stored_number: int | None = None
    if isinstance(value, str):
        stored_number = parse_text(value)
    elif isinstance(value, date):
        stored_number = convert_date(value)
    elif rules.epoch_number and isinstance(value, int) and not isinstance(value, bool):
        stored_number = int(value) if allowed_range[0] <= value <= allowed_range[1] else None
    if stored_number is None:
        time_form = f"{scalar_type.value} ({_TIME_FORMS[scalar_type]})"
        hint = hint_for(value) if scalar_type is ScalarType.DATETIME else _date_hint(value)
        raise ConversionMismatch(time_form, describe(value), hint)
    return stored_number


def _date_hint(value: object) -> str | None:
    """Return a hint for a time that was passed as a Date.

    The hint does not suggest a time zone, because the date would then depend on it.
    """
    return "pass only the date, as in value.date()" if isinstance(value, datetime) else None


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which a JSON escape can produce
        return False
    return True


_TIME_FORMS = {
    ScalarType.DATE: "YYYY-MM-DD, years 0001 to 9999",
    ScalarType.DATETIME: "RFC 3339 with offset, years 0001 to 9999",
}

_SCALAR_CONVERTERS: dict[ScalarType, Callable[[ScalarType, InputRules, Any], Any]] = {
    ScalarType.STRING: _convert_text,
    ScalarType.BLOB: _convert_blob,
    ScalarType.BOOL: _convert_bool,
    ScalarType.I32: _convert_integer,
    ScalarType.I64: _convert_integer,
    ScalarType.U32: _convert_integer,
    ScalarType.U64: _convert_integer,
    ScalarType.F32: _convert_float,
    ScalarType.F64: _convert_float,
    ScalarType.DATE: _convert_date,
    ScalarType.DATETIME: _convert_datetime,
}
