"""Integer codes for values: equal codes for equal values, or codes in the order of the values.

Grouping, distinct rows, ties and sorting work on such codes, so strings are compared only once per
distinct value. Null counts as a value of its own here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .rows import Binding, Ids, Rows
from .strings import string_places

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]  # of integers or floats, never NaN
_DENSE = 4
_LAST = np.iinfo(np.int64).max


def dense(values: Ids) -> tuple[Codes, Ids]:
    """Return codes 0, 1, 2 … in numeric order, and the first position of each code.

    >>> codes, first = dense(np.array([70, -1, 70, 5]))
    >>> codes.tolist(), first.tolist()
    ([2, 0, 2, 1], [1, 3, 0])
    """
    codes = ranks(values)
    return codes, first_of(codes)


def ranks(values: Numbers) -> Codes:
    """Return codes 0, 1, 2 … in numeric order."""
    if len(values) == 0:
        return np.empty(0, np.int64)
    if values.dtype.kind == "f":
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < _DENSE * len(values):
        shifted: Codes = values - low if low else values
        seen = np.bincount(shifted) > 0
        if bool(seen.all()):
            return shifted
        codes: Codes = (np.cumsum(seen) - 1)[shifted]
        return codes
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def first_of(codes: Codes) -> Ids:
    """Return the first position of each code; codes must be 0, 1, 2 … without gaps."""
    first = np.empty(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def paired(one: Codes, other: Codes) -> Codes:
    """Return numbers for pairs, in the order of the pairs; `first_codes` must have no gaps."""
    if len(one) == 0 or int(one.max()) == 0:
        return other
    narrow = ranks(other)
    return one * (int(narrow.max()) + 1) + narrow


def entity_codes(binding: Binding) -> Codes:
    """Return a number per row, equal for the same entity."""
    if binding.kinds is None:
        return binding.ids
    ids = binding.ids * len(binding.types) + binding.kinds
    return np.where(binding.ids < 0, np.int64(-1), ids)


def combination_codes(rows: Rows, names: Sequence[str]) -> tuple[Codes, Ids]:
    """Return codes for the combinations of some variables, and one row of each combination."""
    codes, first = np.zeros(rows.count, np.int64), np.zeros(min(rows.count, 1), np.int64)
    for name in names:
        codes, first = dense(paired(codes, entity_codes(rows[name])))
    return codes, first


def value_codes(values: pa.Array) -> Codes:
    """Return a code per value, equal for equal values; null has its own code."""
    if pa.types.is_nested(values.type):
        return _nested_codes(values)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
    encoded = values.dictionary_encode(null_encoding="encode")
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _nested_codes(values: pa.Array) -> Codes:
    """Return codes for lists, vectors and whole entities, which Arrow cannot dictionary-encode."""
    known: dict[object, int] = {}
    frozen = map(_frozen, values.to_pylist())
    return np.array([known.setdefault(one, len(known)) for one in frozen], np.int64)


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        return tuple((name, _frozen(one)) for name, one in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def order_codes(values: pa.Array, *, descending: bool = False, most: int | None = None) -> Numbers:
    """Return numbers in the order of the values: null first, or last when descending.

    With `row_limit`, only that many leading rows are exact: all later rows share one number.

    >>> order_codes(pa.array(["b", None, "a", "b"])).tolist()
    [3, 0, 2, 3]
    """
    plain = _plain_numbers(values)
    if plain is not None:
        return _turned(plain) if descending else plain
    if most is not None and len(values) > _DENSE * most + 100:
        return _first_codes(values, descending, most)
    ranked = _ranks(values) + 1
    if values.null_count:
        ranked[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return -ranked if descending else ranked


def _turned(numbers: Numbers) -> Numbers:
    """Reverse the order of numbers; integers are inverted, as the smallest has no negative."""
    return np.invert(numbers) if numbers.dtype.kind == "i" else -numbers


def _plain_numbers(values: pa.Array) -> Numbers | None:
    """Return the values as numbers if numpy sorts them as we do, else None."""
    kind = values.type
    if values.null_count or pa.types.is_uint64(kind):
        return None
    if pa.types.is_floating(kind):
        numbers: Numbers = values.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        return None if np.isnan(numbers).any() else numbers
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return _integers(values)
    return None


def _integers(values: pa.Array) -> Codes:
    """Return integers, dates and times as int64; null becomes 0."""
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    found: Codes = values.fill_null(0).to_numpy(zero_copy_only=False)
    return found.astype(np.int64, copy=False)


def _ranks(values: pa.Array) -> Codes:
    """Return the rank of each value among the distinct values; arbitrary for null."""
    kind = values.type
    if pa.types.is_string(kind):
        return string_places(values)
    if pa.types.is_floating(kind):
        return ranks(values.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_temporal(kind) or (pa.types.is_integer(kind) and not pa.types.is_uint64(kind)):
        return ranks(_integers(values))
    encoded = values.dictionary_encode()
    place = np.empty(len(encoded.dictionary), np.int64)
    place[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(place))
    if len(place) == 0:
        return np.zeros(len(values), np.int64)
    found: Codes = place[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return found


def _first_codes(values: pa.Array, descending: bool, most: int) -> Codes:
    """Return order codes that are exact only for the first `row_limit` rows."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    nulls = len(values) - int(valid.sum())
    codes = np.full(len(values), _LAST, np.int64)
    if descending and len(values) - nulls < most:
        return order_codes(values, descending=True)
    if not descending and nulls >= most:
        codes[~valid] = 0
        return codes
    wanted = most if descending else most - nulls
    place = np.flatnonzero(valid)
    chosen = values.take(pa.array(place)) if nulls else values
    worst = _worst(chosen, descending, wanted)
    test = pc.greater_equal if descending else pc.less_equal
    near = place[test(chosen, worst).to_numpy(zero_copy_only=False)]
    some = values.take(pa.array(near))
    codes[near] = ranks(order_codes(some, descending=descending))
    if not descending:
        codes[~valid] = -1
    return codes


def _worst(values: pa.Array, descending: bool, most: int) -> pa.Scalar:
    """Return the last of the best `row_limit` values."""
    way = "descending" if descending else "ascending"
    best = pc.select_k_unstable(values, k=most, sort_keys=[("", way)])
    edge = pc.min if descending else pc.max
    return edge(values.take(best))
