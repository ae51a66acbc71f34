"""A contextual lexer with almost no start-up cost.

The lexer tries only the terminals that the parser state allows, and tries a keyword only where its word occurs. Each
terminal is compiled once, when it is first tried.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from omnigraph.records.frozen import record

_WORD_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Matches keyword patterns that end in a lookahead, such as `and(?!..)`, `(?:asc|desc)(?!..)` and `count(?=..)`.
_KEYWORD_PATTERN = re.compile(r"(?:\(\?:)?([A-Za-z0-9_|]+)\)?\(\?[!=]")


@record
class Terminal:
    """A terminal's name and its regular expression. If several terminals match, the one with the lowest rank wins."""

    name: str
    pattern: str
    rank: int


class TerminalMatcher:
    """Tries the terminals that are allowed in a parser state, in order of rank."""

    def __init__(self, ranked_terminals: Sequence[Terminal]) -> None:
        self._ranked_terminals = ranked_terminals
        self._candidates_by_word: dict[str, list[Terminal]] = {}

    def match(self, text: str, offset: int) -> tuple[str, str] | None:
        """Return the first matching terminal's name and the text that it matches, or None if no terminal matches."""
        for terminal in self._candidate_terminals(text, offset):
            pattern_match = compile_matcher(terminal.pattern)(text, offset)
            if pattern_match is not None:
                return terminal.name, pattern_match.group()
        return None

    def _candidate_terminals(self, text: str, offset: int) -> list[Terminal]:
        word_match = _WORD_PATTERN.match(text, offset)
        word = word_match.group() if word_match is not None else ""
        candidates = self._candidates_by_word.get(word)
        if candidates is None:
            candidates = [terminal for terminal in self._ranked_terminals if _can_match_word(terminal.pattern, word)]
            self._candidates_by_word[word] = candidates
        return candidates


def _can_match_word(pattern: str, word: str) -> bool:
    """Return whether a terminal can match where `word` occurs. An empty `word` means that the text is not a word."""
    keywords = pattern_keywords(pattern)
    return word in keywords if keywords else True


@cache
def pattern_keywords(pattern: str) -> frozenset[str]:
    """Return the words that a terminal consists of, or an empty set if it is not a keyword."""
    keyword_match = _KEYWORD_PATTERN.match(pattern)
    return frozenset(keyword_match.group(1).split("|")) if keyword_match is not None else frozenset()


@cache
def compile_matcher(pattern: str) -> Callable[..., Any]:
    """Return the `match` method of a compiled regular expression."""
    return re.compile(pattern).match
