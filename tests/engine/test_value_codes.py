"""Codes of values preserve equality and order for all values."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.expressions.hot_columns import HotColumn
from omnigraph.engine.expressions.string_order import string_ranks
from omnigraph.engine.expressions.value_codes import dense_ranks, order_codes, value_codes

TEXTS = st.lists(
    st.one_of(st.none(), st.text("ab\0é🙂", max_size=20), st.text("ab\0", max_size=3).map(lambda end: "x" * 70 + end)),
    max_size=30,
)


@given(TEXTS, st.booleans())
def test_order_codes_sort_strings_by_bytes(texts: list[str | None], descending: bool) -> None:
    found = order_codes(pa.array(texts, pa.string()), descending=descending).tolist()
    for one, mine in zip(texts, found, strict=True):
        for other, yours in zip(texts, found, strict=True):
            less = (one is None and other is not None) or (
                one is not None and other is not None and one.encode() < other.encode()
            )
            assert (mine < yours) == (less if not descending else _less(other, one))


def _less(one: str | None, other: str | None) -> bool:
    if other is None:
        return False
    return one is None or one.encode() < other.encode()


@given(TEXTS)
def test_order_codes_sort_sliced_strings(texts: list[str | None]) -> None:
    every = pa.array([*(one or "" for one in texts), "tail"], pa.string())
    part = every.slice(len(texts) // 3)
    assert dense_ranks(string_ranks(part)).tolist() == dense_ranks(string_ranks(pa.array(part.to_pylist()))).tolist()


NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=40)


@given(NUMBERS, st.booleans(), st.none() | st.integers(1, 5))
def test_order_codes_with_a_limit_keep_the_first_rows(
    numbers: list[int | None], descending: bool, most: int | None
) -> None:
    """Repeated, so that there are enough of them for the shortcut."""
    many = numbers * 8
    found = order_codes(pa.array(many, pa.int64()), descending=descending, row_limit=most).tolist()
    key = [(one is not None, one or 0) for one in many]
    expected = sorted(key, reverse=descending)[:most]
    order = sorted(range(len(many)), key=lambda at: found[at])[:most]
    assert [key[at] for at in order] == expected


@given(st.lists(st.sampled_from([0.0, -0.0, 1.5, None]), max_size=10))
def test_positive_and_negative_zero_share_a_code(numbers: list[float | None]) -> None:
    codes = value_codes(pa.array(numbers, pa.float64())).tolist()
    for one, mine in zip(numbers, codes, strict=True):
        for other, yours in zip(numbers, codes, strict=True):
            assert (mine == yours) == (one == other)


def test_hot_column_takes_values_by_row() -> None:
    """Also for as many rows as there are, from the first to the last, but not each of them."""
    column = HotColumn(pa.array(["a", "b", "c", None]), np.array([0, 1, 2, 0], np.int16))
    assert column.take(np.array([0, 2, 2, 3])).to_pylist() == ["a", "c", "c", "a"]
    assert column.take(np.array([0, 1, 2, 3])).to_pylist() == ["a", "b", "c", "a"]
    assert column.take(np.array([1, -1])).to_pylist() == ["b", None]
    empty = HotColumn(pa.array([None], pa.string()), np.array([], np.int16))
    assert empty.take(np.array([-1])).to_pylist() == [None]
