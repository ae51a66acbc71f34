"""Convert a property's values to an Arrow column.

A fast path handles columns of plain values, and a slow path finds values that do not fit. Both build the same column;
only the slow path reports faults.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import (
    ClientError,
    ExternalBlobPolicyError,
    ExternalBlobSourceError,
    InputError,
    PropertyValueError,
)
from omnigraph.lang.schema.catalog import PropertyDefinition
from omnigraph.storage.arrow import arrow_type
from omnigraph.storage.pending_blobs import accept_blob
from omnigraph.values import BlobSource, BlobUri, PropertyType, ScalarType, coerce_loaded
from omnigraph.values.dates import FIRST_DAY, FIRST_MILLIS, LAST_DAY, LAST_MILLIS

from .load_limits import LARGE_BLOB_HINT, ROW_LIMIT_HINT, LoadLimits, check_limit
from .streamed_blobs import StreamedBlob

FaultCallback = Callable[[int, ClientError], object]

_PLAIN_TYPES: dict[ScalarType, set[type]] = {
    ScalarType.STRING: {str},
    ScalarType.BOOL: {bool},
    ScalarType.I32: {int},
    ScalarType.I64: {int},
    ScalarType.U32: {int},
    ScalarType.U64: {int},
    ScalarType.F32: {float, int},
    ScalarType.F64: {float, int},
    ScalarType.DATE: {int},
    ScalarType.DATETIME: {int},
}
_NONE_TYPE = type(None)
_VALUE_ERRORS = (PropertyValueError, InputError, ExternalBlobPolicyError, ExternalBlobSourceError)
_DATE_RANGES = {ScalarType.DATE: (FIRST_DAY, LAST_DAY), ScalarType.DATETIME: (FIRST_MILLIS, LAST_MILLIS)}


def build_column(
    prop: PropertyDefinition,
    values: Sequence[Any],
    type_name: str,
    report_fault: FaultCallback,
    limits: LoadLimits | None = None,
) -> pa.Array:
    """Build a property's column; values that do not fit are passed, with their errors, to `report_fault`."""
    plain_column = _build_plain_column(prop.type, values)
    built_column = (
        plain_column if plain_column is not None else _build_value_by_value(prop, values, type_name, report_fault)
    )
    check_value_size(built_column, f"{type_name}.{prop.name}", limits or LoadLimits())
    return built_column


def stored_column(property_type: PropertyType, stored_values: Sequence[Any]) -> pa.Array:
    """Build a column from values, which must already be in their stored form."""
    if property_type.scalar is ScalarType.BLOB:
        return pa.array(stored_values, pa.large_binary())
    return pa.array(stored_values, arrow_type(property_type))


def _build_plain_column(property_type: PropertyType, values: Sequence[Any]) -> pa.Array | None:
    """Build the column if all values are plain; otherwise return None."""
    if property_type.is_list or property_type.is_vector:
        return _build_plain_lists(property_type, values)
    value_types = set(map(type, values))
    has_nulls = _NONE_TYPE in value_types
    accepted_types = _PLAIN_TYPES.get(property_type.scalar)
    if (
        accepted_types is None
        or (has_nulls and not property_type.nullable)
        or not value_types - {_NONE_TYPE} <= accepted_types
    ):
        return None
    try:
        plain_column = pa.array(values, arrow_type(property_type))
    except (pa.ArrowException, OverflowError, ValueError):
        return None
    return plain_column if _is_in_range(property_type.scalar, plain_column) else None


def _is_in_range(scalar_type: ScalarType, plain_column: pa.Array) -> bool:
    if len(plain_column) == plain_column.null_count:
        return True
    if scalar_type.is_float:
        return bool(pc.all(pc.is_finite(plain_column)).as_py())
    if scalar_type in _DATE_RANGES:
        first_allowed, last_allowed = _DATE_RANGES[scalar_type]
        value_range = pc.min_max(plain_column.cast(pa.int32() if scalar_type is ScalarType.DATE else pa.int64()))
        return bool(first_allowed <= value_range["min"].as_py() and value_range["max"].as_py() <= last_allowed)
    return True


def _build_plain_lists(property_type: PropertyType, values: Sequence[Any]) -> pa.Array | None:
    value_types = set(map(type, values))
    if not value_types <= {list, _NONE_TYPE} or (_NONE_TYPE in value_types and not property_type.nullable):
        return None
    present_lists = [value for value in values if value is not None]
    if property_type.is_vector and set(map(len, present_lists)) - {property_type.vector_dim}:
        return None
    item_column = _build_plain_column(property_type.element_type(), list(chain.from_iterable(present_lists)))
    if item_column is None:
        return None
    if property_type.vector_dim is not None:
        list_column = pa.FixedSizeListArray.from_arrays(item_column, property_type.vector_dim)
    else:
        list_offsets = np.cumsum([0, *map(len, present_lists)], dtype=np.int32)
        list_column = pa.ListArray.from_arrays(pa.array(list_offsets), item_column)
    list_column = list_column.cast(arrow_type(property_type))
    return list_column if len(present_lists) == len(values) else list_column.take(_positions_among_non_nulls(values))


def _positions_among_non_nulls(values: Sequence[Any]) -> pa.Array:
    """For each value, return its position among the non-null values; nulls stay null."""
    is_null = np.array([value is None for value in values])
    return pa.array(np.cumsum(~is_null) - 1, pa.int64(), mask=is_null)


def _build_value_by_value(
    prop: PropertyDefinition, values: Sequence[Any], type_name: str, report_fault: FaultCallback
) -> pa.Array:
    """Convert one value at a time; a value that does not fit is reported and becomes null."""
    stored_values: list[Any] = []
    for position, value in enumerate(values):
        if type(value) is StreamedBlob and prop.type.scalar is ScalarType.BLOB:
            stored_values.append(value.placeholder)
            continue
        text_value = value.read_text() if type(value) is StreamedBlob else value
        try:
            stored_value = coerce_loaded(prop.type, text_value, type_name=type_name, property_name=prop.name)
            if isinstance(stored_value, BlobUri | BlobSource):
                stored_value = accept_blob(stored_value)
        except _VALUE_ERRORS as error:
            report_fault(position, error)
            stored_value = None
        stored_values.append(stored_value)
    return stored_column(prop.type, stored_values)


def check_value_size(built_column: pa.Array, column_name: str, limits: LoadLimits) -> None:
    """Raise an error if a string or blob exceeds the size limit for a value."""
    item_values = built_column.flatten() if pa.types.is_list(built_column.type) else built_column
    has_lengths = pa.types.is_string(item_values.type) or pa.types.is_large_binary(item_values.type)
    if has_lengths and item_values.nbytes > limits.value_bytes:
        longest_bytes = pc.max(pc.binary_length(item_values)).as_py() or 0
        is_blob = pa.types.is_large_binary(item_values.type)
        hint = f"{LARGE_BLOB_HINT}; or {ROW_LIMIT_HINT}" if is_blob else ROW_LIMIT_HINT
        check_limit(f"one {column_name} value", longest_bytes, limits.value_bytes, hint)
