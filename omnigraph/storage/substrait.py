"""Lets filters reach tables whose columns Arrow cannot describe to Lance.

A filter travels with the schema of its table. Lance leaves out the types that cannot travel, but
forgets numbers without a sign inside of lists: then no filter on such a table would work at all.
Columns of numbers without a sign travel as wider ones; Lance then compares by the stored type, so
that their indexes are asked. Constants of a filter must be made here, or they do not fit.
"""

import importlib
from typing import Any

import pyarrow as pa

# By its name: `lance.dataset` is the function that hides the module.
_lance: Any = importlib.import_module("lance.dataset")
_known: Any = _lance._needs_substrait_placeholder
_serialize: Any = _lance._serialize_expression


def constant(value: Any, kind: pa.DataType) -> pa.Scalar:
    """One value to compare a column of this type with.

    >>> constant(7, pa.uint32()).type, constant(7, pa.int32()).type
    (DataType(int64), DataType(int32))
    """
    return pa.scalar(value, _wider(kind))


def constants(values: pa.Array) -> pa.Array:
    """Values of a column's own type, one of which its value shall be."""
    return values.cast(_wider(values.type))


def _wider(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_uint32(kind):
        return pa.int64()
    return pa.decimal128(20, 0) if pa.types.is_uint64(kind) else kind


def _needs_placeholder(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) and pa.types.is_unsigned_integer(kind.value_type):
        return True
    return bool(_known(kind))


def _serialized(expression: Any, schema: pa.Schema) -> Any:
    travels = [one.with_type(_wider(one.type)) for one in schema]
    return _serialize(expression, pa.schema(travels))


def mend_filters() -> None:
    """Teach Lance, once, which types to leave out, and as what others travel."""
    _lance._needs_substrait_placeholder = _needs_placeholder
    _lance._serialize_expression = _serialized
