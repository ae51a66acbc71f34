"""A contextual lexer with almost no start-up cost.

Lark compiles one large pattern for every set of terminals that a parser state accepts. Our grammars would need more
than a hundred of these patterns, and compiling them would account for most of the start-up time. This lexer compiles
each terminal once, when it is first tried, and tries a keyword only where its word occurs. The result must be the same
as lark's: if several terminals match, the one with the highest rank wins.
"""

import re
from functools import cache
from typing import Any

from lark.exceptions import UnexpectedCharacters
from lark.lexer import BasicLexer, ContextualLexer, TerminalDef, Token

_WORD_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Matches keyword patterns that end in a lookahead, such as `and(?!..)`, `(?:asc|desc)(?!..)` and `count(?=..)`.
_KEYWORD_PATTERN = re.compile(r"(?:\(\?:)?([A-Za-z0-9_|]+)\)?\(\?[!=]")


class TerminalMatcher:
    """Tries a parser state's terminals at an offset in the text, in order of rank."""

    def __init__(self, terminals: list[TerminalDef], ignored_names: frozenset[str]) -> None:
        self.allowed_types = {terminal.name for terminal in terminals} - ignored_names or {"<END-OF-FILE>"}
        ranked_terminals = sorted(
            (terminal for terminal in terminals if terminal.name not in ignored_names), key=_terminal_rank
        )
        self._named_patterns = [(terminal.name, terminal.pattern.to_regexp()) for terminal in ranked_terminals]
        self._candidates_by_word: dict[str, list[tuple[str, str]]] = {}

    def match(self, text: str, offset: int, text_end: int) -> tuple[str, str] | None:
        """Return the first matching terminal and the text that it matches, or None if no terminal matches."""
        for terminal_name, pattern in self._candidate_terminals(text, offset, text_end):
            pattern_match = _compile_matcher(pattern)(text, offset, text_end)
            if pattern_match is not None:
                return terminal_name, pattern_match.group()
        return None

    def _candidate_terminals(self, text: str, offset: int, text_end: int) -> list[tuple[str, str]]:
        word_match = _WORD_PATTERN.match(text, offset, text_end)
        word = word_match.group() if word_match is not None else ""
        candidates = self._candidates_by_word.get(word)
        if candidates is None:
            candidates = [
                named_pattern for named_pattern in self._named_patterns if _can_match_word(named_pattern[1], word)
            ]
            self._candidates_by_word[word] = candidates
        return candidates


class QuickLexer(BasicLexer):
    """A lexer for one parser state. Tokens record only offsets, because line numbers are not needed."""

    def __init__(self, conf: Any, comparator: Any = None) -> None:
        self.terminals = conf.terminals
        self.ignore_types = frozenset(conf.ignore)
        self.terminals_by_name = conf.terminals_by_name
        self._scanner = None
        ignored_pattern = "|".join(
            self.terminals_by_name[terminal_name].pattern.to_regexp() for terminal_name in conf.ignore
        )
        self._match_trivia = _compile_matcher(f"(?:{ignored_pattern})*+")

    def _build_scanner(self) -> Any:
        return TerminalMatcher(list(self.terminals), self.ignore_types)

    def next_token(self, lex_state: Any, parser_state: Any = None) -> Token:
        """Return the next token that is neither white space nor a comment."""
        text, text_end = lex_state.text.text, lex_state.text.end
        token_start = self._match_trivia(text, lex_state.line_ctr.char_pos, text_end).end()
        if token_start >= text_end:
            raise EOFError(self)
        scanner: Any = self.scanner
        matched_terminal = scanner.match(text, token_start, text_end)
        if matched_terminal is None:
            raise self._unexpected_characters(lex_state, token_start, parser_state)
        terminal_name, token_text = matched_terminal
        token = Token(terminal_name, token_text, token_start, end_pos=token_start + len(token_text))
        lex_state.line_ctr.char_pos = token_start + len(token_text)
        lex_state.last_token = token
        return token

    def _unexpected_characters(self, lex_state: Any, offset: int, parser_state: Any) -> UnexpectedCharacters:
        scanner: Any = self.scanner
        return UnexpectedCharacters(  # type: ignore[no-untyped-call]
            lex_state.text.text,
            offset,
            1,
            1,
            allowed=scanner.allowed_types,
            token_history=lex_state.last_token and [lex_state.last_token],
            state=parser_state,
            terminals_by_name=self.terminals_by_name,
        )


class QuickContextualLexer(ContextualLexer):
    """Lark's contextual lexer, with a `QuickLexer` for each parser state."""

    BasicLexer = QuickLexer


def _terminal_rank(terminal: TerminalDef) -> tuple[int, int, int, str]:
    max_width = terminal.pattern.max_width
    return (-terminal.priority, -max_width, -len(terminal.pattern.value), terminal.name)


def _can_match_word(pattern: str, word: str) -> bool:
    """Return whether a terminal can match where `word` occurs. An empty word represents text that is not a word."""
    keywords = pattern_keywords(pattern)
    return word in keywords if keywords else True


@cache
def pattern_keywords(pattern: str) -> frozenset[str]:
    """Return the words that a terminal consists of, or an empty set if it is not a keyword."""
    keyword_match = _KEYWORD_PATTERN.match(pattern)
    return frozenset(keyword_match.group(1).split("|")) if keyword_match is not None else frozenset()


@cache
def _compile_matcher(pattern: str) -> Any:
    return re.compile(pattern).match
