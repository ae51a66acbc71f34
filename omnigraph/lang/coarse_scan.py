"""A coarse, linear-time scan for words, strings, comments and brackets.

This module limits how deeply brackets nest. It also splits a file into declarations, so that a broken declaration does
not hide the next one. It does not use the grammar: only the parser decides what a declaration means.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from omnigraph.errors.diagnostics import Span
from omnigraph.records.frozen import record

MAX_BRACKET_DEPTH = 100

_COMMON_PATTERN = r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>//[^\n]* | /\*(?s:.*?)\*/)
  | (?P<string>"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+")
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<open>[{(\[])
  | (?P<close>[})\]])
"""
# To keep the scan linear, an unterminated string or comment extends to the end of the text.
_STRICT_LEXEMES = re.compile(_COMMON_PATTERN + r'| (?P<broken>"(?s:.*) | /\*(?s:.*)) | (?P<other>(?s:.))', re.X)
# A broken declaration may contain stray quotes, so a string never extends past the end of its line.
_ONE_LINE_PATTERN = _COMMON_PATTERN.replace(r'[^"\\]', r'[^"\\\n]').replace(r"\\(?s:.)", r"\\.")
_RECOVERY_LEXEMES = re.compile(_ONE_LINE_PATTERN + r'| (?P<broken>"[^\n]* | /\*(?s:.*)) | (?P<other>(?s:.))', re.X)


class Lexeme(NamedTuple):
    """A lexeme found by the coarse scan, with its kind and position."""

    kind: str
    start: int
    end: int


@record
class DeclarationOpening:
    """How a declaration begins: one of `keywords`, followed by lexemes of the kinds in `following_kinds`."""

    keywords: frozenset[str]
    following_kinds: tuple[str, ...]


def lexemes(text: str, start_offset: int, end_offset: int, *, recovering: bool = False) -> Iterator[Lexeme]:
    """Yield the lexemes in a range of `text`, excluding whitespace.

    >>> [x.kind for x in lexemes('node A { } // end', 0, 17)]
    ['word', 'word', 'open', 'close', 'comment']
    """
    lexeme_pattern = _RECOVERY_LEXEMES if recovering else _STRICT_LEXEMES
    for match in lexeme_pattern.finditer(text, start_offset, end_offset):
        if match.lastgroup != "space":
            yield Lexeme(match.lastgroup or "other", match.start(), match.end())


def split_declarations(
    text: str, opening: DeclarationOpening, start_offset: int, end_offset: int, *, recovering: bool = False
) -> list[tuple[int, int]]:
    r"""Split a range of text at the positions where declarations begin, and return the (start, end) of each piece.

    The first piece may contain text that precedes the first declaration. A declaration cannot begin inside brackets. If
    `recovering` is true, however, brackets are ignored because they may be unbalanced.

    >>> opening = DeclarationOpening(frozenset({"node"}), ("word",))
    >>> split_declarations("// x\nnode A {} node B {}", opening, 0, 24)
    [(0, 5), (5, 15), (15, 24)]
    """
    code_lexemes = [
        scanned
        for scanned in lexemes(text, start_offset, end_offset, recovering=recovering)
        if scanned.kind != "comment"
    ]
    declaration_starts, bracket_depth = [start_offset], 0
    for lexeme_index, lexeme in enumerate(code_lexemes):
        bracket_depth = max(0, bracket_depth + (lexeme.kind == "open") - (lexeme.kind == "close"))
        if (
            (recovering or not bracket_depth)
            and lexeme.start > start_offset
            and _begins_declaration(text, code_lexemes, lexeme_index, opening)
        ):
            declaration_starts.append(lexeme.start)
    return list(pairwise([*declaration_starts, end_offset]))


def _begins_declaration(text: str, code_lexemes: list[Lexeme], lexeme_index: int, opening: DeclarationOpening) -> bool:
    keyword = code_lexemes[lexeme_index]
    if keyword.kind != "word" or text[keyword.start : keyword.end] not in opening.keywords:
        return False
    if lexeme_index and text[code_lexemes[lexeme_index - 1].end - 1 : keyword.start] in ("$", "@", "."):
        return False
    following_kinds = tuple(
        lexeme.kind for lexeme in code_lexemes[lexeme_index + 1 : lexeme_index + 1 + len(opening.following_kinds)]
    )
    return following_kinds == opening.following_kinds


@record
class ContentExtent:
    """The extent of a piece of text, from its first to its last lexeme, excluding comments.

    `too_deep_bracket` is the first bracket nested deeper than `MAX_BRACKET_DEPTH`, if any.
    """

    content_span: Span
    too_deep_bracket: Span | None


def measure_extent(text: str, start_offset: int, end_offset: int) -> ContentExtent | None:
    """Return the extent of a piece of text, or None if the piece contains only comments."""
    content_start, content_end, bracket_depth = None, 0, 0
    too_deep_bracket: Span | None = None
    for lexeme_kind, lexeme_start, lexeme_end in lexemes(text, start_offset, end_offset):
        if lexeme_kind == "comment":
            continue
        content_start = lexeme_start if content_start is None else content_start
        content_end = lexeme_end
        bracket_depth += 1 if lexeme_kind == "open" else -1 if lexeme_kind == "close" else 0
        if bracket_depth > MAX_BRACKET_DEPTH and too_deep_bracket is None:
            too_deep_bracket = Span(lexeme_start, lexeme_end)
    return None if content_start is None else ContentExtent(Span(content_start, content_end), too_deep_bracket)


def find_comments(text: str) -> tuple[Span, ...]:
    """Return the spans of all comments in the source text, in source order."""
    comment_lexemes = (lexeme for lexeme in lexemes(text, 0, len(text)) if lexeme.kind == "comment")
    return tuple(Span(lexeme.start, lexeme.end) for lexeme in comment_lexemes)
