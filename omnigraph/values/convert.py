"""Convert input values to stored values, or report why a value does not fit.

Stored forms: str, bool, int, float (F32 already narrowed), days or milliseconds since 1970 as int,
bytes or `BlobUri`, tuples for lists and vectors, None. Enum membership is a rule of the graph and
is not checked here. `coerce` raises the errors that users see.
"""

import math
import re
from collections.abc import Callable
from datetime import date
from enum import Enum
from functools import lru_cache
from typing import Any

from omnigraph.record import record
from omnigraph.values.blobs import BlobUri, parse_blob
from omnigraph.values.dates import (
    FIRST_DAY,
    FIRST_MILLI,
    LAST_DAY,
    LAST_MILLI,
    days_of,
    millis_of,
    parse_date,
    parse_datetime,
)
from omnigraph.values.describe import describe
from omnigraph.values.spelling import narrow
from omnigraph.values.types import PropertyType, ScalarType

_INTEGER_TEXT = re.compile(r"-?[0-9]{1,40}")
_SAFE = 2**53 - 1  # the largest integer that JavaScript holds exactly
_I64_MAX = 2**63 - 1

RANGES: dict[ScalarType, tuple[int, int]] = {
    ScalarType.I32: (-(2**31), 2**31 - 1),
    ScalarType.I64: (-(2**63), _I64_MAX),
    ScalarType.U32: (0, 2**32 - 1),
    ScalarType.U64: (0, 2**64 - 1),
}
"""The first and last value of each integer type."""


@record
class Surface:
    """What one entry point accepts beyond the plain form of a type."""

    integer_text: bool = False  # "12" for an integer
    integral_float: bool = False  # 3.0 for an integer
    epoch_number: bool = False  # 19723 for a Date
    safe_integers: bool = False  # refuse integers that JavaScript cannot hold, unless as text
    largest: int = 2**64 - 1


PARAMETER = Surface(integer_text=True, largest=_I64_MAX)
JAVASCRIPT = Surface(integer_text=True, largest=_I64_MAX, safe_integers=True)
PYTHON = Surface(integer_text=True)
LOAD = Surface(epoch_number=True)
ASSIGN = Surface(integral_float=True, epoch_number=True)


class Misfit(Exception):  # noqa: N818 - never leaves this package
    """A value does not fit its type: what was expected, and what was given."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(expected, actual)
        self.expected = expected
        self.actual = actual


Converter = Callable[[Any], Any]


@lru_cache(maxsize=1024)
def converter(kind: PropertyType, surface: Surface) -> Converter:
    """Return a function that converts input to the stored value or raises `ConversionMismatch`.

    >>> converter(PropertyType(ScalarType.DATE), LOAD)("1970-01-02")
    1
    """
    shown = kind.as_nullable(False).display()
    core = _core(kind, surface, shown)

    def convert(value: Any) -> Any:
        if value is None:
            if kind.nullable:
                return None
            raise Misfit(shown, "null")
        return core(_plain(value))

    return convert


def _core(kind: PropertyType, surface: Surface, shown: str) -> Converter:
    scalar = ScalarType.F32 if kind.is_vector else kind.scalar
    read = _SCALARS[scalar]

    def one(value: Any) -> Any:
        return read(scalar, surface, value)

    def many(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise Misfit(f"{shown} (an array)", describe(value))
        if kind.is_vector and len(value) != kind.vector_dim:
            raise Misfit(shown, f"an array of {len(value)}")
        return tuple(_element(shown, one, at, item) for at, item in enumerate(value, 1))

    return many if kind.is_list or kind.is_vector else one


def _element(shown: str, one: Converter, at: int, item: Any) -> Any:
    try:
        return one(_plain(item))
    except Misfit as misfit:
        raise Misfit(shown, f"{misfit.actual} at position {at}") from None


def _plain(value: Any) -> Any:
    """Unwrap Enum, numpy and Arrow values by duck typing; the libraries are never imported."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, int, float, list, tuple, memoryview)):
        return value
    for unwrap in ("tolist", "to_pylist", "as_py"):
        if hasattr(value, unwrap):
            return getattr(value, unwrap)()
    return value


