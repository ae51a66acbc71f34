"""Conversion of the values of one property into one Arrow column.

Owns the fast path for columns of plain values, and the slow path that finds the values that do not
fit. Both build the same column; only the slow path reports faults.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ClientError, ExternalBlobPolicyError, PropertyValueError
from omnigraph.lang.schema.catalog import Property
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import BlobUri, PropertyType, ScalarType, coerce_loaded
from omnigraph.values.dates import FIRST_DAY, FIRST_MILLI, LAST_DAY, LAST_MILLI

from .limits import LoadLimits, within

Fault = Callable[[int, ClientError], object]

_PLAIN: dict[ScalarType, set[type]] = {
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
_NONE = type(None)
_SPANS = {
    ScalarType.DATE: (FIRST_DAY, LAST_DAY),
    ScalarType.DATETIME: (FIRST_MILLI, LAST_MILLI),
}


def column(
    prop: Property,
    values: Sequence[Any],
    type_name: str,
    fault: Fault,
    limits: LoadLimits | None = None,
) -> pa.Array:
    """Build the column of a property; report position and error of misfits to `report_fault`."""
    quick = _quick(prop.type, values)
    made = quick if quick is not None else _slow(prop, values, type_name, fault)
    within_limits(made, f"{type_name}.{prop.name}", limits or LoadLimits())
    return made


def stored_column(kind: PropertyType, values: Sequence[Any]) -> pa.Array:
    """Build the column of values that are already in their stored form."""
    if kind.scalar is ScalarType.BLOB:
        return pa.array(values, pa.large_binary())
    return pa.array(values, arrow_type(kind))


def _quick(kind: PropertyType, values: Sequence[Any]) -> pa.Array | None:
    """Build the column if all values are plain, else return None."""
    if kind.is_list or kind.is_vector:
        return _quick_lists(kind, values)
    types = set(map(type, values))
    nulls = _NONE in types
    plain = _PLAIN.get(kind.scalar)
    if plain is None or (nulls and not kind.nullable) or not types - {_NONE} <= plain:
        return None
    try:
        made = pa.array(values, arrow_type(kind))
    except (pa.ArrowException, OverflowError, ValueError):
        return None
    return made if _sound(kind.scalar, made) else None


def _sound(scalar: ScalarType, made: pa.Array) -> bool:
    if len(made) == made.null_count:
        return True
    if scalar.is_float:
        return bool(pc.all(pc.is_finite(made)).as_py())
    if scalar in _SPANS:
        first, last = _SPANS[scalar]
        bounds = pc.min_max(made.cast(pa.int32() if scalar is ScalarType.DATE else pa.int64()))
        return bool(first <= bounds["min"].as_py() and bounds["max"].as_py() <= last)
    return True


def _quick_lists(kind: PropertyType, values: Sequence[Any]) -> pa.Array | None:
    types = set(map(type, values))
    if not types <= {list, _NONE} or (_NONE in types and not kind.nullable):
        return None
    there = [one for one in values if one is not None]
    if kind.is_vector and set(map(len, there)) - {kind.vector_dim}:
        return None
    items = _quick(kind.element(), list(chain.from_iterable(there)))
    if items is None:
        return None
    if kind.vector_dim is not None:
        made = pa.FixedSizeListArray.from_arrays(items, kind.vector_dim)
    else:
        ends = np.cumsum([0, *map(len, there)], dtype=np.int32)
        made = pa.ListArray.from_arrays(pa.array(ends), items)
    made = made.cast(arrow_type(kind))
    return made if len(there) == len(values) else made.take(_places(values))


def _places(values: Sequence[Any]) -> pa.Array:
    """Return each value's position among the non-null values; null for null."""
    absent = np.array([one is None for one in values])
    return pa.array(np.cumsum(~absent) - 1, pa.int64(), mask=absent)


def _slow(prop: Property, values: Sequence[Any], type_name: str, fault: Fault) -> pa.Array:
    """Convert value by value; a value that does not fit is reported and becomes null."""
    stored: list[Any] = []
    for at, value in enumerate(values):
        try:
            one = coerce_loaded(prop.type, value, type_name=type_name, property=prop.name)
            if isinstance(one, BlobUri):
                raise _refused(one)
        except (PropertyValueError, ExternalBlobPolicyError) as error:
            fault(at, error)
            one = None
        stored.append(one)
    return stored_column(prop.type, stored)


def _refused(one: BlobUri) -> ExternalBlobPolicyError:
    return ExternalBlobPolicyError(uri=one.uri, reason="this graph allows no external blobs")


def within_limits(made: pa.Array, name: str, limits: LoadLimits) -> None:
    """Raise if a string or blob is too long for a value."""
    items = made.flatten() if pa.types.is_list(made.type) else made
    texts = pa.types.is_string(items.type) or pa.types.is_large_binary(items.type)
    if texts and items.nbytes > limits.value_bytes:
        longest = pc.max(pc.binary_length(items)).as_py() or 0
        within(f"one value of {name}", longest, limits.value_bytes)
