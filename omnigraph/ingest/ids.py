"""Ids of entities: derived from the key, as given, or generated.

A key always yields the same id; an id that is given together with a key must equal it.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.ids import new_ulid, reserve_ulids
from omnigraph.lang.schema.catalog import Node
from omnigraph.lang.schema.ir import SchemaIR, key_order
from omnigraph.values import PropertyType, ScalarType, entity_id, spell_float

from .columns import Fault

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_TRIPLES = _ALPHABET[np.arange(32**3)[:, None] >> np.array([10, 5, 0]) & 31]
_LOW_BITS = 50  # ten digits of five bits
_LOW = (1 << _LOW_BITS) - 1
_WHOLE = {ScalarType.DATE: pa.int32(), ScalarType.DATETIME: pa.int64()}


def key_ids(ir: SchemaIR, node: Node, rows: pa.Table, fault: Fault) -> pa.Array:
    """Return the ids of keyed nodes; a null or empty key is reported and yields null."""
    names = key_order(ir, node.name)
    kinds = [_type_of(node, name) for name in names]
    parts = [spelled(kind, rows[name]) for kind, name in zip(kinds, names, strict=True)]
    if len(parts) == 1:
        ids = parts[0]
        bad = pc.or_kleene(pc.is_null(ids), pc.equal(ids, ""))
        if not pc.any(bad).as_py():
            return ids
    return _one_by_one(names, parts, fault)


def spelled(kind: PropertyType, column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the canonical spelling of every value of a column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if kind.scalar is ScalarType.STRING:
        return column
    if kind.scalar.is_float:
        single = kind.scalar is ScalarType.F32
        values = [v if v is None else spell_float(v, single=single) for v in column.to_pylist()]
        return pa.array(values, pa.string())
    if kind.scalar in _WHOLE:
        column = column.cast(_WHOLE[kind.scalar])
    return column.cast(pa.string())


def given_ids(values: Sequence[object] | pa.Array, fault: Fault) -> pa.Array:
    """Return the given ids, generated where missing; values that are not strings are reported."""
    if isinstance(values, pa.Array):
        if _texts(values) and not values.null_count and not pc.any(pc.equal(values, "")).as_py():
            return values
        values = values.to_pylist()
    return pa.array([_given(at, value, fault) for at, value in enumerate(values)], pa.string())


def made_ids(count: int) -> pa.Array:
    """Generate increasing ULIDs.

    >>> first, second = made_ids(2).to_pylist()
    >>> len(first), first < second
    (26, True)
    """
    start = reserve_ulids(count)
    low = (start & _LOW) + np.arange(count, dtype=np.int64)
    high = [start >> _LOW_BITS, (start >> _LOW_BITS) + 1]  # the low part may overflow once
    upper = np.array([[number >> 5 * at & 31 for at in range(15, -1, -1)] for number in high])
    digits = np.empty((count, 26), np.uint8)
    digits[:, :16] = _ALPHABET[upper][low >> _LOW_BITS]
    digits[:, 16] = _ALPHABET[low >> 45 & 31]
    for at, shift in ((17, 30), (20, 15), (23, 0)):
        digits[:, at : at + 3] = _TRIPLES[low >> shift & 32767]
    offsets = pa.array(np.arange(0, 26 * count + 1, 26, dtype=np.int32))
    return pa.StringArray.from_buffers(count, offsets.buffers()[1], pa.py_buffer(digits))


def agree(canonical: pa.Array, values: Sequence[object] | pa.Array, fault: Fault) -> None:
    """Report given ids that differ from the ids of their keys."""
    if isinstance(values, pa.Array):
        if _texts(values) and canonical.equals(values):
            return
        values = values.to_pylist()
    for at, value in enumerate(values):
        if value is None:
            continue
        expected = canonical[at].as_py()
        if not isinstance(value, str):
            fault(at, InputError(reason=f"id must be a string, got {type(value).__name__}"))
        elif expected is not None and value != expected:
            reason = f"id '{value}' does not match its key; expected '{expected}'"
            fault(at, InputError(reason=reason))


def _given(at: int, value: object, fault: Fault) -> str | None:
    if value is None:
        return new_ulid()
    if isinstance(value, str) and value:
        try:
            value.encode()
        except UnicodeEncodeError:
            fault(at, InputError(reason="id is not valid Unicode"))
            return None
        return value
    what = "is empty" if value == "" else f"must be a string, got {type(value).__name__}"
    fault(at, InputError(reason=f"id {what}"))
    return None


def _one_by_one(names: Sequence[str], parts: Sequence[pa.Array], fault: Fault) -> pa.Array:
    text = [PropertyType(ScalarType.STRING)] * len(names)
    found: list[str | None] = []
    for at, values in enumerate(zip(*(one.to_pylist() for one in parts), strict=True)):
        try:
            found.append(entity_id(text, values, names))
        except InputError as error:
            fault(at, error)
            found.append(None)
    return pa.array(found, pa.string())


def _texts(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type))


def _type_of(node: Node, name: str) -> PropertyType:
    prop = node.property(name)
    assert prop is not None  # noqa: S101 - a catalog names only columns that exist
    return prop.type
