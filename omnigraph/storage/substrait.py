"""Make filters work on tables with column types that Arrow cannot serialize for Lance.

A filter is sent to Lance together with the table schema. Lance removes the columns whose types cannot be serialized,
but it overlooks lists of unsigned integers. Without this module, every filter on a table with such a column would fail.
Unsigned columns are sent as wider signed types. Lance still compares the stored type, so it can use the indexes on
these columns. This module must also create the constants in filters, so that their types match the types that are sent.
"""

import importlib
from typing import Any

import pyarrow as pa

# Import the module by name, because the function `lance.dataset` hides it.
_lance_dataset_module: Any = importlib.import_module("lance.dataset")
_lance_needs_placeholder: Any = _lance_dataset_module._needs_substrait_placeholder
_lance_serialize: Any = _lance_dataset_module._serialize_expression


def filter_constant(value: Any, column_type: pa.DataType) -> pa.Scalar:
    """Convert a value to the form in which a filter can compare it with a column of this type.

    >>> filter_constant(7, pa.uint32()).type, filter_constant(7, pa.int32()).type
    (DataType(int64), DataType(int32))
    """
    return pa.scalar(value, _transport_type(column_type))


def filter_constants(values: pa.Array) -> pa.Array:
    """Convert values to the form that a membership filter needs. The values must have the column's type."""
    return values.cast(_transport_type(values.type))


def _transport_type(column_type: pa.DataType) -> pa.DataType:
    if pa.types.is_uint32(column_type):
        return pa.int64()
    return pa.decimal128(20, 0) if pa.types.is_uint64(column_type) else column_type


def _needs_placeholder(column_type: pa.DataType) -> bool:
    if pa.types.is_list(column_type) and pa.types.is_unsigned_integer(column_type.value_type):
        return True
    return bool(_lance_needs_placeholder(column_type))


def _serialize_filter(expression: Any, schema: pa.Schema) -> Any:
    transport_fields = [column.with_type(_transport_type(column.type)) for column in schema]
    return _lance_serialize(expression, pa.schema(transport_fields))


def patch_lance_filters() -> None:
    """Patch the filter serialization in Lance so that it omits lists of unsigned integers and widens unsigned types."""
    _lance_dataset_module._needs_substrait_placeholder = _needs_placeholder
    _lance_dataset_module._serialize_expression = _serialize_filter


patch_lance_filters()
