"""Text generated from a grammar parses as in lark and survives the formatter."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from omnigraph.errors import ParseError
from omnigraph.lang import saved_parsers
from omnigraph.lang.query import format_queries, parse_queries
from omnigraph.lang.schema import format_schema, parse_schema
from tests.lang.schema_properties.grammar_texts import texts
from tests.lang.schema_properties.lark_reference import outcome, stock, stream
from tests.lang.schema_properties.random_trees import comments

PARSE: dict[str, Callable[[str], Any]] = {"schema": parse_schema, "query": parse_queries}
FORMAT = {"schema": format_schema, "query": format_queries}
# Such texts are long and slow to draw.
FEW = settings(max_examples=max(20, settings.default.max_examples // 5))  # type: ignore[union-attr]
TEXTS = {language: texts(language) for language in saved_parsers.LANGUAGES}


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
@FEW
@given(st.data())
def test_grammar_text_parses_like_lark_and_survives_the_formatter(language: str, data: Any) -> None:
    text = data.draw(TEXTS[language])
    read_as_lark_reads_it(language, text)
    try:
        tree = PARSE[language](text)
    except ParseError as error:
        event("refused")
        refused_for_a_reason(error)
    else:
        survives_the_formatter(language, text, tree)


def read_as_lark_reads_it(language: str, text: str) -> None:
    tree = outcome(saved_parsers.load_parser(language), text)
    assert isinstance(tree[1], list), text  # no error
    assert tree == outcome(stock(language), text)
    assert stream(saved_parsers.load_parser(language), text) == stream(stock(language), text)


def refused_for_a_reason(error: ParseError) -> None:
    """More than the grammar asks for is refused, but never with the words of the parser."""
    assert error.diagnostics
    assert [one for one in error.diagnostics if one.message.startswith("expected")] == []


def survives_the_formatter(language: str, text: str, tree: Any) -> None:
    printed = FORMAT[language](text)
    assert PARSE[language](printed) == tree
    assert comments(printed) == comments(text)
    assert FORMAT[language](printed) == printed
