"""Equality of stored values: byte for byte, column by column, never by a textual form.

Null equals only null; NaN equals the same NaN, and the two zeros differ. Lists and vectors are
equal when their elements are. No Python code runs per row.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

Mask = npt.NDArray[np.bool_]
_BITS = {"halffloat": pa.int16(), "float": pa.int32(), "double": pa.int64()}


def same_rows(one: pa.Table, other: pa.Table) -> Mask:
    """Return where the rows of two aligned tables are equal in every column of the first.

    >>> same_rows(pa.table({"x": [0.0, None]}), pa.table({"x": [-0.0, None]})).tolist()
    [False, True]
    """
    same = np.ones(one.num_rows, np.bool_)
    for name in one.column_names:
        same &= same_values(one[name], other[name])
    return same


def same_values(one: pa.Array | pa.ChunkedArray, other: pa.Array | pa.ChunkedArray) -> Mask:
    """Return where two columns of equal length have equal values."""
    return _same(_flat(one), _flat(other))


def _same(one: pa.Array, other: pa.Array) -> Mask:
    if one.type != other.type:
        other = other.cast(one.type)
    nulls, others = _nulls(one), _nulls(other)
    both = nulls & others
    if both.all():
        return both
    if kinds.is_struct(one.type):
        alike = _structs(one, other)
    elif kinds.is_fixed_size_list(one.type):
        alike = _vectors(one, other)
    elif kinds.is_list(one.type) or kinds.is_large_list(one.type):
        alike = _lists(one, other)
    else:
        alike = _scalars(one, other)
    return (alike & ~nulls & ~others) | both


def _scalars(one: pa.Array, other: pa.Array) -> Mask:
    bits = _BITS.get(str(one.type))
    if bits is not None:
        one, other = one.view(bits), other.view(bits)
    found: Mask = pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False)
    return found


def _vectors(one: pa.Array, other: pa.Array) -> Mask:
    """Compare all elements at once; the elements behind a null do not matter."""
    size = one.type.list_size
    if size == 0:
        return np.ones(len(one), np.bool_)
    places = [each.values.slice(each.offset * size, len(each) * size) for each in (one, other)]
    bits = _BITS.get(str(one.type.value_type))
    if bits is not None and not any(each.null_count for each in places):
        first, second = (each.view(bits).to_numpy().reshape(-1, size) for each in places)
        alike: Mask = np.all(first == second, axis=1)
        return alike
    found: Mask = np.all(_same(*places).reshape(len(one), size), axis=1)
    return found


def _lists(one: pa.Array, other: pa.Array) -> Mask:
    """Compare lengths first; then the elements of rows with equal lengths at once."""
    lengths = [pc.fill_null(pc.list_value_length(each), -1).to_numpy() for each in (one, other)]
    alike: Mask = lengths[0] == lengths[1]
    rows = np.flatnonzero(alike & (lengths[0] > 0))
    if len(rows) == 0:
        return alike
    first, second = (each.take(pa.array(rows)).flatten() for each in (one, other))
    parents = np.repeat(rows, lengths[0][rows])
    alike[parents[~_same(first, second)]] = False
    return alike


def _structs(one: pa.Array, other: pa.Array) -> Mask:
    same = np.ones(len(one), np.bool_)
    for at in range(one.type.num_fields):
        same &= _same(one.field(at), other.field(at))
    return same


def _nulls(column: pa.Array) -> Mask:
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    found: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
