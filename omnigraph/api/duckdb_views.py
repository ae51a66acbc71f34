"""`graph.duckdb()`: SQL over one snapshot, with one DuckDB view per type.

DuckDB reads the Lance tables through Arrow and requests only the columns and rows that it needs, so nothing is copied
up front. The views are read-only, and later commits do not change them. Blob properties are not included; read them
with `graph.blob`.
"""

from typing import Any

from omnigraph.api.handle import Handle
from omnigraph.api.optional_imports import import_optional
from omnigraph.history.revisions import Revision
from omnigraph.history.snapshot import Snapshot
from omnigraph.storage.blobs import columns_without_blobs
from omnigraph.values.table_key import TableKey

_SCHEMA_NAMES = {"node": "nodes", "edge": "edges"}


def duckdb(handle: Handle, /, *, branch: str | None = None, at: Revision | None = None) -> Any:
    """Return a DuckDB connection with a view for each type, all at the same commit.

    The views are called `nodes.<type>` and `edges.<type>`. The schema name is needed only if a node type and an edge
    type have the same name. Edge views have the columns `id`, `src`, `dst` and the properties. The connection uses an
    in-memory database, in which you can create your own tables. Close it when you are done.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key  age: I32? }") as graph:
    ...     _ = graph.insert("Person", {"name": "ada", "age": 36}, {"name": "bob", "age": 25})
    ...     with graph.duckdb() as connection:
    ...         connection.sql("select name from Person where age > 30").fetchall()
    [('ada',)]

    Raises `ImportError` if DuckDB is not installed, and `NotFound` for an unknown branch or revision.
    """
    connection = import_optional("duckdb").connect()
    snapshot = handle.for_read(branch, at).latest_snapshot()
    for schema_name in _SCHEMA_NAMES.values():
        connection.execute(f"create schema {schema_name}")
    for table_key in sorted(snapshot.tables, key=str):
        _create_view(connection, snapshot, table_key)
    connection.execute("set search_path = 'main,nodes,edges'")
    return connection


def _create_view(connection: Any, snapshot: Snapshot, table_key: TableKey) -> None:
    """Register a type's table, and create a view of its columns that is named after the type."""
    dataset = snapshot.table(table_key).dataset
    columns = ", ".join(map(_quote, columns_without_blobs(dataset.schema)))
    source_name = f"omnigraph_{table_key.kind}_{table_key.type_name}"
    connection.register(source_name, dataset)
    view_name = f"{_SCHEMA_NAMES[table_key.kind]}.{_quote(table_key.type_name)}"
    select = f"select {columns} from {_quote(source_name)}"  # noqa: S608 - every name is quoted
    connection.execute(f"create view {view_name} as {select}")


def _quote(identifier: str) -> str:
    """Return an identifier as a quoted SQL name.

    >>> _quote("order")
    '"order"'
    """
    return '"' + identifier.replace('"', '""') + '"'
