"""Lossless casts from the columns in a caller's table to stored columns.

Strings stay strings, numbers are widened or narrowed if every value fits, and timestamps still denote the same instant.
All other columns are converted one value at a time, using the same rules as for records.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.lang.schema.catalog import PropertyDefinition
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import ScalarType
from omnigraph.values.naive_times import assumes_utc

from .columns import FaultCallback, build_column
from .load_limits import LoadLimits


def cast_column(
    prop: PropertyDefinition, input_column: Any, type_name: str, report_fault: FaultCallback, limits: LoadLimits
) -> pa.Array:
    """Convert a table column to a property's column; values that do not fit are passed to `report_fault`."""
    if isinstance(input_column, pa.ChunkedArray):
        input_column = input_column.combine_chunks()
    if kinds.is_dictionary(input_column.type):
        input_column = input_column.dictionary_decode()
    cast_values = _cast_directly(prop, input_column)
    if cast_values is None or (cast_values.null_count and not prop.type.nullable):
        return build_column(prop, input_column.to_pylist(), type_name, report_fault, limits)
    return cast_values


def as_plain_strings(column: pa.Array) -> pa.Array:
    """Return a column of strings in the Arrow type that tables store. Other columns are returned unchanged.

    Frames from pandas and polars use other Arrow types for strings.
    """
    if kinds.is_dictionary(column.type) and _is_text(column.type.value_type):
        column = column.dictionary_decode()
    if kinds.is_string(column.type) or not _is_text(column.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowException:  # the strings are too long for one array
        return column


def _cast_directly(prop: PropertyDefinition, input_column: pa.Array) -> pa.Array | None:
    """Cast the column in one step; return None if it must be converted one value at a time."""
    is_blob = prop.type.scalar is ScalarType.BLOB
    target_type = pa.large_binary() if is_blob else arrow_type(prop.type)
    if input_column.type == target_type:
        return input_column
    if not _is_castable(input_column.type, target_type):
        return None
    # Only a timestamp's sub-millisecond digits may be truncated; numbers must fit exactly.
    is_timestamp = kinds.is_timestamp(input_column.type)
    try:
        cast_values = input_column.cast(target_type, safe=not is_timestamp)
    except pa.ArrowException:
        return None
    if is_timestamp and pc.any(pc.less(input_column.cast(pa.int64()), 0)).as_py():
        return None  # the cast would round times before 1970 up instead of down
    return cast_values


def _is_castable(source_type: pa.DataType, target_type: pa.DataType) -> bool:
    if kinds.is_null(source_type):
        return True
    if _is_list(source_type) or _is_list(target_type):
        return (
            _is_list(source_type)
            and _is_list(target_type)
            and (_is_castable(source_type.value_type, target_type.value_type))
        )
    return source_type == target_type or any(
        accepts_source(source_type) and accepts_target(target_type)
        for accepts_source, accepts_target in (
            (_is_text, kinds.is_string),
            (_is_bytes, kinds.is_large_binary),
            (_is_number, _is_number),
            (kinds.is_date, kinds.is_date32),
            (_is_instant, kinds.is_timestamp),
        )
    )


def _is_list(data_type: pa.DataType) -> bool:
    return bool(kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type))


def _is_text(data_type: pa.DataType) -> bool:
    return bool(kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_string_view(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(kinds.is_binary(data_type) or kinds.is_large_binary(data_type) or kinds.is_binary_view(data_type))


def _is_number(data_type: pa.DataType) -> bool:
    return bool(kinds.is_integer(data_type) or kinds.is_floating(data_type))


def _is_instant(data_type: pa.DataType) -> bool:
    """Return whether a type is a timestamp that denotes one instant: it has a time zone, or UTC is assumed.

    Arrow treats a timestamp without a time zone as UTC when it casts the timestamp.
    """
    return bool(kinds.is_timestamp(data_type) and (data_type.tz is not None or assumes_utc()))
