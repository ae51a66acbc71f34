"""Convert Arrow columns to JSON values, based on the columns' Arrow types.

Results, the command line and notebooks share this encoding: dates, times and non-finite numbers become strings. It
follows the same rules as `values.encode`.
"""

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.result_rows import ProjectedRows, as_table
from omnigraph.values import format_blob

JsonEncoder = Callable[[Any], Any]
_ROWS_PER_BATCH = 8_192
_MIN_ROWS_FOR_ARROW = 16  # with fewer rows, converting each value in Python is faster than using Arrow
_TIMESTAMP_MILLIS_RANGE = (-62_135_596_800_000, 253_402_300_799_999)  # the years 1 to 9999, as in `datetime`


def make_json_encoder(arrow_type: pa.DataType) -> JsonEncoder | None:
    """Return a function that converts a column's Python values to JSON, or None if no conversion is needed.

    >>> make_json_encoder(pa.float64())(float("nan")), make_json_encoder(pa.string())
    ('NaN', None)
    """
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return _make_list_encoder(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return _make_struct_encoder(arrow_type)
    return next((encode_value for matches_type, encode_value in _ENCODERS_BY_TYPE if matches_type(arrow_type)), None)


def encode_column(column: Any) -> list[Any]:
    """Return the values of a column as JSON values."""
    if len(column) >= _MIN_ROWS_FOR_ARROW:
        encoded_values = _encode_with_arrow(column)
        if encoded_values is not None:
            return encoded_values
    column_values: list[Any] = column.to_pylist()
    encode_value = make_json_encoder(column.type)
    return (
        column_values
        if encode_value is None
        else [None if value is None else encode_value(value) for value in column_values]
    )


def _encode_with_arrow(column: Any) -> list[Any] | None:
    """Encode a column without a Python call for each value, or return None if its type or values do not allow it.

    Arrow formats dates and times, and NumPy converts numbers and strings. The results are the same as when the values
    are encoded one by one.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_timestamp(array.type):
        array = _format_timestamps(array)
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.string())
    if array is None:
        return None
    arrow_type = array.type
    is_finite_number = pa.types.is_integer(arrow_type) or (
        pa.types.is_floating(arrow_type) and array.null_count == 0 and pc.all(pc.is_finite(array)).as_py()
    )
    if pa.types.is_string(arrow_type) or (is_finite_number and array.null_count == 0):
        encoded_values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return encoded_values
    return None


def _format_timestamps(timestamps: Any) -> Any:
    """Return timestamps as text such as `2024-01-31T12:00:00.000Z`.

    Return None for units other than milliseconds, which no property uses, and for years outside 1 to 9999.
    """
    if timestamps.type.unit != "ms":
        return None
    bounds = pc.min_max(timestamps.cast(pa.int64())).as_py()
    lowest, highest = _TIMESTAMP_MILLIS_RANGE
    if bounds["min"] is not None and not (lowest <= bounds["min"] and bounds["max"] <= highest):
        return None
    text = timestamps.cast(pa.timestamp("ms")).cast(pa.string())
    return pc.binary_join_element_wise(pc.utf8_replace_slice(text, 10, 11, "T"), "Z", "")


def iter_json_rows(rows: pa.Table | ProjectedRows) -> Iterator[dict[str, Any]]:
    """Yield each row as an object keyed by column name, holding only a few thousand rows in memory at a time."""
    column_names = rows.schema.names
    for columns in _iter_columns(rows):
        for row_values in zip(*(encode_column(column) for column in columns), strict=True):
            yield dict(zip(column_names, row_values, strict=True))


def _iter_columns(rows: pa.Table | ProjectedRows) -> Iterator[list[pa.Array]]:
    """Yield the columns of a few thousand rows at a time."""
    if isinstance(rows, ProjectedRows) and rows.num_rows <= _ROWS_PER_BATCH:
        yield rows.arrays
        return
    for batch in as_table(rows).to_batches(max_chunksize=_ROWS_PER_BATCH):
        yield batch.columns


def _encode_float(number: float) -> Any:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _encode_timestamp(timestamp: datetime) -> str:
    return timestamp.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _encode_vector(vector: list[float | None]) -> list[float | None]:
    return [component if component is not None and math.isfinite(component) else None for component in vector]


def _make_list_encoder(item_type: pa.DataType) -> JsonEncoder | None:
    encode_item = make_json_encoder(item_type)
    if encode_item is None:
        return None
    return lambda items: [None if item is None else encode_item(item) for item in items]


def _make_struct_encoder(struct_type: pa.DataType) -> JsonEncoder | None:
    field_encoders = {field.name: make_json_encoder(field.type) for field in struct_type}
    needed_encoders = {
        field_name: encode_field for field_name, encode_field in field_encoders.items() if encode_field is not None
    }
    if not needed_encoders:
        return None

    def encode_struct(struct_value: dict[str, Any]) -> dict[str, Any]:
        encoded_struct = dict(struct_value)
        for field_name, encode_field in needed_encoders.items():
            if encoded_struct[field_name] is not None:
                encoded_struct[field_name] = encode_field(encoded_struct[field_name])
        return encoded_struct

    return encode_struct


_ENCODERS_BY_TYPE: tuple[tuple[Callable[[pa.DataType], bool], JsonEncoder], ...] = (
    (pa.types.is_floating, _encode_float),
    (pa.types.is_timestamp, _encode_timestamp),
    (pa.types.is_date, lambda value: value.isoformat()),
    (pa.types.is_binary, format_blob),
    (pa.types.is_large_binary, format_blob),
    (pa.types.is_fixed_size_list, _encode_vector),
)
