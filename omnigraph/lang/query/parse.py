"""Parse the text of a `.gq` file into its tree.

Owns how a query begins, the words used in syntax errors, and the two entry points: `parse_queries`
for files that must be valid, `read_queries` for whatever can be parsed.
"""

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.errors import ParseError
from omnigraph.lang import scan
from omnigraph.lang.parsing import Language, parse_declarations

from . import hints
from .build import Builder
from .model import QueryFile

_OPENING = scan.Opening(frozenset({"query"}), ("word", "open"))


def parse_queries(text: str, name: str = "<query>") -> QueryFile:
    """Return every query of a text; raise `ParseError` with all diagnostics if one is invalid.

    >>> parse_queries("query q() { match { $p: Person } return { $p.name } }").queries[0].name.text
    'q'
    """
    source = Source(name, text)
    file, found = read_queries(source)
    if found:
        raise ParseError(diagnostics=found, source=source)
    return file


def read_queries(source: Source) -> tuple[QueryFile, tuple[Diagnostic, ...]]:
    """Return the queries that can be parsed, and diagnostics of the others. Never raises.

    >>> file, found = read_queries(Source("q.gq", "query a() { query b() { delete P where x = 1 }"))
    >>> [query.name.text for query in file.queries], [one.line for one in found]
    (['b'], [1])
    """
    builder = Builder(source)
    parsed = parse_declarations(_language(builder), source)
    found = sorted([*parsed.diagnostics, *builder.problems], key=lambda d: (d.start, d.end))
    return QueryFile(parsed.declarations), tuple(found)


def _language(builder: Builder) -> Language:
    return Language(
        "query",
        _OPENING,
        builder.query,
        hints.NAMES,
        hints.WANTED,
        hints.GROUPS,
        hints.advise,
    )
