"""Parsers from saved tables.

Owns `grammar.json` beside each `grammar.lark`: the LALR tables, made once by `make tables`, so
that start-up reads instead of computing. Tables that do not belong to the grammar are not used.
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
    """The parser of one declaration of a language, from its tables when they are fresh."""
    grammar = _grammar(language)
    saved = _saved(language)
    if saved.get("stamp") != _stamp(grammar):
        return Lark(grammar, **_OPTIONS, _plugins=_PLUGINS)
    return _restore(saved)


def fresh(language: str) -> bool:
    """Whether the saved tables are those of the grammar as it is now, byte by byte."""
    tables = _HERE / language / "grammar.json"
    return tables.exists() and tables.read_text("utf-8") == _save(language)


def write(language: str) -> Path:
    """Compute the tables of a language and save them; gives the path."""
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
    """The same table, its states numbered as they are reached: lark takes them from a set."""
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
    # The way lark's own stand-alone parsers come to life; a test holds it to the grammar.
    load: Any = Lark._load_from_dict
    restored: Lark = load(saved["data"], saved["memo"], _plugins=_PLUGINS)
    return restored


# JSON knows only text as member names; a number is written with a leading '#'.
def _tag(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"#{k}" if isinstance(k, int) else k: _tag(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_tag(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def _untag(members: dict[str, Any]) -> dict[Any, Any]:
    # One look tells: either all members of an object are numbers, or none is.
    if next(iter(members), "").startswith("#"):
        return {int(name[1:]): value for name, value in members.items()}
    return members


if __name__ == "__main__":
    for each in LANGUAGES:
        print(write(each).relative_to(_HERE))
