"""Values in the JSON form of the expected rows, whatever library they came from."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any


def shown(value: Any) -> Any:
    """A value as results encode it in JSON."""
    if isinstance(value, datetime):
        text = value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
        return f"{text}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: shown(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [shown(one) for one in value]
    return value


def rows_shown(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """All rows in that spelling."""
    return [[shown(value) for value in row] for row in rows]


def bag(rows: Iterable[Any]) -> Counter[Any]:
    """Rows without their order; numbers are equal by value, true is no number."""
    return Counter(_still(row) for row in rows)


def listed(rows: Iterable[Any]) -> list[Any]:
    """Rows in their order, to be compared by value."""
    return [_still(row) for row in rows]


def _still(value: Any) -> Any:
    """Something that can be hashed and means the same; floats are told apart by nine digits."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        return float(f"{value:.9e}")
    if isinstance(value, Mapping):
        return tuple(sorted((name, _still(one)) for name, one in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(_still(one) for one in value)
    return value
