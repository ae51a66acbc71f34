"""The formatter: every case under tests/cases/schema/format, and properties of any text."""

import pytest
from hypothesis import given

from omnigraph.errors import ParseError
from omnigraph.lang import coarse_scan
from omnigraph.lang.schema import format_schema, parse_schema
from tests.lang.schema.blocks import Block, blocks
from tests.lang.schema.texts import schemas

CASES = blocks("format")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_format_case(case: Block) -> None:
    written, formatted = case.parts
    assert format_schema(written) == formatted


@pytest.mark.parametrize("case", [c for f in ("check", "lint") for c in blocks(f)], ids=str)
def test_the_valid_schemas_of_other_cases_keep_their_meaning(case: Block) -> None:
    for text in case.parts:
        try:
            tree = parse_schema(text)
        except ParseError:
            continue
        formatted = format_schema(text)
        assert parse_schema(formatted) == tree
        assert format_schema(formatted) == formatted


@given(schemas())
def test_format_keeps_tree_and_comments_and_is_idempotent(text: str) -> None:
    formatted = format_schema(text)
    assert parse_schema(formatted) == parse_schema(text)
    assert format_schema(formatted) == formatted
    assert comments(formatted) == comments(text)
    assert "\n\n\n" not in formatted


def comments(text: str) -> list[str]:
    return [text[c.start : c.end].rstrip() for c in coarse_scan.find_comments(text)]


def test_crlf_line_endings_are_normalised() -> None:
    assert format_schema("node A { // x\r\n  a: I32\r\n}\r\n") == ("node A {  // x\n    a: I32\n}\n")


def test_text_with_syntax_errors_is_not_formatted() -> None:
    with pytest.raises(ParseError):
        format_schema("node A { a: I32, b: I32 }")
