"""Convert keys to JSON for requests, and JSON values in responses back to Python.

Query rows are sent as Arrow and need no conversion. Values to be written are converted by `property_values`.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any

from omnigraph.errors import InputError
from omnigraph.lang.schema.catalog import EdgeType, InterfaceType, NodeType
from omnigraph.values import PropertyType, ScalarType, format_blob
from omnigraph.values.blobs import BlobDigest, parse_blob
from omnigraph.values.describe_value import describe

_TEXT_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode_value(value: Any) -> Any:  # noqa: PLR0911 - one return per kind of value
    """Return a value as JSON.

    >>> encode_value({"born": date(1990, 1, 2), "ids": (1, 2), "body": b"hi", "x": float("inf")})
    {'born': '1990-01-02', 'ids': [1, 2], 'body': 'base64:aGk=', 'x': 'Infinity'}
    """
    if value is None or isinstance(value, str | bool):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Enum):
        return encode_value(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _encode_float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return format_blob(bytes(value))
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): encode_value(member) for name, member in value.items()}
    return _encode_object(value)


def _encode_object(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return encode_value(asdict(value))
    if isinstance(value, list | tuple | set | frozenset):
        return [encode_value(item) for item in value]
    for method_name in ("tolist", "to_pylist", "as_py"):  # NumPy and Arrow values
        convert = getattr(value, method_name, None)
        if convert is not None:
            return encode_value(convert())
    raise InputError(f"{describe(value)} cannot be sent to a server", reason="unsupported value")


def _encode_float(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def decode_properties(
    entity_type: NodeType | EdgeType | InterfaceType | None, values: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return an entity's properties as values of the Python types that an embedded graph returns."""
    if values is None:
        return None
    types = {} if entity_type is None else {declared.name: declared.type for declared in entity_type.properties}
    return {name: decode_value(types[name], value) if name in types else value for name, value in values.items()}


def decode_value(property_type: PropertyType, value: Any) -> Any:  # noqa: PLR0911 - one return per kind of value
    """Return a JSON value as the Python value of a property.

    >>> decode_value(PropertyType(ScalarType.DATE), "1990-01-02")
    datetime.date(1990, 1, 2)
    """
    if isinstance(value, list):
        return [decode_value(property_type, item) for item in value]
    if isinstance(value, dict) and property_type.scalar is ScalarType.BLOB:
        return BlobDigest(**value)  # a large blob in a merge conflict
    if not isinstance(value, str):
        return value
    match property_type.scalar:
        case ScalarType.DATE:
            return date.fromisoformat(value)
        case ScalarType.DATETIME:
            return datetime.fromisoformat(value)
        case ScalarType.BLOB:
            return parse_blob(value)
        case ScalarType.F32 | ScalarType.F64:
            return _TEXT_FLOATS.get(value, value)
        case _:
            return value
