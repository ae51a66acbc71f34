"""Arrow columns as JSON values, by their Arrow types.

Owns the encoding that results, the command line and notebooks share: dates and times as text,
non-finite numbers as strings. The rules are those of `values.encode`.
"""

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from omnigraph.values import format_blob

Encoder = Callable[[Any], Any]
_ROWS = 8_192


def encoder(kind: pa.DataType) -> Encoder | None:
    """Return the function that makes a column's Python value JSON; None if it is JSON already.

    >>> encoder(pa.float64())(float("nan")), encoder(pa.string())
    ('NaN', None)
    """
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(kind.value_type)
    if pa.types.is_struct(kind):
        return _struct(kind)
    return next((convert for fits, convert in _SIMPLE if fits(kind)), None)


def encoded(column: Any) -> list[Any]:
    """Return the values of a column as JSON."""
    values: list[Any] = column.to_pylist()
    one = encoder(column.type)
    return values if one is None else [None if v is None else one(v) for v in values]


def json_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield each row as an object by column name, a few thousand rows in memory at a time."""
    names = table.column_names
    for batch in table.to_batches(max_chunksize=_ROWS):
        for row in zip(*(encoded(column) for column in batch.columns), strict=True):
            yield dict(zip(names, row, strict=True))


def _number(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _moment(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _vector(value: list[float | None]) -> list[float | None]:
    return [x if x is not None and math.isfinite(x) else None for x in value]


def _list(kind: pa.DataType) -> Encoder | None:
    one = encoder(kind)
    if one is None:
        return None
    return lambda value: [None if item is None else one(item) for item in value]


def _struct(kind: pa.DataType) -> Encoder | None:
    inner = {field.name: encoder(field.type) for field in kind}
    changed = {name: one for name, one in inner.items() if one is not None}
    if not changed:
        return None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        done = dict(value)
        for name, one in changed.items():
            if done[name] is not None:
                done[name] = one(done[name])
        return done

    return convert


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Encoder], ...] = (
    (pa.types.is_floating, _number),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_date, lambda value: value.isoformat()),
    (pa.types.is_binary, format_blob),
    (pa.types.is_large_binary, format_blob),
    (pa.types.is_fixed_size_list, _vector),
)
