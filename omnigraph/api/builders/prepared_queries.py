"""Prepare queries for the engine: read the input, wrap a bare body, and compile the text once.

This module caches compiled queries by text and schema, and defines the accepted forms of query
input: text, a `Path`, or a bare body. Values are never inserted into the text: they are always
parameters.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from omnigraph.api.query_labels import ANONYMOUS, quote_query
from omnigraph.errors import InputError, LanguageError, TypeCheckError, UsageError
from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
from omnigraph.errors.from_diagnostics import language_error
from omnigraph.lang.query.compile import (
    CompiledQuery,
    compile_named_query,
    compile_queries,
    diagnose_each_query,
)
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record
from omnigraph.values.name_rules import quote_name, require_text

QuerySource = str | PathLike[str] | SourceText
_CACHE_SIZE = 512
_BARE_BODY = re.compile(r"(?:\s++|//[^\n]*+|/\*.*?\*/)*+(?:match|insert|upsert|patch|update|delete)\b", re.DOTALL)
# Options of `Graph.query` and `Graph.mutate`. Query parameters with the same names must be passed in `params`.
_CALL_OPTIONS = ("name", "params", "branch", "at", "timeout", "assume_utc", "lazy")
_COMMIT_OPTIONS = ("if_commit", "message", "actor", "idempotency_key")
_UNDECLARED_MESSAGE = re.compile(r"`\$(\w+)` is not (?:bound|a parameter)")
_PATH_LIKE_TEXT = re.compile(r"[^\s{}()\"$]+\.[A-Za-z]+|[^\s{}()\"$]*/[^\s{}()\"$]+")
_VARIABLE_OR_IGNORED_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|\$([a-z_][A-Za-z0-9_]*)', re.DOTALL)


@record
class QueryText:
    """Query text to compile. Its first `prefix_length` characters are not part of the caller's text."""

    text: str
    source_name: str = "<query>"
    prefix_length: int = 0


def read_query(source: QuerySource, params: Mapping[str, Any]) -> QueryText:
    """Return the text to compile. Files are read, and a bare body is wrapped in a query.

    Each parameter in a bare body is declared with the type of its value.

    >>> read_query("match { $p: Person  $p.age > $min } return { $p.name }", {"min": 30}).text
    'query anonymous($min: I64) {match { $p: Person  $p.age > $min } return { $p.name }}'
    """
    if isinstance(source, SourceText):
        query_text = QueryText(source.text, source.name)
    elif isinstance(source, str):
        query_text = QueryText(reject_path_text(source))
    else:
        query_text = _read_query_file(_require_path(source))
    if _BARE_BODY.match(query_text.text) is None:
        return query_text
    used_names = {
        variable_match[1] for variable_match in _VARIABLE_OR_IGNORED_TEXT.finditer(query_text.text) if variable_match[1]
    }
    declarations = (
        f"${parameter_name}: {infer_type_name(value)}"
        for parameter_name, value in params.items()
        if parameter_name in used_names
    )
    query_header = f"query {ANONYMOUS}({', '.join(declarations)}) {{"
    # The body may end in a comment, which must not swallow the closing brace.
    query_end = "\n}" if "//" in query_text.text else "}"
    return QueryText(f"{query_header}{query_text.text}{query_end}", query_text.source_name, len(query_header))


def reject_path_text(text: str) -> str:
    """Return query text; raise `InputError` if the text is the name of a file.

    A string is never opened as a file. Otherwise, a server that accepts query text would let its clients read its
    files.
    """
    if _PATH_LIKE_TEXT.fullmatch(text):
        hint = "to use queries from a file, pass the file as a pathlib.Path"
        raise InputError(f"'{text}' is not a query", reason="no query", hint=hint)
    return text


def _require_path(source: object) -> Path:
    try:
        return Path(source)  # type: ignore[arg-type]
    except TypeError as error:
        type_name = type(source).__name__
        raise UsageError(reason=f"a query must be a string or a path, not {type_name}") from error


