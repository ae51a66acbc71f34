"""The trees and errors of lark for our grammars, and comparisons with ours."""

from contextlib import suppress
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from omnigraph.lang import saved_parsers


@cache
def stock(language: str) -> Lark:
    """The parser of a grammar with nothing of ours in between."""
    return Lark(
        saved_parsers._read_grammar(language),
        parser="lalr",
        lexer="contextual",
        start="declaration",
        propagate_positions=True,
        maybe_placeholders=True,
    )


def token(one: Token) -> tuple[Any, ...]:
    return one.type, str(one), one.start_pos, one.end_pos


def shape(node: Any) -> Any:
    """A tree as plain values, with the places of all its nodes; lines are nobody's need."""
    if not isinstance(node, Tree):
        return token(node) if isinstance(node, Token) else node
    place = [getattr(node.meta, name, None) for name in ("start_pos", "end_pos")]
    return str(node.data), place, [shape(child) for child in node.children]


def outcome(parser: Lark, text: str) -> Any:
    """The tree of a text, or the error: its class, its place and what could stand there."""
    try:
        return shape(parser.parse(text))
    except UnexpectedInput as error:
        found = getattr(error, "token", None)
        reached: Any = getattr(error, "interactive_parser", None)
        accepted = reached.accepts() if reached is not None else error.allowed  # type: ignore[attr-defined]
        return type(error).__name__, (error.pos_in_stream, found and token(found), sorted(accepted))


def stream(parser: Lark, text: str) -> list[tuple[Any, ...]]:
    """The tokens of a text, as far as it can be parsed."""
    seen: list[tuple[Any, ...]] = []
    with suppress(UnexpectedInput):
        seen.extend(token(one) for one in parser.parse_interactive(text).iter_parse())
    return seen
