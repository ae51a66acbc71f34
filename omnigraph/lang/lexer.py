"""A contextual lexer that starts in no time.

Lark compiles one large pattern for every set of terminals that some parser state accepts: more than
a hundred for our grammars, most of the start-up. Here each terminal is compiled once, when it is
first tried. Order and meaning are lark's: the first terminal that matches wins.
"""

import re
from functools import cache
from typing import Any

from lark.lexer import BasicLexer, ContextualLexer, TerminalDef


class _Everything:
    """Contains every name: lark then counts the lines of every token, which is cheap."""

    def __contains__(self, _: object) -> bool:
        return True


class OneByOne:
    """Tries terminals in order of rank at a place of a text."""

    def __init__(self, terminals: list[TerminalDef]) -> None:
        self.allowed_types = {one.name for one in terminals}
        ranked = sorted(terminals, key=_rank)
        self._tries = [(one.name, one.pattern.to_regexp()) for one in ranked]

    def match(self, text: Any, pos: int) -> tuple[str, str] | None:
        """The piece of text that the first matching terminal takes, and its name."""
        for name, pattern in self._tries:
            found = _compiled(pattern)(text.text, pos, text.end)
            if found is not None:
                return found.group(0), name
        return None


class QuickLexer(BasicLexer):
    """The terminals of one parser state."""

    def __init__(self, conf: Any, comparator: Any = None) -> None:
        self.terminals = conf.terminals
        self.ignore_types = frozenset(conf.ignore)
        self.newline_types = _Everything()  # type: ignore[assignment]
        self.terminals_by_name = conf.terminals_by_name
        self.callback = {}
        self._scanner = None

    def _build_scanner(self) -> Any:
        return OneByOne(list(self.terminals))


class QuickContextualLexer(ContextualLexer):
    """Lark's contextual lexer over quick ones."""

    BasicLexer = QuickLexer


def _rank(one: TerminalDef) -> tuple[int, int, int, str]:
    width = one.pattern.max_width
    return (-one.priority, -width, -len(one.pattern.value), one.name)


@cache
def _compiled(pattern: str) -> Any:
    return re.compile(pattern).match
