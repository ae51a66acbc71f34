"""Stored queries: queries from `.gq` files that clients call by name.

A worker reads the files once, when it opens a graph, and checks every query against the schema of `main`. If a query is
invalid, the worker does not serve the graph, because clients depend on the query.
"""

from collections.abc import Iterator
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.errors import ConfigError, StoredQueryNotFound, language_error
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.parsing import decode_source
from omnigraph.lang.query import diagnose_queries
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.records.frozen import record


@record
class ServedQuery:
    """A query and its source text."""

    compiled: CompiledQuery
    text: str

    @property
    def name(self) -> str:
        """The name by which clients call the query."""
        return self.compiled.name

    @property
    def is_mutation(self) -> bool:
        """Whether the query changes the graph."""
        return self.compiled.kind == "mutation"


class ServedQueries:
    """The stored queries of one graph by name."""

    def __init__(self, queries: tuple[ServedQuery, ...] = ()) -> None:
        self._queries = {query.name: query for query in queries}

    def __iter__(self) -> Iterator[ServedQuery]:
        return iter([self._queries[name] for name in sorted(self._queries)])

    def find(self, name: str) -> ServedQuery:
        """Return a query by its name; raise `StoredQueryNotFound` if there is none."""
        query = self._queries.get(name)
        if query is None:
            raise StoredQueryNotFound()
        return query


def load_stored_queries(directory: str | None, graph_id: str, graph: Graph) -> ServedQueries:
    """Read a graph's queries from the subfolder named after its id, or from the folder itself if there is none.

    Raises a language error if a query does not match the schema, and `ConfigError` for a missing folder or a repeated
    name.
    """
    if directory is None:
        return ServedQueries()
    folder = Path(directory, graph_id) if Path(directory, graph_id).is_dir() else Path(directory)
    if not folder.is_dir():
        raise ConfigError(reason="the stored query folder does not exist", path=str(folder))
    queries = [query for path in sorted(folder.glob("*.gq")) for query in _read_file(path, graph)]
    names = [query.name for query in queries]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ConfigError(reason=f"two stored queries are named '{repeated}'")
    return ServedQueries(tuple(queries))


def _read_file(path: Path, graph: Graph) -> Iterator[ServedQuery]:
    source = decode_source(path.read_bytes(), path.name)
    compiled, diagnostics = diagnose_queries(source.text, graph.schema.ir.catalog, source.name)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    if errors:
        raise language_error(errors, SourceText(source.name, source.text))
    for query in compiled:
        yield ServedQuery(query, source.text)
