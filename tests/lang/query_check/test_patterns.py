"""The check of regular expressions never refuses a pattern that RE2 accepts."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.query.check.patterns import find_pattern_error

PIECES = [*"ab09.|^$*+?()[]{},-\\:=!<>#P", "(?", "(?:", "(?i)", "(?P<n>", "[^", "[[:alpha:]]", r"\d", r"\p{L}", "{2,3}"]


def accepted_by_re2(pattern: str) -> bool:
    try:
        pc.match_substring_regex(pa.array(["a"]), pattern=pattern)
    except pa.ArrowInvalid:
        return False
    return True


@given(st.lists(st.sampled_from(PIECES), max_size=7).map("".join))
def test_a_refused_pattern_is_refused_by_re2(pattern: str) -> None:
    assert find_pattern_error(pattern) is None or not accepted_by_re2(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["a(b", "a)", "[a", "*a", "a**", "(?=a)", "(?<!a)", r"(a)\1", "a\\", r"\y", "a{3,2}", "a{1001}", "a|*", "(?>a)"],
)
def test_a_common_mistake_is_found(pattern: str) -> None:
    assert find_pattern_error(pattern) is not None
    assert not accepted_by_re2(pattern)
