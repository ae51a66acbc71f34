"""Lossless casts from columns of a caller's table to stored columns.

Strings stay strings, numbers are widened or narrowed if every value fits, timestamps keep their
instant. Everything else is converted value by value, by the rules for records.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.lang.schema.catalog import Property
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import ScalarType

from .columns import Fault, column
from .limits import LoadLimits


def cast_column(
    prop: Property, given: Any, type_name: str, fault: Fault, limits: LoadLimits
) -> pa.Array:
    """Convert a table column to the column of a property; report misfits to `report_fault`."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if kinds.is_dictionary(given.type):
        given = given.dictionary_decode()
    made = _cast(prop, given)
    if made is None or (made.null_count and not prop.type.nullable):
        return column(prop, given.to_pylist(), type_name, fault, limits)
    return made


def _cast(prop: Property, given: pa.Array) -> pa.Array | None:
    """Cast the column in one step; None if it must be converted value by value."""
    blob = prop.type.scalar is ScalarType.BLOB
    target = pa.large_binary() if blob else arrow_type(prop.type)
    if given.type == target:
        return given
    if not _alike(given.type, target):
        return None
    # Of a timestamp only digits below a millisecond may be truncated; numbers must fit exactly.
    moments = kinds.is_timestamp(given.type)
    try:
        made = given.cast(target, safe=not moments)
    except pa.ArrowException:
        return None
    if moments and pc.any(pc.less(given.cast(pa.int64()), 0)).as_py():
        return None  # before 1970, the cast would round up instead of down
    return made


def _alike(source: pa.DataType, target: pa.DataType) -> bool:
    if kinds.is_null(source):
        return True
    if _is_list(source) or _is_list(target):
        return (
            _is_list(source) and _is_list(target) and (_alike(source.value_type, target.value_type))
        )
    return source == target or any(
        of(source) and to(target)
        for of, to in (
            (_is_text, kinds.is_string),
            (_is_bytes, kinds.is_large_binary),
            (_is_number, _is_number),
            (kinds.is_date, kinds.is_date32),
            (_is_moment, kinds.is_timestamp),
        )
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_binary_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind))


def _is_moment(kind: pa.DataType) -> bool:
    """Return whether this is a timestamp with a zone; without one the instant is ambiguous."""
    return bool(kinds.is_timestamp(kind) and kind.tz is not None)
