"""Arbitrary text always yields a tree or a typed error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ParseError
from omnigraph.errors.diagnostics import SourceText, render
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.parse import parse_queries, read_queries
from omnigraph.lang.query.print_syntax import Speller
from tests.lang.query_strategies import KEYWORDS, queries

SOUP = [*KEYWORDS, *"{}()[]<>|,.:=?!$@\"'\\/*-+_", "$a", "$b", "A", "P", "Vector", "String", "I32"]
SOUP += ["1", "-1", "2.5e-3", '"s"', "//", "/*", "*/", "\n", "\0", "é", "\ufeff", ">=", "!="]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A valid query in which a few stretches are cut, doubled or replaced."""
    text = Speller().query(draw(queries()))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 6)))
        middle = draw(st.sampled_from([*SOUP, "", text[start:end] * 2]))
        text = text[:start] + middle + text[end:]
    return text


def check(text: str) -> None:
    source = SourceText("x.gq", text)
    file, found = read_queries(source)
    for one in found:
        assert 0 <= one.start < one.end
        assert one.start <= len(text)
        assert render(one, source).startswith(f"x.gq:{one.line}:{one.column}: error: ")
    if found:
        with pytest.raises(ParseError):
            parse_queries(text)
        with pytest.raises(ParseError):
            format_queries(text)
    else:
        assert parse_queries(text) == file
        assert parse_queries(format_queries(text)) == file


@given(damaged())
def test_damaged_text_parses_or_raises_a_typed_error(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from(SOUP), max_size=40).map(" ".join))
def test_random_tokens_parse_or_raise_a_typed_error(text: str) -> None:
    check(f"query q() {{ {text} }}")
    check(text)


@given(st.text(max_size=60))
def test_random_text_parses_or_raises_a_typed_error(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query q() { match { $p.x = " + "9" * 5000 + " } return { 1 } }", "does not fit"),
        ("query q() { match { $p.x = -" + "9" * 5000 + " } return { 1 } }", "does not fit"),
        ("query q() { match { $a k{1," + "9" * 5000 + "} $b } return { 1 } }", "does not fit"),
        ("query q() { match { $a: A } return { 1 } limit " + "9" * 5000 + " }", "does not fit"),
        ("query q($v: Vector(" + "9" * 5000 + ")) { delete P where a = 1 }", "does not fit"),
        ("query q() { match { $p.x = 1" + "0" * 5000 + ".5 } return { 1 } }", "too large"),
        ("query q() { match { $p.x = 1e" + "9" * 5000 + " } return { 1 } }", "too large"),
        ("query q() { match { " + "(" * 200 + " } return { 1 } }", "nested more than"),
        (
            "query q() { match { $p: P } return { " + "case when 1 = 1 then " * 200 + "1" + " end" * 200 + " } }",
            "nested",
        ),
        ("query q() { match { " + "not { " * 200 + " } return { 1 } }", "nested more than"),
        ("query q() { match { $p: P } return { 1 } }\0", "NUL"),
    ],
)
def test_oversized_text_gets_a_short_typed_error(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as refused:
        parse_queries(text)
    assert len(str(refused.value)) < 1000


def test_leading_zeros_do_not_make_a_number_large() -> None:
    text = "query q() { match { $p.x = " + "0" * 5000 + "7 } return { 1 } }"
    assert len(parse_queries(text).queries) == 1


def test_deepest_accepted_text_can_be_checked_and_formatted() -> None:
    inner = "(" * 95 + "$p.x = 1 or $p.y = 2" + ") and $p.z = 3" * 95
    text = f"query q() {{ match {{ {inner} }} return {{ 1 }} }}"
    assert parse_queries(format_queries(text)) == parse_queries(text)
    cases = "case when 1 = 1 then " * 50 + "1" + " end" * 50
    text = f"query q() {{ match {{ $p: P }} return {{ {'abs(' * 45}-(1 + {cases}){')' * 45} }} }}"
    assert parse_queries(format_queries(text)) == parse_queries(text)
    text = f"query q() {{ match {{ $p: P }} return {{ 1{' + 2 * -3' * 5000} }} }}"
    assert parse_queries(format_queries(text)) == parse_queries(text)
    blocks = "not { $a k $b " * 95 + "}" * 95
    text = f"query q() {{ match {{ {blocks} }} return {{ 1 }} }}"
    assert parse_queries(format_queries(text)) == parse_queries(text)
