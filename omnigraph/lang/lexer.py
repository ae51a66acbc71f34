"""A contextual lexer with almost no start-up cost.

The lexer tries a terminal only if the parser state allows it and if it can match the next word (for a keyword) or begin
with the next character (for any other terminal). Regular expressions are compiled when they are first used, and
keywords and punctuation need none.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from omnigraph.records.frozen import record

_match_word = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").match
# Matches keyword patterns that end in a lookahead, such as `and(?!..)`, `(?:asc|desc)(?!..)` and `count(?=..)`.
_KEYWORD_PATTERN = re.compile(r"(?:\(\?:)?([A-Za-z0-9_|]+)\)?\(\?[!=]")
# Matches keyword patterns in which the word only has to end, such as `and(?![A-Za-z0-9_])`.
_WHOLE_WORD_PATTERN = re.compile(r"(?:\(\?:)?[A-Za-z0-9_|]+\)?\(\?!\[A-Za-z0-9_\]\)")
# Matches patterns of punctuation, such as `\{`, `,` and `\->`.
_PUNCTUATION_PATTERN = re.compile(r"(?:\\[^\w\s\\]|[-=<>%/:,])+")
# Matches the beginning of patterns whose first character is in a set or is always the same, such as `-?[0-9]` and `@`.
_FIRST_CHARACTER = re.compile(r"""(-\?)?\[([^]^]+)\](?![*?{])|\\?([-$"@])(?![*?{])""")


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
        self._keywords: frozenset[str] = frozenset().union(
            *[pattern_keywords(terminal.pattern) for terminal in ranked_terminals]
        )
        self._candidates_by_beginning: dict[str, list[tuple[Terminal, str | None]]] = {}

    def match(self, text: str, offset: int) -> tuple[str, str] | None:
        """Return the first matching terminal's name and the text that it matches, or None if no terminal matches."""
        word_match = _match_word(text, offset)
        beginning = word_match.group() if word_match is not None else text[offset]
        if beginning not in self._keywords:
            beginning = text[offset]
        candidates = self._candidates_by_beginning.get(beginning)
        if candidates is None:
            candidates = self._candidates_by_beginning[beginning] = self._find_candidates(beginning)
        for terminal, exact_text in candidates:
            if exact_text is not None:
                if text.startswith(exact_text, offset):
                    return terminal.name, exact_text
            elif (pattern_match := compile_matcher(terminal.pattern)(text, offset)) is not None:
                return terminal.name, pattern_match.group()
        return None

    def _find_candidates(self, beginning: str) -> list[tuple[Terminal, str | None]]:
        """Return the terminals that may match text with the given beginning, which is a keyword or a single character.

        If a terminal can match only one such text, the text is returned with it. A keyword that may be followed by
        anything but another word character needs no regular expression, because `match` reads whole words.
        """
        candidates: list[tuple[Terminal, str | None]] = []
        for terminal in self._ranked_terminals:
            if keywords := pattern_keywords(terminal.pattern):
                is_whole_word = _WHOLE_WORD_PATTERN.fullmatch(terminal.pattern) is not None
                candidates += [(terminal, beginning if is_whole_word else None)] if beginning in keywords else []
            elif (punctuation := _punctuation_of(terminal.pattern)) is not None:
                candidates += [(terminal, punctuation)] if punctuation[0] == beginning else []
            elif _can_begin_with(terminal.pattern, beginning[0]):
                candidates.append((terminal, None))
        return candidates


@cache
def _punctuation_of(pattern: str) -> str | None:
    """Return the only text that a terminal can match, or None if the terminal is not fixed punctuation."""
    return pattern.replace("\\", "") if _PUNCTUATION_PATTERN.fullmatch(pattern) else None


def _can_begin_with(pattern: str, character: str) -> bool:
    """Return False only if a terminal cannot match any text that begins with the given character."""
    first_match = _FIRST_CHARACTER.match(pattern)
    if first_match is None:
        return True
    minus, characters, only_character = first_match.groups()
    if only_character is not None:
        return bool(only_character == character)
    return re.match(f"[{'-' if minus else ''}{characters}]", character) is not None


@cache
def pattern_keywords(pattern: str) -> frozenset[str]:
    """Return the words that a keyword terminal can match, or an empty set if the terminal is not a keyword."""
    keyword_match = _KEYWORD_PATTERN.match(pattern)
    return frozenset(keyword_match.group(1).split("|")) if keyword_match is not None else frozenset()


@cache
def compile_matcher(pattern: str) -> Callable[..., Any]:
    """Return the `match` method of a compiled regular expression."""
    return re.compile(pattern).match
