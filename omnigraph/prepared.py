"""Query input on its way to the engine: read, wrapped, compiled once, called.

Owns the cache of compiled queries, by text and schema, and the forms of query input: text, a path,
or a bare body. Values never become text: they are always parameters.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from omnigraph.diagnostics import Diagnostic, Source, Span
from omnigraph.errors import InputError, LanguageError, TypeCheckError, UsageError
from omnigraph.errors.choose import language_error
from omnigraph.lang.query.compile import CompiledQuery, compile_queries, diagnose_each
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_text

Query = str | PathLike[str] | Source
ANONYMOUS = "anonymous"
_KEPT = 512
_BARE = re.compile(r"(?:\s++|//[^\n]*+|/\*.*?\*/)*+(?:match|insert|update|delete)\b", re.DOTALL)
_UNDECLARED = re.compile(r"`\$(\w+)` is not (?:bound|a parameter)")
_PATH_LIKE = re.compile(r"[^\s{}()\"$]+\.[A-Za-z]+|[^\s{}()\"$]*/[^\s{}()\"$]+")
_USED = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|\$([a-z_][A-Za-z0-9_]*)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A text to compile; its first `prefix_length` characters are not part of the caller's text."""

    text: str
    name: str = "<query>"
    shift: int = 0


def read_query(source: Query, params: Mapping[str, Any]) -> Asked:
    """Return the text to compile: passed, read from a file, or a bare body wrapped as a query.

    The parameters of a bare body are declared by the types of their values.

    >>> read_query("match { $p: Person  $p.age > $min } return { $p.name }", {"min": 30}).text
    'query anonymous($min: I64) {match { $p: Person  $p.age > $min } return { $p.name }}'
    """
    if isinstance(source, Source):
        asked = Asked(source.text, source.name)
    elif isinstance(source, str) and not _is_path(source):
        if _PATH_LIKE.fullmatch(source):
            raise InputError(
                f"'{source}' is not a query",
                reason="no query",
                hint="a query file has the suffix .gq, or is passed as a pathlib.Path",
            )
        asked = Asked(source)
    else:
        asked = _read(_path_of(source))
    if _BARE.match(asked.text) is None:
        return asked
    used = {found[1] for found in _USED.finditer(asked.text) if found[1]}
    given = (f"${name}: {type_of(value)}" for name, value in params.items() if name in used)
    head = f"query {ANONYMOUS}({', '.join(given)}) {{"
    # The body may end in a comment, which must not swallow the brace.
    end = "\n}" if "//" in asked.text else "}"
    return Asked(f"{head}{asked.text}{end}", asked.name, len(head))


def _is_path(text: str) -> bool:
    return text.endswith(".gq") and "\n" not in text and "{" not in text


def _path_of(source: object) -> Path:
    try:
        return Path(source)  # type: ignore[arg-type]
    except TypeError as error:
        kind = type(source).__name__
        raise UsageError(reason=f"a query must be text or a path, not {kind}") from error


def _read(path: Path) -> Asked:
    from omnigraph.lang.parsing import decode

    try:
        found = decode(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from error
    return Asked(found.text, found.name)


def type_of(value: Any) -> str:
    """Return the type by which a value is declared when nothing else determines it.

    >>> type_of(1), type_of([1.5]), type_of(None), type_of(date(2024, 1, 1))
    ('I64', '[F64]', 'String?', 'Date')
    """
    if isinstance(value, Enum):
        return type_of(value.value)
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    if value is None:
        return "String?"
    if isinstance(value, list | tuple | set | frozenset):
        found = {type_of(one) for one in value if one is not None} or {"String"}
        return f"[{'F64' if found == {'I64', 'F64'} else min(found)}]"
    if hasattr(value, "__len__"):  # a numpy or Arrow array
        return f"Vector({len(value)})"
    return type_of(value.item()) if hasattr(value, "item") else "String"


_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "Bool"),
    (int, "I64"),
    (float, "F64"),
    (str, "String"),
    (datetime, "DateTime"),
    (date, "Date"),
    (bytes, "Blob"),
)


