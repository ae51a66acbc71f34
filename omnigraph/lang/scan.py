"""A coarse, linear scan of a text: words, strings, comments, brackets.

Owns the split of a file into declarations, so that a broken one does not hide the next, and the
limit on nesting. It knows no grammar: the parser decides what a declaration means.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from omnigraph.diagnostics import Span
from omnigraph.record import record

MAX_DEPTH = 100

_WHOLE = r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>//[^\n]* | /\*(?s:.*?)\*/)
  | (?P<string>"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+")
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<open>[{(\[])
  | (?P<close>[})\]])
"""
# An unterminated string or comment swallows the rest of the text, which keeps the scan linear.
_STRICT = re.compile(_WHOLE + r'| (?P<broken>"(?s:.*) | /\*(?s:.*)) | (?P<other>(?s:.))', re.X)
# Quotes in a broken declaration cannot be trusted: here a string ends with its line.
_LINE = _WHOLE.replace(r'[^"\\]', r'[^"\\\n]').replace(r"\\(?s:.)", r"\\.")
_WARY = re.compile(_LINE + r'| (?P<broken>"[^\n]* | /\*(?s:.*)) | (?P<other>(?s:.))', re.X)


class Lexeme(NamedTuple):
    """A coarse piece of text: its kind and position."""

    kind: str
    start: int
    end: int


@record
class Opening:
    """How a declaration begins: one of `keywords`, then lexemes of the `following_kinds`."""

    words: frozenset[str]
    follow: tuple[str, ...]


def lexemes(text: str, start: int, end: int, *, wary: bool = False) -> Iterator[Lexeme]:
    """Yield the coarse pieces of a range of `text`, without white space.

    >>> [x.kind for x in lexemes('node A { } // end', 0, 17)]
    ['word', 'word', 'open', 'close', 'comment']
    """
    pattern = _WARY if wary else _STRICT
    for match in pattern.finditer(text, start, end):
        if match.lastgroup != "space":
            yield Lexeme(match.lastgroup or "other", match.start(), match.end())


def split(
    text: str, opening: Opening, start: int, end: int, *, wary: bool = False
) -> list[tuple[int, int]]:
    r"""Split a range of a text where declarations begin; return the (start, end) of each piece.

    The first piece may hold text before the first declaration. No declaration begins inside
    brackets, except when `recovering`: brackets cannot be trusted then either.

    >>> split("// x\nnode A {} node B {}", Opening(frozenset({"node"}), ("word",)), 0, 24)
    [(0, 5), (5, 15), (15, 24)]
    """
    solid = [x for x in lexemes(text, start, end, wary=wary) if x.kind != "comment"]
    cuts, depth = [start], 0
    for index, piece in enumerate(solid):
        depth = max(0, depth + (piece.kind == "open") - (piece.kind == "close"))
        if (wary or not depth) and piece.start > start and _begins(text, solid, index, opening):
            cuts.append(piece.start)
    return list(pairwise([*cuts, end]))


def _begins(text: str, solid: list[Lexeme], index: int, opening: Opening) -> bool:
    word = solid[index]
    if word.kind != "word" or text[word.start : word.end] not in opening.words:
        return False
    if index and text[solid[index - 1].end - 1 : word.start] in ("$", "@", "."):
        return False
    following = tuple(x.kind for x in solid[index + 1 : index + 1 + len(opening.follow)])
    return following == opening.follow


@record
class Extent:
    """The content of a piece of text: from its first to its last lexeme, without comments.

    `too_deep_bracket` is the first bracket nested deeper than `MAX_BRACKET_DEPTH`, if any.
    """

    inside: Span
    too_deep: Span | None


def extent(text: str, start: int, end: int) -> Extent | None:
    """Return the extent of a piece of text; None if it holds only comments."""
    first, last, depth = None, 0, 0
    deep: Span | None = None
    for kind, begin, last_end in lexemes(text, start, end):
        if kind == "comment":
            continue
        first = begin if first is None else first
        last = last_end
        depth += 1 if kind == "open" else -1 if kind == "close" else 0
        if depth > MAX_DEPTH and deep is None:
            deep = Span(begin, last_end)
    return None if first is None else Extent(Span(first, last), deep)


def comments(text: str) -> tuple[Span, ...]:
    """Return the spans of the comments of a text, in order."""
    found = (x for x in lexemes(text, 0, len(text)) if x.kind == "comment")
    return tuple(Span(x.start, x.end) for x in found)
