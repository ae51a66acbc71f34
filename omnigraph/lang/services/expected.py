"""The terminals that the grammar allows at the end of incomplete text.

The parser reads the text token by token, and its state then determines what may follow. If the text contains an error,
the caller also passes simpler versions, and the first version that the parser can read is used.
"""

from collections.abc import Iterable
from functools import cache

from omnigraph.lang.coarse_scan import MAX_BRACKET_DEPTH, lexemes
from omnigraph.lang.lalr_parser import UnexpectedText
from omnigraph.lang.lexer import pattern_keywords
from omnigraph.lang.saved_parsers import load_parser
from omnigraph.records.frozen import record


@record
class ReadTerminal:
    """A terminal that the parser has read, with its text."""

    name: str
    text: str


@record
class Expectation:
    """The terminals that have been read, and the names of those that may follow."""

    read: tuple[ReadTerminal, ...]
    allowed: frozenset[str]

    @property
    def last(self) -> str:
        """The name of the last terminal, or an empty string at the start."""
        return self.read[-1].name if self.read else ""


def first_expectation(language: str, versions: Iterable[str]) -> Expectation | None:
    """Return the expectation for the first version of a text that the parser can read, or None if it can read none."""
    return next((result for version in versions if (result := read_prefix(language, version)) is not None), None)


def read_prefix(language: str, prefix: str) -> Expectation | None:
    """Return the terminals that may follow a declaration's prefix, or None if no declaration begins with it.

    >>> expectation = read_prefix("query", "query q() { match { $p: Person } return { $p")
    >>> "DOT" in expectation.allowed, "RPAR" in expectation.allowed
    (True, False)
    >>> read_prefix("query", "query q( {") is None
    True
    """
    if _is_nested_too_deeply(prefix):
        return None
    try:
        tokens, allowed_terminals = load_parser(language).read_prefix(prefix)
    except UnexpectedText:
        return None
    return Expectation(tuple(ReadTerminal(token.type, str(token)) for token in tokens), allowed_terminals)


@cache
def keyword_terminals(language: str) -> dict[str, tuple[str, ...]]:
    """Return the words of each terminal that consists of fixed words."""
    return {
        terminal.name: tuple(sorted(words))
        for terminal in load_parser(language).terminals
        if (words := pattern_keywords(terminal.pattern))
    }


def _is_nested_too_deeply(prefix: str) -> bool:
    depth = 0
    for lexeme in lexemes(prefix, 0, len(prefix)):
        depth += (lexeme.kind == "open") - (lexeme.kind == "close")
        if depth > MAX_BRACKET_DEPTH:
            return True
    return False
