"""Shared parsing code of both languages: decoding, recovery, error messages, saved tables."""

import pytest
from lark import Lark

from omnigraph.errors import ParseError
from omnigraph.errors.diagnostics import SourceText, Span
from omnigraph.lang import coarse_scan, parsing, saved_parsers
from omnigraph.lang.comment_layout import Layout
from omnigraph.lang.compile_grammar import LARK_OPTIONS
from omnigraph.lang.query.parse import read_queries
from tests.lang.schema_properties.lark_reference import outcome, stock


def test_invalid_utf8_is_rejected_with_its_position() -> None:
    with pytest.raises(ParseError, match="byte 0xff at offset 6") as refused:
        parsing.decode_source(b"query\n\xff", "q.gq")
    (one,) = refused.value.diagnostics
    assert (one.line, one.column) == (2, 1)


def test_byte_order_mark_is_ignored() -> None:
    assert parsing.decode_source(b"\xef\xbb\xbfquery", "q.gq").text == "query"


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(ParseError, match="NUL"):
        parsing.decode_source(b"a\0b", "q.gq")


def test_oversized_text_is_rejected_before_parsing() -> None:
    source = SourceText("q.gq", " " * (parsing.MAX_SOURCE_CHARACTERS + 1))
    _, (one,) = read_queries(source)
    assert "the limit is" in one.message


def words(terminals: set[str], **more: object) -> str:
    names = {"A": "`a`", "B": "`b`", "C": "`c`"}
    opening = coarse_scan.DeclarationOpening(frozenset(), ())
    language = parsing.Language("x", opening, lambda t, o: None, names, "more", **more)  # type: ignore[arg-type]
    return parsing._describe_expected(language, frozenset(terminals))


def test_expected_terminals_are_named_grouped_and_joined() -> None:
    groups = (("a letter", frozenset({"A", "B"})),)
    assert words({"A"}) == "`a`"
    assert words({"A", "B", "C"}) == "`a`, `b` or `c`"
    assert words({"A", "B", "C"}, terminal_groups=groups) == "`c` or a letter"
    assert words({"A", "C"}, terminal_groups=groups) == "`a` or `c`"
    assert words({"$END"}) == "more"
    assert words({"ODD_ONE"}) == "odd one"
    assert words({f"T{n}" for n in range(9)}) == "t0, t1, t2, t3, t4, t5 or …"


def test_comments_before_a_closing_line_belong_to_its_block() -> None:
    layout = Layout("a {\n  // in\n} // out")
    layout.add_item(0, "a {", Span(0, 3))
    layout.add_item(0, "}", Span(12, 13), closes_block=True)
    assert layout.finish() == "a {\n    // in\n}  // out\n"


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_the_saved_tables_belong_to_the_grammar(language: str) -> None:
    assert saved_parsers.tables_are_fresh(language)


def test_a_parser_from_tables_reads_like_one_from_the_grammar() -> None:
    text = 'query q($a: I32 = 1) { match { $p: P { a: "x" } $p k $q } return { count($p) as n } }'
    assert outcome(saved_parsers.load_parser("query"), text) == outcome(stock("query"), text)


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_grammar_has_no_conflicts(language: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="lark"):
        Lark(saved_parsers._read_grammar(language), **LARK_OPTIONS, debug=True)
    assert [r.getMessage() for r in caplog.records if "conflict" in r.getMessage().lower()] == []


def test_ambiguous_grammar_is_detected(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="lark"):
        Lark('start: "a" start? | "a" start "b"', parser="lalr", debug=True)
    assert "conflict" in caplog.text.lower()
