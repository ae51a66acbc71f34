"""Make filters work on tables whose columns Arrow cannot describe to Lance.

A filter is sent to Lance together with the schema of its table. Lance omits types that cannot be
sent, but misses unsigned integers inside lists: then no filter on such a table would work at all.
Unsigned columns are sent as wider signed types; Lance then compares by the stored type, so that
their indexes are used. Constants of a filter must be created here, or their types do not match.
"""

import importlib
from typing import Any

import pyarrow as pa

# Imported by name: the function `lance.dataset` hides the module.
_lance: Any = importlib.import_module("lance.dataset")
_known: Any = _lance._needs_substrait_placeholder
_serialize: Any = _lance._serialize_expression


def constant(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a value to compare a column of this type with.

    >>> constant(7, pa.uint32()).type, constant(7, pa.int32()).type
    (DataType(int64), DataType(int32))
    """
    return pa.scalar(value, _wider(kind))


def constants(values: pa.Array) -> pa.Array:
    """Return values of a column's own type for a test of membership."""
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
    """Patch Lance's filter serialization: which types to omit, and which to widen."""
    _lance._needs_substrait_placeholder = _needs_placeholder
    _lance._serialize_expression = _serialized
