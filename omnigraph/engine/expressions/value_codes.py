"""Integer codes for values: equal values have equal codes. Order codes also sort like the values.

Grouping, deduplication, tie breaking and sorting use these codes, so strings are compared only once per distinct value.
Null counts as a distinct value and has its own code.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.operators.rows import IntArray, Rows, VariableBinding

from .string_order import string_ranks

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]  # integers or floats without NaN
_DENSE_FACTOR = 4
_MAX_CODE = np.iinfo(np.int64).max


def dense_codes(numbers: IntArray) -> tuple[Codes, IntArray]:
    """Number the distinct values 0, 1, 2 … in ascending order, and locate the first occurrence of each.

    Returns the code of each value, and the position at which each code first occurs.

    >>> codes, first = dense_codes(np.array([70, -1, 70, 5]))
    >>> codes.tolist(), first.tolist()
    ([2, 0, 2, 1], [1, 3, 0])
    """
    codes = dense_ranks(numbers)
    return codes, first_positions(codes)


def dense_ranks(numbers: Numbers) -> Codes:
    """Number the distinct values 0, 1, 2 … in ascending order, and return the code of each value."""
    if len(numbers) == 0:
        return np.empty(0, np.int64)
    if numbers.dtype.kind == "f":
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest - lowest < _DENSE_FACTOR * len(numbers):
        shifted: Codes = numbers - lowest if lowest else numbers
        is_present = np.bincount(shifted) > 0
        if bool(is_present.all()):
            return shifted
        codes: Codes = (np.cumsum(is_present) - 1)[shifted]
        return codes
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def first_positions(codes: Codes) -> IntArray:
    """Return the position at which each code first occurs; codes must be 0, 1, 2 … without gaps."""
    first_position = np.empty(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    first_position[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first_position


def pair_codes(first_codes: Codes, second_codes: Codes) -> Codes:
    """Return a number for each pair of codes; the numbers sort like the pairs. `first_codes` must have no gaps."""
    if len(first_codes) == 0 or int(first_codes.max()) == 0:
        return second_codes
    second_ranks = dense_ranks(second_codes)
    return first_codes * (int(second_ranks.max()) + 1) + second_ranks


def entity_codes(binding: VariableBinding) -> Codes:
    """Return a number for each row. Rows with the same entity have the same number."""
    if binding.type_indexes is None:
        return binding.row_ids
    typed_ids = binding.row_ids * len(binding.table_keys) + binding.type_indexes
    return np.where(binding.row_ids < 0, np.int64(-1), typed_ids)


def combination_codes(rows: Rows, variables: Sequence[str]) -> tuple[Codes, IntArray]:
    """Return a code per row for its combination of entities in the given variables, and a sample row for each code."""
    codes, first_rows = np.zeros(rows.count, np.int64), np.zeros(min(rows.count, 1), np.int64)
    for variable in variables:
        codes, first_rows = dense_codes(pair_codes(codes, entity_codes(rows[variable])))
    return codes, first_rows


def value_codes(values: pa.Array) -> Codes:
    """Return a code for each value. Equal values have equal codes, and null has its own code."""
    if pa.types.is_nested(values.type):
        return _nested_codes(values)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
    dictionary_array = values.dictionary_encode(null_encoding="encode")
    codes: Codes = dictionary_array.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _nested_codes(values: pa.Array) -> Codes:
    """Return codes for lists, vectors and whole entities, which Arrow cannot dictionary-encode."""
    code_by_value: dict[object, int] = {}
    frozen_values = map(_freeze_value, values.to_pylist())
    return np.array(
        [code_by_value.setdefault(frozen_value, len(code_by_value)) for frozen_value in frozen_values], np.int64
    )


def _freeze_value(value: object) -> object:
    if isinstance(value, dict):
        return tuple((member_name, _freeze_value(member)) for member_name, member in value.items())
    return tuple(map(_freeze_value, value)) if isinstance(value, list) else value


def order_codes(values: pa.Array, *, descending: bool = False, row_limit: int | None = None) -> Numbers:
    """Return numbers that sort like the values. Null sorts first in ascending and last in descending order.

    With `row_limit`, only the first `row_limit` rows in sort order have exact numbers, and all later rows share one
    number.

    >>> order_codes(pa.array(["b", None, "a", "b"])).tolist()
    [3, 0, 2, 3]
    """
    numbers = _sortable_numbers(values)
    if numbers is not None:
        return _reverse_order(numbers) if descending else numbers
    can_select_top = row_limit is not None and not pa.types.is_nested(values.type)
    if row_limit is not None and can_select_top and len(values) > _DENSE_FACTOR * row_limit + 100:
        return _top_order_codes(values, descending, row_limit)
    ordered_ranks = _value_ranks(values) + 1
    if values.null_count:
        ordered_ranks[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return -ordered_ranks if descending else ordered_ranks


def _reverse_order(numbers: Numbers) -> Numbers:
    """Reverse the sort order. Integers are inverted bitwise, because the smallest integer cannot be negated."""
    return np.invert(numbers) if numbers.dtype.kind == "i" else -numbers


def _sortable_numbers(values: pa.Array) -> Numbers | None:
    """Return the values as numbers if NumPy sorts them in the engine's order; otherwise return None."""
    data_type = values.type
    if values.null_count or pa.types.is_uint64(data_type):
        return None
    if pa.types.is_floating(data_type):
        numbers: Numbers = values.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        return None if np.isnan(numbers).any() else numbers
    if pa.types.is_integer(data_type) or pa.types.is_temporal(data_type):
        return _as_integers(values)
    return None


