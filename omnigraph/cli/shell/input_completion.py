r"""Completion for shell input: backslash commands, commands with their arguments, and queries.

In a query, types follow `:`, properties follow `$p.`, and keywords may appear anywhere else. The names are read from
the graph once per commit. Errors never reach the terminal.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from omnigraph.cli.completion_names import GraphNames, read_names, save_names
from omnigraph.values import clock_and_ids

from .backslash import COMMANDS, FORMATS, open_current
from .session import Session
from .statements import is_query_text

KEYWORDS = (
    "match", "return", "distinct", "order", "limit", "offset", "having", "union", "all", "not", "optional",
    "where", "and", "or", "in", "is", "null", "asc", "desc", "as", "insert", "upsert", "patch", "update",
    "delete", "set", "contains", "starts_with", "true", "false", "count", "sum", "avg", "min", "max",
)  # fmt: skip
_STATEMENT_WORDS = ("match", "insert", "upsert", "patch", "update", "delete", "explain")
_PROPERTY = re.compile(r"\$(\w+)\.\w*")
_NAMES_MAX_AGE = 5.0  # seconds


class InputCompleter:
    """A completer for readline, which requests one match at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._matches: list[str] = []
        self._names = GraphNames()
        self._names_expire_at = 0.0
        self._names_of: object = None

    def match(self, before: str, word: str, index: int) -> str | None:
        """Return the match at an index for a word that follows the text `before`, or None if there is none."""
        if index == 0:
            self._matches = self.complete(before, word)
        return self._matches[index] if index < len(self._matches) else None

    def complete(self, before: str, word: str) -> list[str]:
        """Return all matches for a word."""
        statement = before.lstrip()
        if not statement:
            starts = (*(f"\\{name}" for name in COMMANDS), *_STATEMENT_WORDS, *self._command_names())
            return _filter_words(starts, word)
        if statement.startswith("\\"):
            return self._complete_backslash(statement.split()[0][1:], word)
        if statement.startswith("explain ") or is_query_text(statement):
            return self._complete_query(statement, word)
        return self._complete_command(statement, word)

    def names(self) -> GraphNames:
        """Return the names in the graph, at most a few seconds old."""
        if clock_and_ids.monotonic() >= self._names_expire_at or self._names_of != self._session.current:
            self._names = read_names(open_current(self._session))
            self._names_expire_at = clock_and_ids.monotonic() + _NAMES_MAX_AGE
            self._names_of = self._session.current
            save_names(self._session.current.uri, self._names)
        return self._names

    def _command_names(self) -> Iterable[str]:
        import click

        return self._session.program.list_commands(click.Context(self._session.program))

    def _complete_backslash(self, name: str, word: str) -> list[str]:
        if name in ("i", "o"):
            return _complete_path(word)
        if name == "h":
            return _filter_words((*COMMANDS, *self._command_names()), word)
        if name == "format":
            return _filter_words(FORMATS, word)
        if name == "timing":
            return _filter_words(("on", "off"), word)
        kinds = {"branch": "branches", "at": "revisions", "d": "types"}
        return _filter_words(getattr(self.names(), kinds[name]), word) if name in kinds else []

    def _complete_query(self, statement: str, word: str) -> list[str]:
        names = self.names()
        properties = names.properties or {}
        variable = _PROPERTY.fullmatch(word)
        if variable is not None:
            type_name = _find_type(statement, variable[1])
            candidates = properties.get(type_name, ()) if type_name else _merge_names(properties.values())
            return _filter_words((f"${variable[1]}.{name}" for name in candidates), word)
        if word.startswith("$"):
            return _filter_words(dict.fromkeys(re.findall(r"\$\w+", statement)), word)
        if statement.rstrip().endswith(":") or re.search(r"\b(insert|upsert|patch|update|delete)\s+$", statement):
            return _filter_words(names.types, word)
        edges = (name[:1].lower() + name[1:] for name in names.types)
        return _filter_words((*KEYWORDS, *names.types, *edges, *_open_type_properties(statement, properties)), word)

    def _complete_command(self, statement: str, word: str) -> list[str]:
        from omnigraph.cli.completion_values import complete_words

        words = shlex.split(statement)
        program = self._session.program
        items = complete_words(program, words, word, lambda _: self.names(), offers_graphs=False)
        if any(item.type in ("file", "dir") for item in items):
            return _complete_path(word)
        return [str(item.value) for item in items]


def _find_type(statement: str, variable: str) -> str | None:
    """Return the type of a variable such as `$p` in `$p: Person`."""
    binding = re.search(rf"\${re.escape(variable)}\s*:\s*(\w+)", statement)
    return binding[1] if binding is not None else None


def _open_type_properties(statement: str, properties: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    """Return the properties of the type whose braces are open, as in `insert Person { `."""
    opened = re.search(r"(\w+)\s*(?:set\s*)?\{[^{}]*$", statement)
    return properties.get(opened[1], ()) if opened is not None else ()


def _merge_names(groups: Iterable[Iterable[str]]) -> list[str]:
    return sorted({name for group in groups for name in group})


def _filter_words(candidates: Iterable[str], word: str) -> list[str]:
    return list(dict.fromkeys(candidate for candidate in candidates if candidate.startswith(word)))


def _complete_path(word: str) -> list[str]:
    parent, separator, prefix = word.rpartition("/")
    directory = Path(parent + separator).expanduser() if separator else Path()
    entries = sorted(entry for entry in directory.iterdir() if entry.name.startswith(prefix))
    return [f"{parent}{separator}{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries]
