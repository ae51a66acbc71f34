"""Parsers restored from saved tables.

Owns `grammar.json` next to each `grammar.lark`: the LALR tables, written by `make tables`, so that
start-up loads them instead of computing them. Tables whose stamp does not match the grammar, the
lark version and the options must never be used.
"""

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark
from lark import Lark

from .lexer import QuickContextualLexer

_HERE = Path(__file__).parent
LANGUAGES = ("schema", "query")
_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "propagate_positions": True,
    "maybe_placeholders": True,
    "start": "declaration",
}
_PLUGINS = {"ContextualLexer": QuickContextualLexer}


@cache
def parser(language: str) -> Lark:
    """Return the parser of one declaration of a language, from saved tables if they are current."""
    grammar = _grammar(language)
    saved = _saved(language)
    if saved.get("stamp") != _stamp(grammar):
        return Lark(grammar, **_OPTIONS, _plugins=_PLUGINS)
    return _restore(saved)


def fresh(language: str) -> bool:
    """Whether the saved tables equal those computed from the grammar, byte for byte."""
    tables = _HERE / language / "grammar.json"
    return tables.exists() and tables.read_text("utf-8") == _save(language)


def write(language: str) -> Path:
    """Compute the tables of a language and save them; return their path."""
    tables = _HERE / language / "grammar.json"
    tables.write_text(_save(language), "utf-8")
    return tables


def _saved(language: str) -> dict[str, Any]:
    tables = _HERE / language / "grammar.json"
    found: dict[str, Any] = {}
    if tables.exists():
        found = json.loads(tables.read_bytes(), object_hook=_untag)
    return found


def _grammar(language: str) -> str:
    return (_HERE / language / "grammar.lark").read_text("utf-8")


def _stamp(grammar: str) -> str:
    return sha256(f"{lark.__version__}\n{_OPTIONS}\n{grammar}".encode()).hexdigest()


def _save(language: str) -> str:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    grammar = _grammar(language)
    made: Any = Lark(grammar, **_OPTIONS)
    made.parser.parser._parse_table = _numbered(made.parser.parser._parse_table)
    data, memo = made.memo_serialize([TerminalDef, Rule])
    saved = {"stamp": _stamp(grammar), "data": _tag(data), "memo": _tag(memo)}
    return json.dumps(saved, separators=(",", ":"), sort_keys=True) + "\n"


def _numbered(table: Any) -> Any:
    """Number the states in the order they are reached: lark takes them from a set, in any order."""
    numbers: dict[int, int] = {}
    waiting = sorted(table.start_states.values())
    while waiting:
        state = waiting.pop()
        if state not in numbers:
            numbers[state] = len(numbers)
            actions = [table.states[state][name] for name in sorted(table.states[state])]
            waiting += [target for _, target in reversed(actions) if isinstance(target, int)]
    states = {new: _renumbered(table.states[old], numbers) for old, new in numbers.items()}
    starts = {name: numbers[old] for name, old in table.start_states.items()}
    ends = {name: numbers[old] for name, old in table.end_states.items()}
    return type(table)(states, starts, ends)


def _renumbered(actions: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    found = ((name, actions[name]) for name in sorted(actions))
    return {name: (action, numbers.get(target, target)) for name, (action, target) in found}


def _restore(saved: dict[str, Any]) -> Lark:
    # Lark's stand-alone parsers are loaded the same way; a test compares the result to the grammar.
    load: Any = Lark._load_from_dict
    restored: Lark = load(saved["data"], saved["memo"], _plugins=_PLUGINS)
    return restored


# JSON member names are strings; an integer key is written with a leading '#'.
def _tag(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"#{k}" if isinstance(k, int) else k: _tag(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_tag(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def _untag(members: dict[str, Any]) -> dict[Any, Any]:
    # The first member decides: either all member names of an object are integers, or none.
    if next(iter(members), "").startswith("#"):
        return {int(name[1:]): value for name, value in members.items()}
    return members


if __name__ == "__main__":
    for each in LANGUAGES:
        print(write(each).relative_to(_HERE))