class Compiled:
    """A cache of compiled query texts, least recently used dropped first; shared by all handles."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._held: OrderedDict[tuple[str, str], tuple[CompiledQuery, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        asked: Asked,
        schema_hash: str,
        catalog: Callable[[], Catalog],
        name: str | None = None,
    ) -> tuple[CompiledQuery, ...]:
        """Return all queries of a text, compiled only if text or schema are new.

        When one query is selected by name, mistakes in the others do not matter.
        """
        key = (schema_hash, asked.text)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                return found
        try:
            with _in_their_text(asked):
                made = compile_queries(asked.text, catalog(), asked.name)
        except LanguageError:
            if name is None or asked.shift:  # a bare body is the only query
                raise
            return _only(asked, catalog(), name)
        with self._lock:
            self._held[key] = made
            while len(self._held) > self._kept:
                self._held.popitem(last=False)
        return made


def _only(asked: Asked, catalog: Catalog, name: str) -> tuple[CompiledQuery, ...]:
    """Compile only the named query of a text that has errors elsewhere."""
    source = Source(asked.name, asked.text)
    each, unreadable = diagnose_each(source, catalog)
    named = [one for one in each if one.query.name.text == name]
    errors = [
        replace(found, message=f"in query `{name}`: {found.message}")
        for one in named
        for found in one.errors
    ]
    if not named and unreadable:  # the query may be in the unparsable part
        errors = list(unreadable)
    if errors:
        raise language_error(errors, source)
    return tuple(one.compiled for one in named or each if one.compiled is not None)


COMPILED = Compiled()


def choose(queries: tuple[CompiledQuery, ...], name: str | None) -> CompiledQuery:
    """Return the requested query; a name is needed only if there are several."""
    names = [one.name for one in queries]
    if name is None:
        if len(queries) == 1:
            return queries[0]
        told = f"one of {', '.join(names)}" if names else "there is no query in this text"
        raise UsageError(reason=f"which query? {told}", hint="pass the name of the query")
    require_text(name, "query")
    found = next((one for one in queries if one.name == name), None)
    if found is None:
        message = f"there is no query {quote_name(name)} in this text"
        raise InputError(message, hint=did_you_mean(name, names))
    return found


def demand(query: CompiledQuery, kind: str) -> CompiledQuery:
    """Return the query if it reads (or writes) as the call requires; refuse it otherwise."""
    if query.kind == kind:
        return query
    if kind == "read":
        message, hint = f"'{query.name}' changes the graph", "use mutate to write"
    else:
        message, hint = f"'{query.name}' only reads", "use query to read"
    raise TypeCheckError(message, hint=hint)


@contextmanager
def _in_their_text(asked: Asked) -> Iterator[None]:
    """Move diagnostics of a wrapped body into the body as its author wrote it."""
    try:
        yield
    except LanguageError as error:
        if not asked.shift:
            raise
        text = Source(asked.name, asked.text[asked.shift : -1].removesuffix("\n"))
        moved = [_moved(one, text, asked.shift) for one in error.diagnostics]
        raise type(error)(diagnostics=moved, source=text) from None


def _moved(one: Diagnostic, text: Source, shift: int) -> Diagnostic:
    last = len(text.text)
    start, end = (min(max(0, at - shift), last) for at in (one.start, one.end))
    line, column = text.locate(start)
    end = max(Span(start, end).end, start + 1)
    hint = _value_hint(one)
    return replace(one, start=start, end=end, line=line, column=column, hint=hint)


def _value_hint(one: Diagnostic) -> str | None:
    """Return the hint; in a bare body an undeclared variable may be a parameter without a value."""
    found = _UNDECLARED.search(one.message)
    if found is None:
        return one.hint
    name = found[1]
    more = f"if it is a parameter, give it a value: `{name}=…` or --params '{{\"{name}\": …}}'"
    return more if one.hint is None else f"{one.hint}; {more}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that is checked once and called like a function.

    It is compiled again only when the schema of the graph changes.
    """

    name: str
    kind: str
    params: Mapping[str, str]
    description: str | None
    _call: Callable[..., Any]
    _explain: Callable[..., Any]

    def __call__(self, /, **params: Any) -> Any:
        """Run the query: a read returns a `Result`, a change a `Receipt`."""
        return self._call(params)

    def explain(self, /, *, analyze: bool = False, **params: Any) -> Any:
        """Return the plan; with `analyze`, run the query and add measurements."""
        return self._explain(params, analyze)

    def __repr__(self) -> str:
        given = ", ".join(f"${name}: {kind}" for name, kind in self.params.items())
        return f"<Prepared {self.kind}: {self.name}({given})>"
