"""Restore parsers from saved LALR tables.

This module manages the `grammar.json` file next to each `grammar.lark`. `make tables` computes the LALR tables and
writes them to this file, so that they do not have to be computed at start-up. Tables are never used unless their stamp
matches the current grammar, lark version and options.
"""

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.parsers.lalr_analysis import IntParseTable, Reduce, Shift
from lark.parsers.lalr_parser import LALR_Parser, _Parser

from .lexer import QuickContextualLexer

_LANG_DIRECTORY = Path(__file__).parent
LANGUAGES = ("schema", "query")
_LARK_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "propagate_positions": True,
    "maybe_placeholders": True,
    "start": "declaration",
}


class _SavedTableParser(LALR_Parser):
    """Lark's parser, with its states restored from their compact form."""

    @classmethod
    def deserialize(cls, data: Any, memo: Any, callbacks: Any = None, debug: bool = False) -> Any:
        """Restore a parser from saved data. Lark calls this method."""
        new_table: Any = IntParseTable
        parse_table = new_table(_unpack_states(data, memo), data["start_states"], data["end_states"])
        restored: Any = cls.__new__(cls)
        restored._parse_table = parse_table
        restored.parser = _Parser(parse_table, callbacks, debug)
        return restored


_LARK_PLUGINS = {"ContextualLexer": QuickContextualLexer, "LALR_Parser": _SavedTableParser}


@cache
def load_parser(language: str) -> Lark:
    """Return the parser for a single declaration in a language. Use the saved tables if they are current."""
    grammar = _read_grammar(language)
    saved_tables = _load_saved_tables(language)
    if saved_tables.get("stamp") != _grammar_stamp(grammar):
        return Lark(grammar, **_LARK_OPTIONS, _plugins=_LARK_PLUGINS)
    return _restore_parser(saved_tables)


def tables_are_fresh(language: str) -> bool:
    """Return whether the saved tables are byte-for-byte identical to tables computed from the grammar."""
    tables_path = _LANG_DIRECTORY / language / "grammar.json"
    return tables_path.exists() and tables_path.read_text("utf-8") == _serialize_tables(language)


def write_tables(language: str) -> Path:
    """Compute and save a language's tables, and return the path of the saved file."""
    tables_path = _LANG_DIRECTORY / language / "grammar.json"
    tables_path.write_text(_serialize_tables(language), "utf-8")
    return tables_path


def _load_saved_tables(language: str) -> dict[str, Any]:
    tables_path = _LANG_DIRECTORY / language / "grammar.json"
    saved_tables: dict[str, Any] = {}
    if tables_path.exists():
        saved_tables = json.loads(tables_path.read_bytes(), object_hook=_decode_integer_keys)
    return saved_tables


def _read_grammar(language: str) -> str:
    return (_LANG_DIRECTORY / language / "grammar.lark").read_text("utf-8")


def _grammar_stamp(grammar: str) -> str:
    stamped_text = f"{lark.__version__}\n{_LARK_OPTIONS}\n{grammar}"
    return f"{zlib.crc32(stamped_text.encode()):08x}"


def _serialize_tables(language: str) -> str:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    grammar = _read_grammar(language)
    lark_parser: Any = Lark(grammar, **_LARK_OPTIONS)
    lark_parser.parser.parser._parse_table = _renumber_states(lark_parser.parser.parser._parse_table)
    parser_data, parser_memo = lark_parser.memo_serialize([TerminalDef, Rule])
    _pack_states(parser_data["parser"]["parser"])
    saved_tables = {
        "stamp": _grammar_stamp(grammar),
        "data": _encode_integer_keys(parser_data),
        "memo": _encode_integer_keys(parser_memo),
    }
    return json.dumps(saved_tables, separators=(",", ":"), sort_keys=True) + "\n"


def _renumber_states(parse_table: Any) -> Any:
    """Renumber the states in traversal order, because lark numbers them in the arbitrary order of a set."""
    new_numbers: dict[int, int] = {}
    pending_states = sorted(parse_table.start_states.values())
    while pending_states:
        old_state = pending_states.pop()
        if old_state not in new_numbers:
            new_numbers[old_state] = len(new_numbers)
            actions = [parse_table.states[old_state][symbol] for symbol in sorted(parse_table.states[old_state])]
            pending_states += [target for _, target in reversed(actions) if isinstance(target, int)]
    states = {
        new_number: _renumber_targets(parse_table.states[old_number], new_numbers)
        for old_number, new_number in new_numbers.items()
    }
    start_states = {symbol: new_numbers[old_number] for symbol, old_number in parse_table.start_states.items()}
    end_states = {symbol: new_numbers[old_number] for symbol, old_number in parse_table.end_states.items()}
    return type(parse_table)(states, start_states, end_states)


def _renumber_targets(actions: dict[str, Any], new_numbers: dict[int, int]) -> dict[str, Any]:
    sorted_actions = ((symbol, actions[symbol]) for symbol in sorted(actions))
    return {
        symbol: (action, new_numbers.get(next_state, next_state)) for symbol, (action, next_state) in sorted_actions
    }


def _pack_states(table_data: dict[str, Any]) -> None:
    """Replace the states with flat lists of token numbers and actions, which load ten times as fast.

    An action is the number of the next state, or -1 - n for a reduction by rule n.
    """
    packed_states = []
    for state in range(len(table_data["states"])):
        actions = table_data["states"][state].items()
        packed_states.append(
            [number for token, (kind, arg) in actions for number in (token, -1 - arg["@"] if kind else arg)]
        )
    table_data["states"] = packed_states


def _unpack_states(table_data: dict[str, Any], memo: dict[int, Any]) -> dict[int, dict[str, Any]]:
    """Return the states in lark's own form, which maps each token to a shift to a state or a reduction by a rule."""
    tokens, packed_states = table_data["tokens"], table_data["states"]
    actions: dict[int, Any] = {state: (Shift, state) for state in range(len(packed_states))}
    actions |= {-1 - number: (Reduce, rule) for number, rule in memo.items()}
    return {
        state: {tokens[token]: actions[code] for token, code in zip(packed[::2], packed[1::2], strict=True)}
        for state, packed in enumerate(packed_states)
    }


def _restore_parser(saved_tables: dict[str, Any]) -> Lark:
    # Lark restores its stand-alone parsers in the same way. A test compares the result with the grammar.
    load_from_dict: Any = Lark._load_from_dict
    restored_parser: Lark = load_from_dict(saved_tables["data"], saved_tables["memo"], _plugins=_LARK_PLUGINS)
    return restored_parser


# JSON member names are strings, so an integer key is written with a leading '#'.
def _encode_integer_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"#{key}" if isinstance(key, int) else key: _encode_integer_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_encode_integer_keys(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def _decode_integer_keys(members: dict[str, Any]) -> dict[Any, Any]:
    # Checking the first member is enough, because an object's member names are either all integers or all strings.
    if next(iter(members), "").startswith("#"):
        return {int(member_name[1:]): member_value for member_name, member_value in members.items()}
    return members


if __name__ == "__main__":
    for each in LANGUAGES:
        print(write_tables(each).relative_to(_LANG_DIRECTORY))
