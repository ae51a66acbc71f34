"""Tokens around the cursor, in text that may not parse.

This module uses the coarse scan to find the word under the cursor and the declaration that contains it. It does not
depend on the grammar.
"""

import re

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.coarse_scan import DeclarationOpening, lexemes, split_declarations
from omnigraph.lang.parsing import MAX_SOURCE_CHARACTERS
from omnigraph.records.frozen import record

_WORD_BEFORE = re.compile(r"[$@]?[A-Za-z0-9_]*\Z")
_WORD_AFTER = re.compile(r"[A-Za-z0-9_]*")
_MAX_WORD = 300  # longer than any name; without this limit, the search for the start of a word could scan a whole file


@record
class TextToken:
    """A word, variable (`$p`), annotation (`@key`), string, number, bracket or other character, with its position."""

    kind: str
    text: str
    start: int
    end: int


@record
class Cursor:
    """The position of the cursor in its declaration.

    `typed` is the part of the word before the cursor, and `replaced` is the span of the whole word. `before` is the
    text from the start of the declaration to the start of the word. `declaration` is the span of the whole declaration.
    """

    typed: str
    replaced: Span
    before: str
    declaration: Span


def find_cursor(text: str, offset: int, opening: DeclarationOpening) -> Cursor | None:
    """Return the position of the cursor, or None if it is in a string or a comment, or if the text is too long."""
    if len(text) > MAX_SOURCE_CHARACTERS:
        return None
    offset = min(max(offset, 0), len(text))
    declaration = _enclosing_declaration(text, offset, opening)
    if _is_in_string_or_comment(text, declaration.start, offset):
        return None
    word_before = _WORD_BEFORE.search(text, max(declaration.start, offset - _MAX_WORD), offset)
    word_start = word_before.start() if word_before is not None else offset
    word_after = _WORD_AFTER.match(text, offset)
    word_end = word_after.end() if word_after is not None and word_start < offset else offset
    return Cursor(
        text[word_start:offset], Span(word_start, word_end), text[declaration.start : word_start], declaration
    )


def scan_tokens(text: str, start: int, end: int) -> list[TextToken]:
    """Return the tokens in a range of the text, without comments.

    >>> [token.text for token in scan_tokens("$p.age >= 18 @key", 0, 17)]
    ['$p', '.', 'age', '>', '=', '18', '@key']
    """
    tokens: list[TextToken] = []
    for lexeme in lexemes(text, start, end, recovering=True):
        lexeme_text = text[lexeme.start : lexeme.end]
        previous = tokens[-1] if tokens and tokens[-1].end == lexeme.start else None
        if lexeme.kind == "comment":
            continue
        if previous is not None and _continues_token(previous, lexeme.kind, lexeme_text):
            kind = {"$": "variable", "@": "annotation"}.get(previous.text, previous.kind)
            tokens[-1] = TextToken(kind, previous.text + lexeme_text, previous.start, lexeme.end)
            continue
        kind = "number" if lexeme_text.isdigit() else lexeme.kind
        tokens.append(TextToken(kind, lexeme_text, lexeme.start, lexeme.end))
    return tokens


def _continues_token(previous: TextToken, kind: str, text: str) -> bool:
    if previous.text in ("$", "@"):
        return kind == "word"
    return previous.kind == "number" and text.isdigit()


def token_at(tokens: list[TextToken], offset: int) -> int | None:
    """Return the index of the word, variable or annotation at an offset, or None.

    An offset at the end of a word belongs to that word.
    """
    for index, token in enumerate(tokens):
        if token.kind in ("word", "variable", "annotation") and token.start <= offset <= token.end:
            return index
    return None


def _enclosing_declaration(text: str, offset: int, opening: DeclarationOpening) -> Span:
    # Brackets are ignored, because they are seldom balanced while a declaration is being edited.
    pieces = split_declarations(text, opening, 0, len(text), recovering=True)
    return next((Span(*piece) for piece in reversed(pieces) if piece[0] <= offset), Span(0, len(text)))


def _is_in_string_or_comment(text: str, start: int, offset: int) -> bool:
    last = None
    for last in lexemes(text, start, offset, recovering=True):  # noqa: B007 - only the last one matters
        pass
    if last is None or last.end < offset:
        return False
    if last.kind == "comment":
        return text.startswith("//", last.start)
    return last.kind == "broken"
