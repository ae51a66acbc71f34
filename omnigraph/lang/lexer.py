"""A contextual lexer with almost no start-up cost.

Lark compiles one large pattern for every set of terminals that a parser state accepts: more than a
hundred for our grammars, which is most of the start-up time. Here each terminal is compiled once,
when it is first tried, and a keyword is tried only where its word occurs. Order and meaning must
stay those of lark: the matching terminal of the highest rank wins.
"""

import re
from functools import cache
from typing import Any

from lark.exceptions import UnexpectedCharacters
from lark.lexer import BasicLexer, ContextualLexer, TerminalDef, Token

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# `and(?!..)`, `(?:asc|desc)(?!..)`, `count(?=..)`: keywords, each with a lookahead.
_KEYWORDS = re.compile(r"(?:\(\?:)?([A-Za-z0-9_|]+)\)?\(\?[!=]")


class OneByOne:
    """The terminals of a parser state, tried by rank at an offset of a text."""

    def __init__(self, terminals: list[TerminalDef], ignored: frozenset[str]) -> None:
        self.allowed_types = {one.name for one in terminals} - ignored or {"<END-OF-FILE>"}
        ranked = sorted((one for one in terminals if one.name not in ignored), key=_rank)
        self._patterns = [(one.name, one.pattern.to_regexp()) for one in ranked]
        self._by_word: dict[str, list[tuple[str, str]]] = {}

    def match(self, text: str, pos: int, end: int) -> tuple[str, str] | None:
        """Return the name of the first terminal that matches, and the text it matches."""
        for name, pattern in self._candidates(text, pos, end):
            found = _compiled(pattern)(text, pos, end)
            if found is not None:
                return name, found.group()
        return None

    def _candidates(self, text: str, pos: int, end: int) -> list[tuple[str, str]]:
        found = _WORD.match(text, pos, end)
        word = found.group() if found is not None else ""
        known = self._by_word.get(word)
        if known is None:
            known = [one for one in self._patterns if _may_be(one[1], word)]
            self._by_word[word] = known
        return known


class QuickLexer(BasicLexer):
    """The lexer of one parser state. Tokens carry offsets; line numbers are not needed here."""

    def __init__(self, conf: Any, comparator: Any = None) -> None:
        self.terminals = conf.terminals
        self.ignore_types = frozenset(conf.ignore)
        self.terminals_by_name = conf.terminals_by_name
        self._scanner = None
        ignored = "|".join(self.terminals_by_name[n].pattern.to_regexp() for n in conf.ignore)
        self._trivia = _compiled(f"(?:{ignored})*+")

    def _build_scanner(self) -> Any:
        return OneByOne(list(self.terminals), self.ignore_types)

    def next_token(self, lex_state: Any, parser_state: Any = None) -> Token:
        """Return the next token that is neither white space nor a comment."""
        text, end = lex_state.text.text, lex_state.text.end
        pos = self._trivia(text, lex_state.line_ctr.char_pos, end).end()
        if pos >= end:
            raise EOFError(self)
        scanner: Any = self.scanner
        found = scanner.match(text, pos, end)
        if found is None:
            raise self._unexpected(lex_state, pos, parser_state)
        name, value = found
        token = Token(name, value, pos, end_pos=pos + len(value))
        lex_state.line_ctr.char_pos = pos + len(value)
        lex_state.last_token = token
        return token

    def _unexpected(self, lex_state: Any, pos: int, parser_state: Any) -> UnexpectedCharacters:
        scanner: Any = self.scanner
        return UnexpectedCharacters(  # type: ignore[no-untyped-call]
            lex_state.text.text,
            pos,
            1,
            1,
            allowed=scanner.allowed_types,
            token_history=lex_state.last_token and [lex_state.last_token],
            state=parser_state,
            terminals_by_name=self.terminals_by_name,
        )


class QuickContextualLexer(ContextualLexer):
    """Lark's contextual lexer, built from `QuickLexer`s."""

    BasicLexer = QuickLexer


def _rank(one: TerminalDef) -> tuple[int, int, int, str]:
    width = one.pattern.max_width
    return (-one.priority, -width, -len(one.pattern.value), one.name)


def _may_be(pattern: str, word: str) -> bool:
    """Whether a terminal can match where `word` occurs; an empty word stands for any other text."""
    words = _words(pattern)
    return word in words if words else True


@cache
def _words(pattern: str) -> frozenset[str]:
    found = _KEYWORDS.match(pattern)
    return frozenset(found.group(1).split("|")) if found is not None else frozenset()


@cache
def _compiled(pattern: str) -> Any:
    return re.compile(pattern).match
