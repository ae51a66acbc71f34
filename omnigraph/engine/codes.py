"""Numbers that stand for values: equal numbers for equal values, or numbers in the order of values.

Grouping, distinct rows, ties and sorting all work on such numbers, so that strings are looked at
once per distinct value. Null is a value of its own here.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .rows import Binding, Ids, Rows

Codes = npt.NDArray[np.int64]
_DENSE = 4
_LAST = np.iinfo(np.int64).max


def dense(values: Ids) -> tuple[Codes, Ids]:
    """Codes 0, 1, 2 … in the order of the numbers, and the first position of each code.

    >>> codes, first = dense(np.array([70, -1, 70, 5]))
    >>> codes.tolist(), first.tolist()
    ([2, 0, 2, 1], [1, 3, 0])
    """
    if len(values) == 0:
        return values, values
    low, high = int(values.min()), int(values.max())
    if high - low < _DENSE * len(values):
        seen = np.zeros(high - low + 1, np.bool_)
        seen[values - low] = True
        number = np.cumsum(seen) - 1
        codes: Codes = number[values - low]
    else:
        _, codes = np.unique(values, return_inverse=True)
    return codes, first_of(codes)


def first_of(codes: Codes) -> Ids:
    """The first position of each code; codes are 0, 1, 2 … without gaps."""
    first = np.empty(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def paired(one: Codes, other: Codes) -> Codes:
    """Numbers for pairs, in the order of the pairs; `one` has codes without gaps."""
    if len(one) == 0 or int(one.max()) == 0:
        return other
    narrow, _ = dense(other)
    return one * (int(narrow.max()) + 1) + narrow


def entity_codes(binding: Binding) -> Codes:
    """A number for each entity, the same for the same entity."""
    if binding.kinds is None:
        return binding.ids
    ids = binding.ids * len(binding.types) + binding.kinds
    return np.where(binding.ids < 0, np.int64(-1), ids)


def combination_codes(rows: Rows, names: Sequence[str]) -> tuple[Codes, Ids]:
    """Codes for the combinations of some variables, and one row for each."""
    codes, first = np.zeros(rows.count, np.int64), np.zeros(min(rows.count, 1), np.int64)
    for name in names:
        codes, first = dense(paired(codes, entity_codes(rows[name])))
    return codes, first


def value_codes(values: pa.Array) -> Codes:
    """A code for each value, equal for equal values; null has one too."""
    if pa.types.is_nested(values.type):
        return _nested_codes(values)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # one zero
    encoded = values.dictionary_encode(null_encoding="encode")
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _nested_codes(values: pa.Array) -> Codes:
    """Lists, vectors and whole entities, which Arrow does not encode."""
    known: dict[object, int] = {}
    frozen = map(_frozen, values.to_pylist())
    return np.array([known.setdefault(one, len(known)) for one in frozen], np.int64)


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        return tuple((name, _frozen(one)) for name, one in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def order_codes(values: pa.Array, *, descending: bool = False, most: int | None = None) -> Codes:
    """Numbers in the order of values: null first, or last when descending.

    With `most`, only the first so many rows need to be right: all later ones get one number.

    >>> order_codes(pa.array(["b", None, "a", "b"])).tolist()
    [2, 0, 1, 2]
    """
    if most is not None and len(values) > _DENSE * most + 100:
        return _first_codes(values, descending, most)
    ranked = _ranks(values) + 1
    if values.null_count:
        ranked[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return -ranked if descending else ranked


def _ranks(values: pa.Array) -> Codes:
    """The place of each value among the distinct ones; anything for null."""
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    if pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind):
        wide = values.cast(pa.int64()) if pa.types.is_integer(kind) else _as_integers(values)
        return dense(wide.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))[0]
    encoded = values.dictionary_encode()
    place = np.empty(len(encoded.dictionary), np.int64)
    place[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(place))
    if len(place) == 0:
        return np.zeros(len(values), np.int64)
    found: Codes = place[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return found


def _as_integers(values: pa.Array) -> pa.Array:
    """Dates and times as the numbers they are stored as."""
    width = pa.int32() if values.type.bit_width == 32 else pa.int64()
    return values.cast(width)


def _first_codes(values: pa.Array, descending: bool, most: int) -> Codes:
    """The same for the first rows only: what comes after the last of them is not sorted."""
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
    if not descending:
        near = np.union1d(near, np.flatnonzero(~valid))
    codes[near] = order_codes(values.take(pa.array(near)), descending=descending)
    return codes


def _worst(values: pa.Array, descending: bool, most: int) -> pa.Scalar:
    """The last value among the best `most`."""
    way = "descending" if descending else "ascending"
    best = pc.select_k_unstable(values, k=most, sort_keys=[("", way)])
    edge = pc.min if descending else pc.max
    return edge(values.take(best))