def _text(scalar: ScalarType, surface: Surface, value: Any) -> str:
    if isinstance(value, str) and _is_unicode(value):
        return str(value)
    raise Misfit(scalar.value, describe(value))


def _blob(scalar: ScalarType, surface: Surface, value: Any) -> bytes | BlobUri:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, BlobUri):
        return value
    found = parse_blob(_text(scalar, surface, value))
    if found is None:
        raise Misfit("Blob (base64 with padding)", "malformed base64")
    return found


def _bool(scalar: ScalarType, surface: Surface, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Misfit(scalar.value, describe(value))


def _integer(scalar: ScalarType, surface: Surface, value: Any) -> int:
    number = _whole(surface, value)
    if number is None:
        raise Misfit(scalar.value, describe(value))
    low, high = RANGES[scalar]
    high = min(high, surface.largest)
    if not low <= number <= high:
        raise Misfit(f"{scalar.value} ({low} to {high})", describe(value))
    if surface.safe_integers and not isinstance(value, str) and abs(number) > _SAFE:
        raise Misfit(f"{scalar.value} beyond 2^53 as a string", describe(value))
    return number


def _whole(surface: Surface, value: Any) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return int(value)
        case str() if surface.integer_text and _INTEGER_TEXT.fullmatch(value):
            return int(value)
        case float() if surface.integral_float and value.is_integer():
            return int(value)
    return None


def _float(scalar: ScalarType, surface: Surface, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Misfit(scalar.value, describe(value))
    try:
        number: float | None = float(value)
    except OverflowError:  # an integer too large for any float
        number = None
    if number is not None and scalar is ScalarType.F32:
        number = narrow(number) if math.isfinite(number) else None
    if number is None or not math.isfinite(number):
        raise Misfit(f"finite {scalar.value}", describe(value))
    return number


def _date(scalar: ScalarType, surface: Surface, value: Any) -> int:
    return _time(scalar, surface, value, parse_date, days_of, (FIRST_DAY, LAST_DAY))


def _datetime(scalar: ScalarType, surface: Surface, value: Any) -> int:
    return _time(scalar, surface, value, parse_datetime, millis_of, (FIRST_MILLI, LAST_MILLI))


def _time(
    scalar: ScalarType,
    surface: Surface,
    value: Any,
    parse: Callable[[str], int | None],
    count: Callable[[date], int | None],
    bounds: tuple[int, int],
) -> int:
    found: int | None = None
    if isinstance(value, str):
        found = parse(value)
    elif isinstance(value, date):
        found = count(value)
    elif surface.epoch_number and isinstance(value, int) and not isinstance(value, bool):
        found = int(value) if bounds[0] <= value <= bounds[1] else None
    if found is None:
        raise Misfit(f"{scalar.value} ({_TIME_FORMS[scalar]})", describe(value))
    return found


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON escapes can spell
        return False
    return True


_TIME_FORMS = {
    ScalarType.DATE: "YYYY-MM-DD, years 0001 to 9999",
    ScalarType.DATETIME: "RFC 3339 with offset, years 0001 to 9999",
}

_SCALARS: dict[ScalarType, Callable[[ScalarType, Surface, Any], Any]] = {
    ScalarType.STRING: _text,
    ScalarType.BLOB: _blob,
    ScalarType.BOOL: _bool,
    ScalarType.I32: _integer,
    ScalarType.I64: _integer,
    ScalarType.U32: _integer,
    ScalarType.U64: _integer,
    ScalarType.F32: _float,
    ScalarType.F64: _float,
    ScalarType.DATE: _date,
    ScalarType.DATETIME: _datetime,
}
