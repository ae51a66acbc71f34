"""From text to trees, for both languages: split, parse each declaration, collect what is wrong.

Owns decoding of source bytes, recovery at the next declaration, and the wording of syntax errors.
Knows no single rule of either grammar: each language hands in its builder and its names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.diagnostics import Diagnostic, Source, Span
from omnigraph.errors import ParseError

from . import scan

MAX_SOURCE = 4 * 1024 * 1024  # characters; far above any schema, far below what hurts
_SHOWN = 6  # expected tokens named in a message


class Mistake(Exception):  # noqa: N818 - never leaves this package
    """Raised by a builder for text that the grammar lets through and the language does not."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


@dataclass(frozen=True, slots=True)
class Language:
    """What the shared machinery must know about one language.

    `build` turns the syntax tree of one declaration into our own node; its second argument is the
    offset of the declaration in the file, to be added to every position. `names` gives terminals
    the words that people read.
    """

    name: str
    opening: scan.Opening
    build: Callable[[Any, int], object]
    names: Mapping[str, str]
    wanted: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The declarations that could be read, and what is wrong with the others.

    `broken` are the spans of declarations that could not be read.
    """

    declarations: tuple[Any, ...]
    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Span, ...] = ()


def decode(data: bytes, name: str) -> Source:
    """Source text from the bytes of a file; anything but UTF-8 text is a `ParseError`.

    >>> decode(b"node A {}", "a.pg").text
    'node A {}'
    """
    try:
        source = Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        good = Source(name, data[: error.start].decode("utf-8-sig", "replace"))
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        hint = "save the file as UTF-8; is it a text file?"
        at = Diagnostic.at(good, Span(len(good.text), len(good.text)), message, hint=hint)
        raise ParseError(diagnostics=(at,), source=good) from None
    refusal = _unreadable(source)
    if refusal is not None:
        raise ParseError(diagnostics=(refusal,), source=source)
    return source


def parse_declarations(language: Language, source: Source) -> Parsed:
    """Every declaration of a source. Bad text gives diagnostics, never an exception."""
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
    """Declarations that a quote left open may have swallowed."""
    return scan.split(source.text, language.opening, start, end, wary=True)[1:]


def _unreadable(source: Source) -> Diagnostic | None:
    if len(source.text) > MAX_SOURCE:
        size = f"{len(source.text):,} characters; at most {MAX_SOURCE:,} are read"
        at = Span(MAX_SOURCE, MAX_SOURCE)
        return Diagnostic.at(source, at, f"the text has {size}", hint="split the file")
    at_nul = source.text.find("\0")
    if at_nul >= 0:
        message = "a NUL character: this is not a text file"
        return Diagnostic.at(source, Span(at_nul, at_nul + 1), message)
    return None


def _parse_piece(language: Language, source: Source, start: int, end: int) -> Any:
    inside = scan.content(source.text, start, end)
    if inside is None:
        return None
    deep = scan.too_deep(source.text, start, end)
    if deep is not None:
        message = f"brackets are nested more than {scan.MAX_DEPTH} deep"
        return Diagnostic.at(source, deep, message)
    return _read(language, source, inside)


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
    span = Span(piece.start, piece.end)
    if piece.kind == "broken":
        what = "string" if source.text[piece.start] == '"' else "comment"
        return Diagnostic.at(source, Span(start, start + 1), f"this {what} is never closed")
    found = _shown(source.text[span.start : span.end])
    return Diagnostic.at(source, span, f"expected {_expected(language, error)}, found {found}")


def _where(inside: Span, error: Any) -> int:
    token = getattr(error, "token", None)
    if token is None:
        return inside.start + int(error.pos_in_stream)
    return inside.end if token.type == "$END" else inside.start + int(token.start_pos)


def _shown(found: str) -> str:
    if not found:
        return "the end of the declaration"
    return f"`{found}`" if len(found) <= 32 else f"`{found[:32]}…`"


def _expected(language: Language, error: Any) -> str:
    terminals = getattr(error, "accepts", None) or getattr(error, "expected", None)
    terminals = terminals or getattr(error, "allowed", None) or ()
    words = sorted({language.names.get(t, _plain(t)) for t in terminals})
    if not words or set(terminals) == {"$END"}:
        return language.wanted
    if len(words) > _SHOWN:
        words = [*words[:_SHOWN], "…"]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _plain(terminal: str) -> str:
    return "the end" if terminal == "$END" else terminal.lower().replace("_", " ")
