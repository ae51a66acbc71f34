"""Prepare each read once, and cache it by the source that the caller passes.

This cache sits in front of `COMPILED_QUERIES`. A hit costs one dictionary lookup, and the text is not examined again.
Files are never cached, because their content may change between calls.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from omnigraph.api.builders.prepared_queries import (
    COMPILED_QUERIES,
    QuerySource,
    read_query,
    require_query_kind,
    select_query,
)
from omnigraph.errors.diagnostics import SourceText
from omnigraph.history.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.run_query import PreparedRead

_CACHE_SIZE = 512
# For values of these types, the type that a bare body declares depends only on the Python type, not on the value.
_PLAIN_TYPES = frozenset({str, int, float, bool, bytes, date, datetime, type(None)})


class PreparedReadCache:
    """A cache of prepared reads, shared by all handles. It is cleared when it is full."""

    def __init__(self, max_entries: int = _CACHE_SIZE) -> None:
        self._max_entries = max_entries
        self._entries: dict[tuple[object, ...], PreparedRead] = {}

    def get_or_prepare(
        self, snapshot: Snapshot, source: QuerySource, name: str | None, arguments: Mapping[str, Any]
    ) -> "PreparedRead":
        """Return the read, prepared for a snapshot's schema. Raise an error for a mutation or an invalid source."""
        if not isinstance(source, str | SourceText) or not (name is None or isinstance(name, str)):
            return _prepare(snapshot, source, name, arguments)[0]
        source_key = (snapshot.schema_row.hash, source, name)
        prepared = self._entries.get(source_key)
        if prepared is not None:
            return prepared
        body_key = (*source_key, tuple(arguments), *map(type, arguments.values()))
        prepared = self._entries.get(body_key)
        if prepared is not None:
            return prepared
        prepared, source_kind = _prepare(snapshot, source, name, arguments)
        if source_kind == "query":
            self._put(source_key, prepared)
        elif source_kind == "body" and _PLAIN_TYPES.issuperset(body_key[len(source_key) + 1 :]):
            self._put(body_key, prepared)
        return prepared

    def _put(self, cache_key: tuple[object, ...], prepared: "PreparedRead") -> None:
        if len(self._entries) >= self._max_entries:
            self._entries.clear()
        self._entries[cache_key] = prepared


def _prepare(
    snapshot: Snapshot, source: QuerySource, name: str | None, arguments: Mapping[str, Any]
) -> tuple["PreparedRead", str]:
    """Return a prepared read, and the form of its source: a file, a bare body or a complete query."""
    from omnigraph.engine.run_query import prepare_compiled

    query_text = read_query(source, arguments)
    schema_hash = snapshot.schema_row.hash
    queries = COMPILED_QUERIES.get_or_compile(query_text, schema_hash, lambda: snapshot.schema.ir.catalog, name)
    query = require_query_kind(select_query(queries, name), "read")
    is_file = not isinstance(source, SourceText) and query_text.source_name != "<query>"
    source_kind = "file" if is_file else "body" if query_text.prefix_length else "query"
    return prepare_compiled(query, snapshot.schema.ir, "python"), source_kind


PREPARED_READS = PreparedReadCache()