def _as_integers(values: pa.Array) -> Codes:
    """Convert integers, dates and times to int64; null becomes 0."""
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    integers: Codes = values.fill_null(0).to_numpy(zero_copy_only=False)
    return integers.astype(np.int64, copy=False)


def _value_ranks(values: pa.Array) -> Codes:
    """Return a rank for each value. Ranks sort like the values, and the rank of null is arbitrary."""
    data_type = values.type
    if pa.types.is_string(data_type):
        return string_ranks(values)
    if pa.types.is_floating(data_type):
        return dense_ranks(values.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_temporal(data_type) or (pa.types.is_integer(data_type) and not pa.types.is_uint64(data_type)):
        return dense_ranks(_as_integers(values))
    if pa.types.is_nested(data_type):
        return _list_ranks(values)
    dictionary_array = values.dictionary_encode()
    rank_by_code = np.empty(len(dictionary_array.dictionary), np.int64)
    rank_by_code[pc.sort_indices(dictionary_array.dictionary).to_numpy()] = np.arange(len(rank_by_code))
    if len(rank_by_code) == 0:
        return np.zeros(len(values), np.int64)
    row_ranks: Codes = rank_by_code[dictionary_array.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return row_ranks


def _list_ranks(values: pa.Array) -> Codes:
    """Return the ranks of lists and vectors, which are compared element by element. Null elements sort first."""
    sort_keys = [
        tuple((item is not None, 0 if item is None else item) for item in items or ()) for items in values.to_pylist()
    ]
    rank_by_key = {sort_key: rank for rank, sort_key in enumerate(sorted(set(sort_keys)))}
    return np.array([rank_by_key[sort_key] for sort_key in sort_keys], np.int64)


def _top_order_codes(values: pa.Array, descending: bool, row_limit: int) -> Codes:
    """Return order codes that are exact only for the first `row_limit` rows in sort order."""
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    null_count = len(values) - int(is_valid.sum())
    codes = np.full(len(values), _MAX_CODE, np.int64)
    if descending and len(values) - null_count < row_limit:
        return order_codes(values, descending=True)
    if not descending and null_count >= row_limit:
        codes[~is_valid] = 0
        return codes
    valid_limit = row_limit if descending else row_limit - null_count
    valid_positions = np.flatnonzero(is_valid)
    valid_values = values.take(pa.array(valid_positions)) if null_count else values
    boundary_value = _top_boundary(valid_values, descending, valid_limit)
    within_boundary = pc.greater_equal if descending else pc.less_equal
    top_positions = valid_positions[within_boundary(valid_values, boundary_value).to_numpy(zero_copy_only=False)]
    top_values = values.take(pa.array(top_positions))
    codes[top_positions] = dense_ranks(order_codes(top_values, descending=descending))
    if not descending:
        codes[~is_valid] = -1
    return codes


def _top_boundary(values: pa.Array, descending: bool, row_limit: int) -> pa.Scalar:
    """Return the value at position `row_limit` in sort order, counted from 1."""
    sort_direction = "descending" if descending else "ascending"
    best_positions = pc.select_k_unstable(values, k=row_limit, sort_keys=[("", sort_direction)])
    extreme_function = pc.min if descending else pc.max
    return extreme_function(values.take(best_positions))
