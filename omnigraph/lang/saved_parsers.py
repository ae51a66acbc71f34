"""Load parsers from saved LALR tables.

This module manages the `grammar.json` file next to each `grammar.lark`. `make tables` computes the tables and writes
them to this file, so that they do not have to be computed at start-up. Tables are never used unless their stamp matches
the current grammar and file format.
"""

import json
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from .lalr_parser import GrammarTables, KeptChild, Parser, Rule
from .lexer import Terminal

_LANG_DIRECTORY = Path(__file__).parent
LANGUAGES = ("schema", "query")
_FORM = 1  # increase if the file format or the meaning of a member changes


@cache
def load_parser(language: str) -> Parser:
    """Return the parser for a single declaration in a language.

    If the saved tables are missing or outdated, compute them from the grammar.
    """
    grammar = _read_grammar(language)
    saved_tables = _load_saved_tables(language)
    if saved_tables.get("stamp") == _grammar_stamp(grammar):
        return Parser(_from_json(saved_tables))
    from .compile_grammar import compile_grammar

    return Parser(compile_grammar(grammar))


def tables_are_fresh(language: str) -> bool:
    """Return whether the saved tables are byte-for-byte identical to tables computed from the grammar."""
    tables_path = _tables_path(language)
    return tables_path.exists() and tables_path.read_text("utf-8") == _serialize_tables(language)


def write_tables(language: str) -> Path:
    """Compute and save a language's tables, and return the path of the saved file."""
    tables_path = _tables_path(language)
    tables_path.write_text(_serialize_tables(language), "utf-8")
    return tables_path


def _tables_path(language: str) -> Path:
    return _LANG_DIRECTORY / language / "grammar.json"


def _load_saved_tables(language: str) -> dict[str, Any]:
    tables_path = _tables_path(language)
    saved_tables: dict[str, Any] = json.loads(tables_path.read_bytes()) if tables_path.exists() else {}
    return saved_tables


def _read_grammar(language: str) -> str:
    return (_LANG_DIRECTORY / language / "grammar.lark").read_text("utf-8")


def _grammar_stamp(grammar: str) -> str:
    stamped_text = f"{_FORM}\n{grammar}"
    return f"{zlib.crc32(stamped_text.encode()):08x}"


def _serialize_tables(language: str) -> str:
    from .compile_grammar import compile_grammar

    grammar = _read_grammar(language)
    members = {"stamp": _grammar_stamp(grammar), **_to_json(compile_grammar(grammar))}
    return json.dumps(members, separators=(",", ":"), sort_keys=True) + "\n"


def _to_json(tables: GrammarTables) -> dict[str, Any]:
    return {
        "symbols": tables.symbols,
        "terminals": [[terminal.name, terminal.pattern, terminal.rank] for terminal in tables.terminals],
        "ignored_pattern": tables.ignored_pattern,
        "rules": [_rule_to_json(rule) for rule in tables.rules],
        "states": tables.states,
        "start_state": tables.start_state,
        "end_state": tables.end_state,
    }


def _rule_to_json(rule: Rule) -> list[Any]:
    kept_children = None if rule.kept_children is None else _kept_children_to_json(rule.kept_children)
    return [rule.origin, rule.symbol_count, rule.tree_name, rule.unwraps, kept_children, rule.missing_at_end]


def _kept_children_to_json(kept_children: tuple[KeptChild, ...]) -> list[int]:
    return [number for kept in kept_children for number in (kept.index, int(kept.is_inlined), kept.missing_before)]


def _from_json(members: dict[str, Any]) -> GrammarTables:
    return GrammarTables(
        symbols=members["symbols"],
        terminals=[Terminal(*terminal_members) for terminal_members in members["terminals"]],
        ignored_pattern=members["ignored_pattern"],
        rules=[_rule_from_json(*rule_members) for rule_members in members["rules"]],
        states=members["states"],
        start_state=members["start_state"],
        end_state=members["end_state"],
    )


def _rule_from_json(
    origin: str, symbol_count: int, tree_name: str, unwraps: bool, numbers: list[int] | None, missing_at_end: int
) -> Rule:
    kept_children = None if numbers is None else tuple(_kept_children_from_json(numbers))
    return Rule(origin, symbol_count, tree_name, unwraps, kept_children, missing_at_end)


def _kept_children_from_json(numbers: list[int]) -> Iterator[KeptChild]:
    for index, is_inlined, missing_before in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        yield KeptChild(index, bool(is_inlined), missing_before)


if __name__ == "__main__":
    for each in LANGUAGES:
        print(write_tables(each).relative_to(_LANG_DIRECTORY))
