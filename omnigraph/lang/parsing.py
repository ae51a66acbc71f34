"""Parse text into trees, for both languages: split, parse each declaration, collect diagnostics.

Owns the decoding of source bytes, recovery at the next declaration, and the wording of syntax
errors. It must not know any grammar rule: each language passes in its builder and its names.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.diagnostics import Diagnostic, Source, Span
from omnigraph.errors import ParseError
from omnigraph.record import record

from . import scan

MAX_SOURCE = 4 * 1024 * 1024  # far larger than any schema, small enough to parse quickly
_BOM = "\ufeff"
_SHOWN = 6  # the most alternatives that a message lists
_FOUND = re.compile(r"[-$@]?[A-Za-z0-9_]+")  # what a reader sees as one word, even an invalid one
Advice = Callable[[Source, Span, frozenset[str]], str | None]


class Mistake(Exception):  # noqa: N818 - never leaves this package
    """Raised by a builder for text that the grammar accepts and the language does not."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


@record
class Language:
    """What the shared parsing code needs to know about one language.

    `build_declaration` turns the syntax tree of one declaration into a node of our own; its second
    argument is the offset of the declaration in the file, which it adds to every position.
    `terminal_names` maps terminals to the words used in messages. `terminal_groups` gives one
    phrase to a set of terminals that are allowed together (the first matching group wins).
    `suggest_hint` returns a hint for the unexpected text at a span.
    """

    name: str
    opening: scan.Opening
    build: Callable[[Any, int], object]
    names: Mapping[str, str]
    wanted: str
    groups: tuple[tuple[str, frozenset[str]], ...] = ()
    advise: Advice = lambda source, span, expected: None


@record
class Parsed:
    """The declarations that could be parsed, and the diagnostics of the others.

    `broken_spans` are the spans of declarations that could not be parsed.
    """

    declarations: tuple[Any, ...]
    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Span, ...] = ()


def decode(data: bytes, name: str) -> Source:
    """Return the source text in the bytes of a file; raise `ParseError` unless it is UTF-8 text.

    >>> decode(b"node A {}", "a.pg").text
    'node A {}'
    """
    try:
        source = Source(name, data.decode("utf-8").removeprefix(_BOM))
    except UnicodeDecodeError as error:
        good = Source(name, data[: error.start].decode("utf-8").removeprefix(_BOM))
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not valid UTF-8"
        hint = "save the file as UTF-8 text"
        at = Diagnostic.at(good, Span(len(good.text), len(good.text)), message, hint=hint)
        raise ParseError(diagnostics=(at,), source=good) from None
    refusal = _unreadable(source)
    if refusal is not None:
        raise ParseError(diagnostics=(refusal,), source=source)
    return source


def parse_declarations(language: Language, source: Source) -> Parsed:
    """Parse every declaration of a source. Bad text yields diagnostics, never an exception."""
    refusal = _unreadable(source)
    if refusal is not None:
        return Parsed((), (refusal,), (Span(0, len(source.text)),))
    declarations: list[Any] = []
    diagnostics: list[Diagnostic] = []
    broken: list[Span] = []
    pending = [(a, b, False) for a, b in reversed(_pieces(language, source))]
    while pending:
        start, end, wary = pending.pop()
        result = _parse_piece(language, source, start, end)
        if not isinstance(result, Diagnostic):
            declarations += [] if result is None else [result]
            continue
        rest = [] if wary else _rest(language, source, start, end)
        limit = rest[0][0] if rest else end
        again = _parse_piece(language, source, start, limit) if rest else result
        diagnostics.append(again if isinstance(again, Diagnostic) else result)
        broken.append(Span(start, limit))
        pending += [(a, b, True) for a, b in reversed(rest)]
    return Parsed(tuple(declarations), tuple(diagnostics), tuple(broken))


def _pieces(language: Language, source: Source) -> list[tuple[int, int]]:
    return scan.split(source.text, language.opening, 0, len(source.text))


def _rest(language: Language, source: Source, start: int, end: int) -> list[tuple[int, int]]:
    """Return the declarations that an unclosed quote may have swallowed."""
    return scan.split(source.text, language.opening, start, end, wary=True)[1:]


