"""Parse text in either language into trees: split it into declarations, parse each one, and collect diagnostics.

This module decodes source bytes, resumes parsing at the next declaration after an error, and composes error messages.
Both languages share this code, so it must not depend on any grammar rule: each language passes in its own builder and
terminal names.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.errors import ParseError
from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
from omnigraph.records.frozen import record
from omnigraph.values.byte_order_mark import encoding_from_mark

from . import coarse_scan

# Maximum length of the source text. It is far above the length of any real schema, but keeps parsing fast.
MAX_SOURCE_CHARACTERS = 4 * 1024 * 1024
_BYTE_ORDER_MARK = "\ufeff"
_MAX_EXPECTED_SHOWN = 6  # maximum number of alternatives listed in an error message
_FOUND_WORD = re.compile(r"[-$@]?[A-Za-z0-9_]+")  # text that readers perceive as one word, even if it is invalid
HintProvider = Callable[[SourceText, Span, frozenset[str]], str | None]


class SyntaxMistake(Exception):  # noqa: N818 - never leaves this package
    """Raised by a builder if the grammar accepts the source but the language does not."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


@record
class Language:
    """The language-specific inputs to the shared parsing code.

    `build_declaration` converts the parser's tree for one declaration into a syntax tree node. Its second argument is
    the declaration's offset in the file, which must be added to every position in the tree. `terminal_names` maps
    terminals to the words that messages use for them. `terminal_groups` maps each set of terminals to a phrase that
    describes the whole set (the first matching set wins). `suggest_hint` returns a hint for the unexpected text at a
    span.
    """

    name: str
    declaration_opening: coarse_scan.DeclarationOpening
    build_declaration: Callable[[Any, int], object]
    terminal_names: Mapping[str, str]
    declaration_form: str
    terminal_groups: tuple[tuple[str, frozenset[str]], ...] = ()
    suggest_hint: HintProvider = lambda source, span, expected: None


@record
class ParsedDeclarations:
    """The declarations that could be parsed, and diagnostics for those that could not.

    `broken_spans` contains the spans of declarations that could not be parsed.
    """

    declarations: tuple[Any, ...]
    diagnostics: tuple[Diagnostic, ...]
    broken_spans: tuple[Span, ...] = ()


def decode_source(encoded: bytes, source_name: str) -> SourceText:
    """Decode a file's bytes as source text. Raise `ParseError` if they are not Unicode text.

    The bytes must be UTF-8, or UTF-16 or UTF-32 with a byte order mark.

    >>> decode_source(b"node A {}", "a.pg").text
    'node A {}'
    """
    try:
        marked_encoding = encoding_from_mark(encoded)
        if marked_encoding not in (None, "utf-8-sig"):
            encoded = encoded.decode(marked_encoding).encode()
        source = SourceText(source_name, encoded.decode("utf-8").removeprefix(_BYTE_ORDER_MARK))
    except UnicodeDecodeError as decode_error:
        readable_source = SourceText(
            source_name,
            encoded[: decode_error.start].decode(decode_error.encoding, "ignore").removeprefix(_BYTE_ORDER_MARK),
        )
        offset = decode_error.start
        encoding_name = decode_error.encoding.upper()
        message = f"byte 0x{encoded[offset]:02x} at offset {offset} is not valid {encoding_name}"
        hint = "save the file as UTF-8 text"
        encoding_error = Diagnostic.at_span(
            readable_source, Span(len(readable_source.text), len(readable_source.text)), message, hint=hint
        )
        raise ParseError(diagnostics=(encoding_error,), source=readable_source) from None
    read_error = _check_readable(source)
    if read_error is not None:
        raise ParseError(diagnostics=(read_error,), source=source)
    return source


def parse_declarations(language: Language, source: SourceText) -> ParsedDeclarations:
    """Parse every declaration in the source text. Invalid text yields diagnostics, never an exception."""
    read_error = _check_readable(source)
    if read_error is not None:
        return ParsedDeclarations((), (read_error,), (Span(0, len(source.text)),))
    declarations: list[Any] = []
    diagnostics: list[Diagnostic] = []
    broken_spans: list[Span] = []
    pending_pieces = [(start, end, False) for start, end in reversed(_split_source(language, source))]
    while pending_pieces:
        piece_start, piece_end, recovered = pending_pieces.pop()
        parsed = _parse_declaration(language, source, piece_start, piece_end)
        if not isinstance(parsed, Diagnostic):
            declarations += [] if parsed is None else [parsed]
            continue
        swallowed_pieces = [] if recovered else _split_swallowed(language, source, piece_start, piece_end)
        broken_end = swallowed_pieces[0][0] if swallowed_pieces else piece_end
        reparsed = _parse_declaration(language, source, piece_start, broken_end) if swallowed_pieces else parsed
        diagnostics.append(reparsed if isinstance(reparsed, Diagnostic) else parsed)
        broken_spans.append(Span(piece_start, broken_end))
        pending_pieces += [(start, end, True) for start, end in reversed(swallowed_pieces)]
    return ParsedDeclarations(tuple(declarations), tuple(diagnostics), tuple(broken_spans))


def parse_declarations_with(language: Language, source: SourceText, word: str) -> tuple[Any, ...] | None:
    """Parse only the declarations that contain `word`. Return None if any of them is invalid."""
    if _check_readable(source) is not None:
        return None
    declarations: list[Any] = []
    for piece_start, piece_end in _split_source(language, source):
        if word in source.text[piece_start:piece_end]:
            parsed = _parse_declaration(language, source, piece_start, piece_end)
            if isinstance(parsed, Diagnostic):
                return None
            declarations += [] if parsed is None else [parsed]
    return tuple(declarations)


