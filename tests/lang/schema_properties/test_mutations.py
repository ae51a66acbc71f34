"""Mutated texts always yield a result or a typed error."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import LanguageError, OmnigraphError
from omnigraph.errors.diagnostics import Diagnostic, SourceText, render
from omnigraph.lang import coarse_scan
from omnigraph.lang.query import diagnose_queries, format_queries, lint_queries, parse_queries
from omnigraph.lang.query.parse import QUERY_OPENING as QUERY
from omnigraph.lang.schema import compile_schema, diagnose_schema, format_schema, lint_schema, parse_schema
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.parse import DECLARATION_OPENING as SCHEMA
from tests.lang.schema_properties import random_trees

LIBRARY = Path(__file__).parents[3] / "examples" / "library"
_PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)
_ODD = (*"{}()[]@$:,.?|\"\\'/*-+=<>#;~", "//", "/*", "*/", "->", "..", "é", "日", "\t", "\r", "\n")
_ODD += ("\u2028", "\ufeff", "\x1b", "\ud800", "\0")
_WORDS: tuple[str, ...] = ("node", "edge", "interface", "query", "match", "return", "not", "enum", "Vector", "@key")
_WORDS += ("node X {", "query q() {", "@range(a, 1..", "insert", "99999999999999999999", "1e999")
odd = st.sampled_from([*_ODD, *_WORDS]) | st.characters()


def declarations(name: str, opening: coarse_scan.DeclarationOpening) -> list[str]:
    text = (LIBRARY / name).read_text("utf-8")
    return [text[a:b] for a, b in coarse_scan.split_declarations(text, opening, 0, len(text))]


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """A text with some of its pieces taken out, doubled, swapped or replaced."""
    pieces = _PIECE.findall(text)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(pieces)))
        other = draw(st.integers(0, len(pieces)))
        how = draw(st.sampled_from(["insert", "delete", "replace", "copy", "cut"]))
        if how == "insert":
            pieces.insert(at, draw(odd))
        elif how == "copy":
            pieces[at:at] = pieces[other : other + 3]
        else:
            pieces[at : at + draw(st.integers(1, 3))] = [draw(odd)] if how == "replace" else []
    return "".join(pieces)


schemas: st.SearchStrategy[str] = st.one_of(
    st.lists(st.sampled_from(declarations("schema.pg", SCHEMA)), min_size=1, max_size=3).map("".join),
    random_trees.files.map(random_trees.spell),
).flatmap(mutated)
queries: st.SearchStrategy[str] = (
    st.lists(st.sampled_from(declarations("queries.gq", QUERY)), min_size=1, max_size=2).map("".join).flatmap(mutated)
)


@cache
def library() -> Catalog:
    return compile_schema((LIBRARY / "schema.pg").read_text("utf-8"))


def drawn(found: tuple[Diagnostic, ...], text: str) -> None:
    """Findings have a place in the text and can be shown."""
    source = SourceText("x", text)
    for one in found:
        assert one.message
        assert 0 <= one.start < one.end <= len(text) + 1
        assert source.locate(one.start) == (one.line, one.column)
        assert render(one, source).startswith(f"x:{one.line}:{one.column}: {one.severity}")


def attempt(action: Any, text: str) -> Any:
    """What an action gives, or the typed error that it ends with."""
    try:
        return action(text)
    except OmnigraphError as error:
        return error


@given(schemas)
def test_mutated_schema_parses_or_raises_a_typed_error(text: str) -> None:
    catalog, found = diagnose_schema(text)
    drawn(found, text)
    drawn(lint_schema(text), text)
    tree, printed = attempt(parse_schema, text), attempt(format_schema, text)
    assert isinstance(tree, LanguageError) is isinstance(printed, LanguageError)
    if isinstance(printed, str):
        assert parse_schema(printed) == tree
        assert random_trees.comments(printed) == random_trees.comments(text)
        assert format_schema(printed) == printed
    compiled = attempt(compile_schema, text)
    assert compiled == catalog if catalog is not None else compiled.diagnostics == found


@given(queries)
def test_mutated_query_parses_or_raises_a_typed_error(text: str) -> None:
    _, found = diagnose_queries(text, library())
    drawn(found, text)
    report = lint_queries(text, library())
    drawn(report.diagnostics, text)
    assert report.to_json()["status"] == ("error" if has_errors(found) else "ok")
    tree, printed = attempt(parse_queries, text), attempt(format_queries, text)
    assert isinstance(tree, LanguageError) is isinstance(printed, LanguageError)
    if isinstance(printed, str):
        assert parse_queries(printed) == tree
        assert random_trees.comments(printed) == random_trees.comments(text)
        assert format_queries(printed) == printed


def has_errors(found: tuple[Diagnostic, ...]) -> bool:
    return any(one.severity == "error" for one in found)