def _read_query_file(query_path: Path) -> QueryText:
    from omnigraph.lang.parsing import decode_source

    try:
        decoded_source = decode_source(query_path.read_bytes(), str(query_path))
    except OSError as error:
        raise InputError(f"cannot read {query_path}: {error.strerror}", reason="unreadable") from error
    return QueryText(decoded_source.text, decoded_source.name)


def infer_type_name(value: Any) -> str:
    """Return the type to declare for a value if nothing else determines it.

    >>> [infer_type_name(value) for value in (1, [1.5], None, date(2024, 1, 1))]
    ['I64', '[F64]', 'String?', 'Date']
    """
    if isinstance(value, Enum):
        return infer_type_name(value.value)
    for python_type, type_name in _PYTHON_TYPE_NAMES:
        if isinstance(value, python_type):
            return type_name
    if value is None:
        return "String?"
    if isinstance(value, list | tuple | set | frozenset):
        item_types = {infer_type_name(item) for item in value if item is not None} or {"String"}
        return f"[{'F64' if item_types == {'I64', 'F64'} else min(item_types)}]"
    if hasattr(value, "__len__"):  # a numpy or Arrow array
        return f"Vector({len(value)})"
    return infer_type_name(value.item()) if hasattr(value, "item") else "String"


_PYTHON_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "Bool"),
    (int, "I64"),
    (float, "F64"),
    (str, "String"),
    (datetime, "DateTime"),
    (date, "Date"),
    (bytes, "Blob"),
)


