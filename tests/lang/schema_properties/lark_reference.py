"""The trees and errors of lark for our grammars, and comparisons with ours."""

from contextlib import suppress
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from omnigraph.lang import saved_parsers
from omnigraph.lang.lalr_parser import Parser, UnexpectedText
from omnigraph.lang.parse_tree import ParseTree
from omnigraph.lang.parse_tree import Token as OwnToken


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


def token_members(token: Any) -> tuple[Any, ...]:
    return token.type, str(token), token.start_pos, token.end_pos


def shape(node: Any) -> Any:
    """A tree as plain values, with the positions of all its nodes. Nothing uses line numbers, so they are left out."""
    if isinstance(node, Token | OwnToken):
        return token_members(node)
    if not isinstance(node, Tree | ParseTree):
        return node
    positions = node.meta if isinstance(node, Tree) else node
    extent = [getattr(positions, name, None) for name in ("start_pos", "end_pos")]
    return str(node.data), extent, [shape(child) for child in node.children]


def outcome(parser: Any, text: str) -> Any:
    """The tree of a text, or the error: its position and the terminals that could follow."""
    try:
        return shape(parser.parse(text))
    except UnexpectedText as error:
        return "error", (error.offset, sorted(error.allowed_terminals))
    except UnexpectedInput as error:
        return "error", (_error_offset(error, text), _accepted_terminals(error))


def _error_offset(error: Any, text: str) -> int:
    token = getattr(error, "token", None)
    return len(text) if token is not None and token.type == "$END" else error.pos_in_stream


def _accepted_terminals(error: Any) -> list[str]:
    # lark attaches the parser's state to every error that occurs after the first token.
    parser_state = getattr(error, "interactive_parser", None)
    return sorted(parser_state.accepts() if parser_state is not None else error.allowed)


def stream(parser: Any, text: str) -> list[tuple[Any, ...]]:
    """The tokens of a text, as far as it can be parsed."""
    tokens: list[Any] = []
    with suppress(UnexpectedInput, UnexpectedText):
        if isinstance(parser, Parser):
            parser._read_tokens(text, tokens)
        else:
            tokens.extend(parser.parse_interactive(text).iter_parse())
    return [token_members(token) for token in tokens]
