"""Encode stored values as JSON: for query results and for exports.

The two differ on purpose: results are for people and clients, exports must load back unchanged.
"""

import math
from collections.abc import Callable
from typing import Any

from omnigraph.values.blobs import format_blob
from omnigraph.values.dates import format_date, format_datetime
from omnigraph.values.types import PropertyType, ScalarType

_SAFE = 2**53 - 1


def encode_result(kind: PropertyType, value: Any, *, sdk: bool = False) -> Any:
    """Return the JSON value of a query result; `integers_as_text` writes large integers as text.

    >>> encode_result(PropertyType(ScalarType.DATETIME), 0)
    '1970-01-01T00:00:00.000Z'
    >>> encode_result(PropertyType(ScalarType.I64), 2**53, sdk=True)
    '9007199254740992'
    """
    return _encode(kind, value, lambda scalar, one: _result(scalar, one, sdk))


def encode_export(kind: PropertyType, value: Any) -> Any:
    """Return the JSON value for an export: dates and instants stay numbers, blobs become text.

    >>> encode_export(PropertyType(ScalarType.DATETIME), 0), encode_export(
    ...     PropertyType(ScalarType.BLOB), b"hi")
    (0, 'base64:aGk=')
    """
    return _encode(kind, value, _export)


def _encode(kind: PropertyType, value: Any, one: Callable[[ScalarType, Any], Any]) -> Any:
    if value is None:
        return None
    if kind.is_vector:
        return [float(x) if x is not None and math.isfinite(x) else None for x in value]
    if kind.is_list:
        return [None if item is None else one(kind.scalar, item) for item in value]
    return one(kind.scalar, value)


def _result(scalar: ScalarType, value: Any, sdk: bool) -> Any:
    if scalar is ScalarType.DATE:
        return format_date(value)
    if scalar is ScalarType.DATETIME:
        return format_datetime(value)
    if sdk and scalar.is_integer and abs(value) > _SAFE:
        return str(value)
    return _export(scalar, value)


def _export(scalar: ScalarType, value: Any) -> Any:
    if scalar is ScalarType.BLOB:
        return format_blob(value)
    if scalar.is_float:
        return float(value) if math.isfinite(value) else _non_finite(value)
    return value


def _non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
