"""Text fixtures: trees of snippets, rendered errors, canonical layouts."""

from collections.abc import Callable

import pytest

from omnigraph.errors import ParseError
from omnigraph.errors.diagnostics import SourceText, render
from omnigraph.lang.query import model as m
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.parse import parse_queries, read_queries
from tests.lang.query_parse.cases import Block, blocks, lines, outline


def only(text: str) -> m.Query:
    (query,) = parse_queries(text).queries
    return query


def read(text: str) -> m.ReadBody:
    body = only(text).body
    assert isinstance(body, m.ReadBody)
    return body


def shown(nodes: tuple[object, ...]) -> str:
    return " ".join(outline(node) for node in nodes)


def clause(text: str) -> str:
    return shown(read(f"query q() {{ match {{ {text} }} return {{ 1 }} }}").clauses)


def columns(text: str) -> str:
    return shown(read(f"query q() {{ match {{ $p: P }} return {{ {text} }} }}").projections)


def tail(text: str) -> str:
    body = read(f"query q() {{ match {{ $p: P }} return {{ $p.name }} {text} }}")
    return f"{outline(body.orderings)} {outline(body.limit)} {outline(body.offset)}"


def statements(text: str) -> str:
    body = only(f"query q() {{ {text} }}").body
    assert isinstance(body, m.WriteBody)
    return shown(body.statements)


def body(text: str) -> str:
    return outline(only(f"query q() {{ {text} }}").body)


def header(text: str) -> str:
    query = only(f"query q{text} {{ match {{ $p: P }} return {{ $p.name }} }}")
    return f"{outline(query.parameters)} {query.description!r} {query.instruction!r}"


PIECES: dict[str, Callable[[str], str]] = {
    "parse_clauses.txt": clause,
    "parse_columns.txt": columns,
    "parse_tails.txt": tail,
    "parse_statements.txt": statements,
    "parse_headers.txt": header,
    "parse_bodies.txt": body,
}


@pytest.mark.parametrize(
    ("file", "text", "tree"),
    [(file, *case) for file in PIECES for case in lines(file)],
    ids=lambda value: value if len(value) < 60 else "",
)
def test_text_parses_to_the_expected_tree(file: str, text: str, tree: str) -> None:
    assert PIECES[file](text) == tree


@pytest.mark.parametrize(("text", "finding"), lines("parse_refused.txt"))
def test_syntax_error_has_the_expected_message(text: str, finding: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse_queries(text)
    first = refused.value.diagnostics[0]
    hint = f" | {first.hint}" if first.hint else ""
    assert f"{first.line}:{first.column} {first.message}{hint}" == finding


@pytest.mark.parametrize("case", blocks("parse_errors.txt"), ids=lambda case: case.title)
def test_all_syntax_errors_are_reported_and_valid_queries_are_parsed(case: Block) -> None:
    source = SourceText("file.gq", case.text)
    file, found = read_queries(source)
    assert "\n".join(render(one, source) for one in found) == case.expected["errors"]
    assert " ".join(query.name.text for query in file.queries) == case.expected["read"]


@pytest.mark.parametrize("case", blocks("format.txt"), ids=lambda case: case.title)
def test_text_is_formatted_to_the_expected_layout(case: Block) -> None:
    formatted = format_queries(case.text)
    assert formatted.strip("\n") == case.expected["formatted"]
    assert format_queries(formatted) == formatted
    assert parse_queries(formatted) == parse_queries(case.text)


def test_format_rejects_invalid_text() -> None:
    with pytest.raises(ParseError, match=r"a\.gq:1:13"):
        format_queries("query a() { }", "a.gq")


def test_the_name_of_the_text_is_in_the_message() -> None:
    with pytest.raises(ParseError, match=r"people\.gq:1:1: error: expected `query`"):
        parse_queries("find", "people.gq")