def _split_source(language: Language, source: SourceText) -> list[tuple[int, int]]:
    return coarse_scan.split_declarations(source.text, language.declaration_opening, 0, len(source.text))


def _split_swallowed(language: Language, source: SourceText, piece_start: int, piece_end: int) -> list[tuple[int, int]]:
    """Split a piece in which an unclosed string may contain declarations, and return all parts after the first."""
    return coarse_scan.split_declarations(
        source.text, language.declaration_opening, piece_start, piece_end, recovering=True
    )[1:]


def _check_readable(source: SourceText) -> Diagnostic | None:
    if len(source.text) > MAX_SOURCE_CHARACTERS:
        size_text = f"{len(source.text):,} characters; the limit is {MAX_SOURCE_CHARACTERS:,}"
        overflow_span = Span(MAX_SOURCE_CHARACTERS, MAX_SOURCE_CHARACTERS)
        return Diagnostic.at_span(source, overflow_span, f"the text has {size_text}", hint="split the file")
    nul_offset = source.text.find("\0")
    if nul_offset >= 0:
        message = "found a NUL character; this is not a text file"
        return Diagnostic.at_span(source, Span(nul_offset, nul_offset + 1), message)
    try:
        source.text.encode()
    except UnicodeEncodeError as encode_error:
        message = "found a lone surrogate, which UTF-8 cannot encode"
        return Diagnostic.at_span(source, Span(encode_error.start, encode_error.end), message)
    return None


def _parse_declaration(language: Language, source: SourceText, piece_start: int, piece_end: int) -> Any:
    extent = coarse_scan.measure_extent(source.text, piece_start, piece_end)
    if extent is None:
        return None
    if extent.too_deep_bracket is not None:
        message = f"brackets are nested more than {coarse_scan.MAX_BRACKET_DEPTH} levels deep"
        return Diagnostic.at_span(source, extent.too_deep_bracket, message)
    return _build_declaration(language, source, extent.content_span)


def _build_declaration(language: Language, source: SourceText, declaration_span: Span) -> Any:
    from .lalr_parser import UnexpectedText
    from .saved_parsers import load_parser

    try:
        syntax_tree = load_parser(language.name).parse(source.text[declaration_span.start : declaration_span.end])
        return language.build_declaration(syntax_tree, declaration_span.start)
    except UnexpectedText as parser_error:
        error_offset = declaration_span.start + parser_error.offset
        return _describe_syntax_error(language, source, declaration_span, error_offset, parser_error.allowed_terminals)
    except SyntaxMistake as mistake:
        return Diagnostic.at_span(source, mistake.span, mistake.message, hint=mistake.hint)


def _describe_syntax_error(
    language: Language,
    source: SourceText,
    declaration_span: Span,
    error_offset: int,
    expected_terminals: frozenset[str],
) -> Diagnostic:
    lexeme = next(
        coarse_scan.lexemes(source.text, error_offset, declaration_span.end),
        coarse_scan.Lexeme("end", error_offset, error_offset),
    )
    if lexeme.kind == "broken":
        unclosed_kind = "string" if source.text[lexeme.start] == '"' else "comment"
        return Diagnostic.at_span(source, Span(error_offset, error_offset + 1), f"this {unclosed_kind} is never closed")
    word_match = _FOUND_WORD.match(source.text, lexeme.start, declaration_span.end)
    found_span = Span(lexeme.start, max(lexeme.end, word_match.end() if word_match else 0))
    found_text = _quote_found(source.text[found_span.start : found_span.end])
    message = f"expected {_describe_expected(language, expected_terminals)}, found {found_text}"
    hint = language.suggest_hint(source, found_span, expected_terminals) or _hint_unclosed_bracket(
        source, declaration_span, found_span
    )
    return Diagnostic.at_span(source, found_span, message, hint=hint)


def _hint_unclosed_bracket(source: SourceText, declaration_span: Span, error_span: Span) -> str | None:
    """Return a hint about a bracket that is never closed, or None if there is no such bracket."""
    if error_span.start < declaration_span.end:
        return None
    open_brackets: list[int] = []
    for lexeme in coarse_scan.lexemes(source.text, declaration_span.start, declaration_span.end):
        if lexeme.kind == "open":
            open_brackets.append(lexeme.start)
        elif lexeme.kind == "close" and open_brackets:
            open_brackets.pop()
    if not open_brackets:
        return None
    line, column = source.locate(open_brackets[-1])
    return f"`{source.text[open_brackets[-1]]}` at {line}:{column} is never closed"


def _quote_found(found_text: str) -> str:
    if not found_text:
        return "the end of the declaration"
    return f"`{found_text}`" if len(found_text) <= 32 else f"`{found_text[:32]}…`"


def _describe_expected(language: Language, terminals: frozenset[str]) -> str:
    if not terminals or terminals == {"$END"}:
        return language.declaration_form
    group_words, remaining = set(), terminals
    for group_word, group_members in language.terminal_groups:
        if group_members <= remaining:
            group_words.add(group_word)
            remaining = remaining - group_members
    alternatives = sorted(
        group_words | {language.terminal_names.get(terminal, _humanize_terminal(terminal)) for terminal in remaining}
    )
    alternatives = (
        [*alternatives[:_MAX_EXPECTED_SHOWN], "…"] if len(alternatives) > _MAX_EXPECTED_SHOWN else alternatives
    )
    return " or ".join([", ".join(alternatives[:-1]), alternatives[-1]]) if len(alternatives) > 1 else alternatives[0]


def _humanize_terminal(terminal: str) -> str:
    return "the end" if terminal == "$END" else terminal.lower().replace("_", " ")
