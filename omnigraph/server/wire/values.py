"""Convert property values from Python to JSON, in the same format as query results."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.values import format_blob


def to_wire_value(value: Any) -> Any:
    """Return a value as JSON: times end in `Z`, blobs are base64, and NaN and infinities are strings.

    >>> to_wire_value({"at": datetime(2024, 1, 31, tzinfo=UTC), "x": [1.5, float("nan")]})
    {'at': '2024-01-31T00:00:00.000Z', 'x': [1.5, 'NaN']}
    """
    if isinstance(value, Mapping):
        return {name: to_wire_value(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire_value(item) for item in value]
    if isinstance(value, bytes):
        return format_blob(value)
    if isinstance(value, date):
        return _format_time(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _format_time(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    moment = value.astimezone(UTC) if value.tzinfo is not None else value
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
