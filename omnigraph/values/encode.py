"""Encode stored values as JSON, for query results or for exports.

The two encodings differ on purpose: results are read by people and clients, whereas loading an export must
restore exactly the same values.
"""

import math
from collections.abc import Callable
from typing import Any

from omnigraph.values.blobs import format_blob
from omnigraph.values.dates import format_date, format_datetime
from omnigraph.values.types import PropertyType, ScalarType

_MAX_SAFE_INTEGER = 2**53 - 1


def encode_result(property_type: PropertyType, value: Any, *, integers_as_text: bool = False) -> Any:
    """Encode a value for a query result. If `integers_as_text` is true, large integers become strings.

    >>> encode_result(PropertyType(ScalarType.DATETIME), 0)
    '1970-01-01T00:00:00.000Z'
    >>> encode_result(PropertyType(ScalarType.I64), 2**53, integers_as_text=True)
    '9007199254740992'
    """
    return _encode_value(
        property_type, value, lambda scalar, item: _encode_result_scalar(scalar, item, integers_as_text)
    )


def encode_export(property_type: PropertyType, value: Any) -> Any:
    """Encode a value for an export. Dates and datetimes remain numbers, and blobs become strings.

    >>> encode_export(PropertyType(ScalarType.DATETIME), 0), encode_export(
    ...     PropertyType(ScalarType.BLOB), b"hi")
    (0, 'base64:aGk=')
    """
    return _encode_value(property_type, value, _encode_export_scalar)


def _encode_value(property_type: PropertyType, value: Any, encode_scalar: Callable[[ScalarType, Any], Any]) -> Any:
    if value is None:
        return None
    if property_type.is_vector:
        return [float(component) if component is not None and math.isfinite(component) else None for component in value]
    if property_type.is_list:
        return [None if item is None else encode_scalar(property_type.scalar, item) for item in value]
    return encode_scalar(property_type.scalar, value)


def _encode_result_scalar(scalar_type: ScalarType, value: Any, integers_as_text: bool) -> Any:
    if scalar_type is ScalarType.DATE:
        return format_date(value)
    if scalar_type is ScalarType.DATETIME:
        return format_datetime(value)
    if integers_as_text and scalar_type.is_integer and abs(value) > _MAX_SAFE_INTEGER:
        return str(value)
    return _encode_export_scalar(scalar_type, value)


def _encode_export_scalar(scalar_type: ScalarType, value: Any) -> Any:
    if scalar_type is ScalarType.BLOB:
        return format_blob(value)
    if scalar_type.is_float:
        return float(value) if math.isfinite(value) else _encode_non_finite(value)
    return value


def _encode_non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
