"""Parse a `.gq` file into a syntax tree.

This module defines how a query begins and how syntax errors are worded. Use `parse_queries` for files that must be
valid, and `read_queries` for files that may contain errors.
"""

from omnigraph.errors import ParseError
from omnigraph.errors.diagnostics import Diagnostic, SourceText
from omnigraph.lang import coarse_scan
from omnigraph.lang.parsing import Language, parse_declarations, parse_declarations_with

from . import hints
from .build import Builder
from .model import Query, QueryFile

QUERY_OPENING = coarse_scan.DeclarationOpening(frozenset({"query"}), ("word", "open"))


def parse_queries(query_text: str, source_name: str = "<query>") -> QueryFile:
    """Return all queries in the source text. If any query is invalid, raise `ParseError` with all diagnostics.

    >>> parse_queries("query q() { match { $p: Person } return { $p.name } }").queries[0].name.text
    'q'
    """
    source = SourceText(source_name, query_text)
    query_file, diagnostics = read_queries(source)
    if diagnostics:
        raise ParseError(diagnostics=diagnostics, source=source)
    return query_file


def read_queries(source: SourceText) -> tuple[QueryFile, tuple[Diagnostic, ...]]:
    """Return the queries that can be parsed, and diagnostics for all others. Never raises.

    >>> source = SourceText("q.gq", "query a() { query b() { delete P where x = 1 }")
    >>> file, diagnostics = read_queries(source)
    >>> [query.name.text for query in file.queries], [error.line for error in diagnostics]
    (['b'], [1])
    """
    builder = Builder(source)
    parsed = parse_declarations(_query_language(builder), source)
    diagnostics = sorted(
        [*parsed.diagnostics, *builder.problems], key=lambda diagnostic: (diagnostic.start, diagnostic.end)
    )
    return QueryFile(parsed.declarations), tuple(diagnostics)


def read_named_query(source: SourceText, query_name: str) -> Query | None:
    """Return the query with this name, without parsing queries that do not contain the name.

    Return None if the query is missing, invalid or defined twice.
    """
    builder = Builder(source)
    queries = parse_declarations_with(_query_language(builder), source, query_name)
    named_queries = [query for query in queries or () if query.name.text == query_name]
    return named_queries[0] if len(named_queries) == 1 and not builder.problems else None


def _query_language(builder: Builder) -> Language:
    return Language(
        "query",
        QUERY_OPENING,
        builder.build_query,
        hints.TERMINAL_NAMES,
        hints.DECLARATION_FORM,
        hints.TERMINAL_GROUPS,
        hints.suggest_hint,
    )
