"""Compare stored values for equality, byte for byte and column by column, never as strings.

Null equals only null, NaN equals only a NaN with the same bits, and 0.0 and -0.0 differ. Lists and vectors are equal if
their elements are equal. No Python code runs for individual rows.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from .wide_rows import matching_slices

EqualityMask = npt.NDArray[np.bool_]
_BIT_TYPES = {"halffloat": pa.int16(), "float": pa.int32(), "double": pa.int64()}


def same_rows(left_rows: pa.Table, right_rows: pa.Table) -> EqualityMask:
    """Return a mask of the rows that are equal in every column of the first table.

    The rows of both tables must be in the same order.

    >>> same_rows(pa.table({"x": [0.0, None]}), pa.table({"x": [-0.0, None]})).tolist()
    [False, True]
    """
    is_equal = np.ones(left_rows.num_rows, np.bool_)
    for column_name in left_rows.column_names:
        is_equal &= same_values(left_rows[column_name], right_rows[column_name])
    return is_equal


def same_values(left_values: pa.Array | pa.ChunkedArray, right_values: pa.Array | pa.ChunkedArray) -> EqualityMask:
    """Return a mask of the positions at which two columns of the same length have equal values."""
    slices = matching_slices(pa.table({"values": left_values}), pa.table({"values": right_values}))
    masks = [_compare_arrays(_single_array(left["values"]), _single_array(right["values"])) for left, right in slices]
    return masks[0] if len(masks) == 1 else np.concatenate(masks)


def _compare_arrays(left_array: pa.Array, right_array: pa.Array) -> EqualityMask:
    if left_array.type != right_array.type:
        right_array = right_array.cast(left_array.type)
    left_nulls, right_nulls = _null_mask(left_array), _null_mask(right_array)
    both_null = left_nulls & right_nulls
    if both_null.all():
        return both_null
    if kinds.is_struct(left_array.type):
        is_equal = _compare_structs(left_array, right_array)
    elif kinds.is_fixed_size_list(left_array.type):
        is_equal = _compare_vectors(left_array, right_array)
    elif kinds.is_list(left_array.type) or kinds.is_large_list(left_array.type):
        is_equal = _compare_lists(left_array, right_array)
    else:
        is_equal = _compare_scalars(left_array, right_array)
    return (is_equal & ~left_nulls & ~right_nulls) | both_null


def _compare_scalars(left_array: pa.Array, right_array: pa.Array) -> EqualityMask:
    bit_type = _BIT_TYPES.get(str(left_array.type))
    if bit_type is not None:
        left_array, right_array = left_array.view(bit_type), right_array.view(bit_type)
    is_equal: EqualityMask = pc.fill_null(pc.equal(left_array, right_array), False).to_numpy(zero_copy_only=False)
    return is_equal


def _compare_vectors(left_array: pa.Array, right_array: pa.Array) -> EqualityMask:
    """Compare all elements of two vector columns at once. The caller must ignore the result for null vectors."""
    vector_width = left_array.type.list_size
    if vector_width == 0:
        return np.ones(len(left_array), np.bool_)
    element_arrays = [
        array.values.slice(array.offset * vector_width, len(array) * vector_width)
        for array in (left_array, right_array)
    ]
    bit_type = _BIT_TYPES.get(str(left_array.type.value_type))
    if bit_type is not None and not any(array.null_count for array in element_arrays):
        left_elements, right_elements = (
            array.view(bit_type).to_numpy().reshape(-1, vector_width) for array in element_arrays
        )
        is_equal: EqualityMask = np.all(left_elements == right_elements, axis=1)
        return is_equal
    is_equal_slowly: EqualityMask = np.all(
        _compare_arrays(*element_arrays).reshape(len(left_array), vector_width), axis=1
    )
    return is_equal_slowly


def _compare_lists(left_array: pa.Array, right_array: pa.Array) -> EqualityMask:
    """Compare the lengths of the lists first. Then compare the elements of all list pairs of equal length at once."""
    lengths = [pc.fill_null(pc.list_value_length(array), -1).to_numpy() for array in (left_array, right_array)]
    is_equal: EqualityMask = lengths[0] == lengths[1]
    nonempty_rows = np.flatnonzero(is_equal & (lengths[0] > 0))
    if len(nonempty_rows) == 0:
        return is_equal
    left_elements, right_elements = (
        array.take(pa.array(nonempty_rows)).flatten() for array in (left_array, right_array)
    )
    element_rows = np.repeat(nonempty_rows, lengths[0][nonempty_rows])
    is_equal[element_rows[~_compare_arrays(left_elements, right_elements)]] = False
    return is_equal


def _compare_structs(left_array: pa.Array, right_array: pa.Array) -> EqualityMask:
    is_equal = np.ones(len(left_array), np.bool_)
    for field_index in range(left_array.type.num_fields):
        is_equal &= _compare_arrays(left_array.field(field_index), right_array.field(field_index))
    return is_equal


def _null_mask(column: pa.Array) -> EqualityMask:
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    is_null: EqualityMask = column.is_null().to_numpy(zero_copy_only=False)
    return is_null


def _single_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
