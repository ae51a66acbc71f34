"""The parser's raw output: tokens, and trees named after grammar rules.

Positions are offsets in the parsed text. This module must not depend on any grammar rule.
"""

from typing import Any


class Token(str):
    """The text of a terminal, with the terminal's name and the position of the text."""

    __slots__ = ("end_pos", "start_pos", "type")
    type: str
    start_pos: int
    end_pos: int

    def __new__(cls, terminal_name: str, text: str, start_pos: int) -> "Token":
        """Create a token from its text and the offset at which the text starts."""
        token = super().__new__(cls, text)
        token.type, token.start_pos, token.end_pos = terminal_name, start_pos, start_pos + len(text)
        return token


class ParseTree:
    """A match for a grammar rule, with the tokens and trees that it consists of.

    `children` contains None for each missing optional part. Both positions are None if the rule matched no text.
    """

    __slots__ = ("children", "data", "end_pos", "start_pos")

    def __init__(self, rule_name: str, children: list[Any], start_pos: int | None, end_pos: int | None) -> None:
        self.data, self.children = rule_name, children
        self.start_pos, self.end_pos = start_pos, end_pos