def _unreadable(source: Source) -> Diagnostic | None:
    if len(source.text) > MAX_SOURCE:
        size = f"{len(source.text):,} characters; the limit is {MAX_SOURCE:,}"
        at = Span(MAX_SOURCE, MAX_SOURCE)
        return Diagnostic.at(source, at, f"the text has {size}", hint="split the file")
    at_nul = source.text.find("\0")
    if at_nul >= 0:
        message = "found a NUL character; this is not a text file"
        return Diagnostic.at(source, Span(at_nul, at_nul + 1), message)
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        message = "found a lone surrogate, which UTF-8 cannot encode"
        return Diagnostic.at(source, Span(error.start, error.end), message)
    return None


def _parse_piece(language: Language, source: Source, start: int, end: int) -> Any:
    extent = scan.extent(source.text, start, end)
    if extent is None:
        return None
    if extent.too_deep is not None:
        message = f"brackets are nested more than {scan.MAX_DEPTH} levels deep"
        return Diagnostic.at(source, extent.too_deep, message)
    return _read(language, source, extent.inside)


def _read(language: Language, source: Source, inside: Span) -> Any:
    from lark.exceptions import UnexpectedInput, VisitError

    from .tables import parser

    try:
        tree = parser(language.name).parse(source.text[inside.start : inside.end])
        return language.build(tree, inside.start)
    except UnexpectedInput as error:
        return _syntax_error(language, source, inside, error)
    except (Mistake, VisitError) as raised:
        mistake = raised.orig_exc if isinstance(raised, VisitError) else raised
        if not isinstance(mistake, Mistake):
            raise
        return Diagnostic.at(source, mistake.span, mistake.message, hint=mistake.hint)


def _syntax_error(language: Language, source: Source, inside: Span, error: Any) -> Diagnostic:
    start = _where(inside, error)
    piece = next(scan.lexemes(source.text, start, inside.end), scan.Lexeme("end", start, start))
    if piece.kind == "broken":
        what = "string" if source.text[piece.start] == '"' else "comment"
        return Diagnostic.at(source, Span(start, start + 1), f"this {what} is never closed")
    word = _FOUND.match(source.text, piece.start, inside.end)
    span = Span(piece.start, max(piece.end, word.end() if word else 0))
    found = _shown(source.text[span.start : span.end])
    expected = _terminals(error)
    message = f"expected {_expected(language, expected)}, found {found}"
    hint = language.advise(source, span, expected) or _unclosed(source, inside, span)
    return Diagnostic.at(source, span, message, hint=hint)


def _unclosed(source: Source, inside: Span, at: Span) -> str | None:
    """Return which bracket is still open when the text ends too early."""
    if at.start < inside.end:
        return None
    still_open: list[int] = []
    for piece in scan.lexemes(source.text, inside.start, inside.end):
        if piece.kind == "open":
            still_open.append(piece.start)
        elif piece.kind == "close" and still_open:
            still_open.pop()
    if not still_open:
        return None
    line, column = source.locate(still_open[-1])
    return f"`{source.text[still_open[-1]]}` at {line}:{column} is never closed"


def _where(inside: Span, error: Any) -> int:
    token = getattr(error, "token", None)
    if token is None:
        return inside.start + int(error.pos_in_stream)
    return inside.end if token.type == "$END" else inside.start + int(token.start_pos)


def _shown(found: str) -> str:
    if not found:
        return "the end of the declaration"
    return f"`{found}`" if len(found) <= 32 else f"`{found[:32]}…`"


def _terminals(error: Any) -> frozenset[str]:
    """Return the terminals that are allowed at the position of an error."""
    # The parser state is exact; the lexer also lists terminals that only other contexts allow.
    reached = getattr(error, "interactive_parser", None)
    told = reached.accepts() if reached is not None else getattr(error, "expected", ())
    return frozenset(told)


def _expected(language: Language, terminals: frozenset[str]) -> str:
    if not terminals or terminals == {"$END"}:
        return language.wanted
    words, rest = set(), terminals
    for word, members in language.groups:
        if members <= rest:
            words.add(word)
            rest = rest - members
    shown = sorted(words | {language.names.get(t, _plain(t)) for t in rest})
    shown = [*shown[:_SHOWN], "…"] if len(shown) > _SHOWN else shown
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _plain(terminal: str) -> str:
    return "the end" if terminal == "$END" else terminal.lower().replace("_", " ")