class CompiledQueryCache:
    """A cache of compiled queries, shared by all handles. The least recently used entry is dropped first."""

    def __init__(self, max_entries: int = _CACHE_SIZE) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[tuple[str, str, str | None], tuple[CompiledQuery, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def get_or_compile(
        self, query_text: QueryText, schema_hash: str, catalog: Callable[[], Catalog], query_name: str | None = None
    ) -> tuple[CompiledQuery, ...]:
        """Return all queries in the query text. Compile them only if they are not cached for this schema.

        If `query_name` selects a query, the result may contain only that query, and errors in other queries are
        ignored.
        """
        if query_name is not None:
            require_text(query_name, "query")
        cache_key = (schema_hash, query_text.text, query_name)
        with self._lock:
            cached_queries = self._entries.get(cache_key)
            if cached_queries is not None:
                self._entries.move_to_end(cache_key)
                return cached_queries
        compiled_queries = self._compile(query_text, catalog, query_name)
        with self._lock:
            self._entries[cache_key] = compiled_queries
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        return compiled_queries

    @staticmethod
    def _compile(
        query_text: QueryText, catalog: Callable[[], Catalog], query_name: str | None
    ) -> tuple[CompiledQuery, ...]:
        if isinstance(query_name, str) and not query_text.prefix_length:
            named_query = compile_named_query(query_text.text, catalog(), query_name, query_text.source_name)
            if named_query is not None:
                return (named_query,)
        try:
            with map_errors_to_body(query_text):
                return compile_queries(query_text.text, catalog(), query_text.source_name)
        except LanguageError:
            if query_name is None or query_text.prefix_length:  # a bare body is the only query
                raise
            return _compile_named_query(query_text, catalog(), query_name)


def _compile_named_query(query_text: QueryText, catalog: Catalog, query_name: str) -> tuple[CompiledQuery, ...]:
    """Compile the named query, ignoring errors in the other queries."""
    source = SourceText(query_text.source_name, query_text.text)
    diagnosed_queries, parse_errors = diagnose_each_query(source, catalog)
    named_queries = [
        diagnosed_query for diagnosed_query in diagnosed_queries if diagnosed_query.query.name.text == query_name
    ]
    errors = [
        replace(diagnostic, message=f"in query `{query_name}`: {diagnostic.message}")
        for diagnosed_query in named_queries
        for diagnostic in diagnosed_query.errors
    ]
    if not named_queries and parse_errors:  # the query may be in the part that cannot be parsed
        errors = list(parse_errors)
    if errors:
        raise language_error(errors, source)
    return tuple(
        diagnosed_query.compiled
        for diagnosed_query in named_queries or diagnosed_queries
        if diagnosed_query.compiled is not None
    )


COMPILED_QUERIES = CompiledQueryCache()


def select_query(queries: tuple[CompiledQuery, ...], query_name: str | None) -> CompiledQuery:
    """Return the requested query. A name is needed only if there are several queries."""
    query_names = [query.name for query in queries]
    if query_name is None:
        if len(queries) == 1:
            return queries[0]
        choice_text = f"expected one of {', '.join(query_names)}" if query_names else "the text contains no query"
        raise UsageError(reason=f"no query selected: {choice_text}", hint="pass the name of the query")
    require_text(query_name, "query")
    selected_query = next((query for query in queries if query.name == query_name), None)
    if selected_query is None:
        message = f"the text contains no query named {quote_name(query_name)}"
        choices = f"available queries: {', '.join(query_names)}" if query_names else None
        raise InputError(message, hint=did_you_mean(query_name, query_names, choices))
    return selected_query


def require_query_kind(query: CompiledQuery, required_kind: str) -> CompiledQuery:
    """Return the query if it has the required kind (read or mutation). Otherwise, raise an error."""
    if query.kind == required_kind:
        return query
    if required_kind == "read":
        message, hint = f"{quote_query(query.name)} changes the graph", "use `mutate` to run this query"
    else:
        message, hint = f"{quote_query(query.name)} is a read query, not a mutation", "use `query` to run this query"
    raise TypeCheckError(message, hint=hint)


@contextmanager
def map_errors_to_body(query_text: QueryText) -> Iterator[None]:
    """Map diagnostic positions in a wrapped query back to the caller's body."""
    try:
        yield
    except LanguageError as error:
        if not query_text.prefix_length:
            raise
        body_source = SourceText(
            query_text.source_name, query_text.text[query_text.prefix_length : -1].removesuffix("\n")
        )
        moved_diagnostics = [
            _move_diagnostic(diagnostic, body_source, query_text.prefix_length) for diagnostic in error.diagnostics
        ]
        raise type(error)(diagnostics=moved_diagnostics, source=body_source) from None


def _move_diagnostic(diagnostic: Diagnostic, body_source: SourceText, prefix_length: int) -> Diagnostic:
    body_length = len(body_source.text)
    start, end = (min(max(0, offset - prefix_length), body_length) for offset in (diagnostic.start, diagnostic.end))
    line, column = body_source.locate(start)
    end = max(Span(start, end).end, start + 1)
    hint = _add_value_hint(diagnostic)
    return replace(diagnostic, start=start, end=end, line=line, column=column, hint=hint)


def _add_value_hint(diagnostic: Diagnostic) -> str | None:
    """Return a diagnostic's hint, or None.

    If the diagnostic is about an undeclared variable, the hint also explains how to pass a parameter.
    """
    undeclared_match = _UNDECLARED_MESSAGE.search(diagnostic.message)
    if undeclared_match is None:
        return diagnostic.hint
    variable_name = undeclared_match[1]
    params_option = f"--params '{{\"{variable_name}\": …}}'"
    is_option = variable_name in _CALL_OPTIONS + _COMMIT_OPTIONS
    keyword = f'params={{"{variable_name}": …}}' if is_option else f"{variable_name}=…"
    parameter_hint = f"if `${variable_name}` is a parameter, pass `{keyword}` or `{params_option}`"
    return parameter_hint if diagnostic.hint is None else f"{diagnostic.hint}; {parameter_hint}"


@record
class Prepared:
    """A query that is checked once and called like a function.

    The query is recompiled only when the graph's schema changes.
    """

    name: str
    kind: str
    params: Mapping[str, str]
    description: str | None
    _call: Callable[..., Any]
    _explain: Callable[..., Any]

    def __call__(self, /, **params: Any) -> Any:
        """Run the query. A read returns a `Result`, and a mutation returns a `Receipt`."""
        return self._call(params)

    def explain(self, /, *, analyze: bool = False, **params: Any) -> Any:
        """Return the plan. If `analyze` is true, run the query and add measurements."""
        return self._explain(params, analyze)

    def __repr__(self) -> str:
        declarations = ", ".join(f"${parameter_name}: {type_name}" for parameter_name, type_name in self.params.items())
        return f"<Prepared {self.kind}: {self.name}({declarations})>"
