"""`Graph`: the main class in the public API.

The most common operations are methods. Everything else is available through the facets `branches`, `tags`, `revisions`,
`schema`, `changes`, `maintenance` and `spark`. Each method makes one call to a neighboring module, which also
documents the method. A `Graph` object is cheap to create and thread-safe, and never changes the branch or commit that
it is bound to.
"""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from omnigraph.api.deferred import defer_imports
from omnigraph.api.error_boundary import Guarded
from omnigraph.api.facet import delegate
from omnigraph.api.handle import Handle
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision
from omnigraph.history.snapshot import Snapshot
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.api import (  # noqa: TC004
        blob_writes,
        blobs,
        branch_blocks,
        comparisons,
        duckdb_views,
        exports,
        loads,
        merges,
        polars_scan,
        queries,
        query_pool,
        searches,
        subgraphs,
        writes,
    )
    from omnigraph.api.branches import Branches
    from omnigraph.api.builders.prepared_queries import Prepared, QuerySource
    from omnigraph.api.changes import Changes
    from omnigraph.api.export_files import ExportFormat
    from omnigraph.api.graph_schema import GraphSchema
    from omnigraph.api.maintenance import Maintenance
    from omnigraph.api.queries import Params
    from omnigraph.api.results.node import Node
    from omnigraph.api.results.result import Result, ResultStream
    from omnigraph.api.revisions import Revisions
    from omnigraph.api.spark import Spark
    from omnigraph.api.stored_queries import StoredQueries
    from omnigraph.api.surface import GraphSurface
    from omnigraph.api.tags import Tags
    from omnigraph.history.tags import Tag
    from omnigraph.maintenance.health_thresholds import LimitWarning
else:
    defer_imports(
        globals(),
        "omnigraph.api",
        *("blob_writes", "blobs", "branch_blocks", "comparisons", "duckdb_views", "exports", "loads"),
        *("merges", "polars_scan", "queries", "query_pool", "searches", "subgraphs", "writes"),
    )

Answer = TypeVar("Answer")
Path = str | PathLike[str]


class Graph(Guarded):
    """An open graph, bound to a branch or pinned to one commit.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key  age: I32? }") as graph:
    ...     receipt = graph.insert("Person", {"name": "ada", "age": 36})
    ...     graph.query("match { $p: Person } return { $p.name, $p.age }").to_records()
    [('ada', 36)]
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return self._handle.describe()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._handle,)

    def _guarded_store(self) -> Store:
        return self._handle.store

    def _repr_html_(self) -> str:
        from omnigraph.api.results.notebook_cards import graph_card

        row_counts = {key: entry.row_count for key, entry in self.snapshot.tables.items()}
        return graph_card(self.uri, self.branch_name, self.head, row_counts)

    # State --------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """The graph's location."""
        return self._handle.uri

    @property
    def branch_name(self) -> str:
        """The branch that this graph is bound to."""
        return self._handle.branch_name

    @property
    def head(self) -> Commit:
        """The commit that this graph reads from."""
        return self._handle.snapshot.commit

    @property
    def snapshot(self) -> Snapshot:
        """The immutable snapshot that this graph reads from."""
        return self._handle.snapshot

    @property
    def read_only(self) -> bool:
        """Whether writes are rejected."""
        return self._handle.read_only

    @property
    def actor(self) -> str | None:
        """The default author of writes, or None."""
        return self._handle.actor

    @property
    def warnings(self) -> "list[LimitWarning]":
        """The limits that writes have exceeded, each with a recommended command."""
        return self._handle.warnings

    @property
    def is_remote(self) -> bool:
        """Whether calls are sent to a server. Always false, because this process reads the graph's files itself."""
        return False

    def refresh(self) -> Self:
        """Move to the newest commit on the branch and return this graph."""
        self._handle.refresh()
        return self

    def close(self) -> None:
        """Close the graph. Later calls raise `GraphClosed`. No data is lost if a graph is never closed."""
        self._handle.closed = True

    # Facets -------------------------------------------------------------------------------------

    @property
    def branches(self) -> "Branches":
        """Facet for listing, creating, renaming and deleting branches, and for merge sessions."""
        from omnigraph.api.branches import Branches

        return Branches(self._handle, type(self))

    @property
    def tags(self) -> "Tags":
        """Facet for listing, creating and deleting tags."""
        from omnigraph.api.tags import Tags

        return Tags(self._handle)

    @property
    def revisions(self) -> "Revisions":
        """Facet for commits and entity history, including revert and cherry-pick."""
        from omnigraph.api.revisions import Revisions

        return Revisions(self._handle, type(self))

    @property
    def schema(self) -> "GraphSchema":
        """The schema at the commit that this graph reads from. `.source` is its text, and `.apply` changes it."""
        from omnigraph.api.graph_schema import GraphSchema

        self._handle.require_open()
        return GraphSchema(self._handle, self._handle.snapshot)

    @property
    def changes(self) -> "Changes":
        """The change feed."""
        from omnigraph.api.changes import Changes

        return Changes(self._handle)

    @property
    def queries(self) -> "StoredQueries":
        """The queries that are stored on a server. A graph on disk has none: use `prepare` for queries in files."""
        from omnigraph.api.stored_queries import StoredQueries, reject_stored_queries

        return StoredQueries(reject_stored_queries, self._handle.describe())

    @property
    def maintenance(self) -> "Maintenance":
        """Facet for compaction, indexes, cleanup, checks, repairs and copies."""
        from omnigraph.api.maintenance import Maintenance

        return Maintenance(self._handle, type(self))

    @property
    def spark(self) -> "Spark":
        """Facet for Spark DataFrames and loads from Spark streams."""
        from omnigraph.api.spark import Spark

        return Spark(self._handle)

    # Reads --------------------------------------------------------------------------------------

    stream = delegate(lambda: queries.stream)
    explain = delegate(lambda: queries.explain)
    nodes = delegate(lambda: queries.nodes)
    edges = delegate(lambda: queries.edges)
    node = delegate(lambda: queries.node)
    table = delegate(lambda: queries.table)
    subgraph = delegate(lambda: subgraphs.subgraph)
    search = delegate(lambda: searches.search)
    scan = delegate(lambda: polars_scan.scan)
    duckdb = delegate(lambda: duckdb_views.duckdb)
    pool = delegate(lambda: query_pool.pool)
    blob = delegate(lambda: blobs.blob)

    @overload
    def query(self, source: "QuerySource", /, *, lazy: Literal[True], **options: Any) -> "ResultStream": ...
    @overload
    def query(
        self,
        source: "QuerySource",
        /,
        *,
        name: str | None = None,
        params: "Params" = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        lazy: Literal[False] = False,
        **values: Any,
    ) -> "Result": ...
    def query(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: "QuerySource",
        /,
        *,
        name: str | None = None,
        params: "Params" = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        lazy: bool = False,
        **values: Any,
    ) -> "Result | ResultStream":
        """Run a query on the newest commit, or on another branch or revision.

        `source` is query text, a path, or a bare `match { … } return { … }`. If it contains several queries, `name`
        selects one of them. Pass parameters as keyword arguments, or in `params` if an option already has the same
        name. If `assume_utc` is true, parameter values without a time zone are assumed to be in UTC; otherwise, they
        are rejected. If `lazy` is true, the call returns the same stream as `stream`.

        Raises the language errors (`ParseError`, `TypeCheckError`, `ParameterError`),
        `QueryTimeout`, `ResourceLimitExceeded`, and `NotFound` for an unknown branch or revision.
        """
        call = queries.QueryCall(source, name, queries.combine_arguments(params, values), timeout, assume_utc)
        run = queries.stream_query if lazy else queries.run_query
        return run(self._handle.for_read(branch, at), call)

    def prepare(self, source: "QuerySource", /, *, name: str | None = None) -> "Prepared":
        """Compile and check a query now, and return a function that runs it later.

        Raises a language error if the query is invalid. The query is checked against the schema at the commit that this
        graph reads from.
        """
        return queries.prepare_query(self, self._handle, source, name)

    def __getitem__(self, wanted: tuple[str, Any]) -> "Node":
        """Return a node by its key, as in `graph["Person", "ada"]`. Raises `KeyError` if there is no such node."""
        return queries.require_node(self._handle, *wanted)

    @overload
    def export(
        self,
        path: None = None,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Revision | None = None,
        iso_dates: bool = False,
        since: Revision | None = None,
        format: "ExportFormat | None" = None,
    ) -> Iterator[bytes]: ...
    @overload
    def export(
        self,
        path: Path,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Revision | None = None,
        iso_dates: bool = False,
        since: Revision | None = None,
        format: "ExportFormat | None" = None,
    ) -> int: ...
    def export(  # noqa: PLR0913 - all but the first are keywords
        self,
        path: Path | None = None,
        /,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: Revision | None = None,
        iso_dates: bool = False,
        since: Revision | None = None,
        format: "ExportFormat | None" = None,
    ) -> Iterator[bytes] | int:
        """Export one snapshot as NDJSON that can be loaded again, with nodes before edges.

        If a path or an `s3://` URI is given, the export is written there and the number of entities is returned;
        otherwise, an iterator over the lines is returned. The file appears only once it is complete. The suffix of the
        path sets the format, unless `format` is given: `ndjson` (the default), or `parquet`, `arrow` or `csv`, which
        contain a single type. Text is compressed if the name ends in .gz or .zst.

        With `since`, only the entities that were added or changed after that revision are exported. Deletions are not
        exported; the change feed reports them. In NDJSON, a Date is written as the number of days since 1970, and a
        DateTime as the number of milliseconds since 1970. With `iso_dates`, these values are written as ISO strings.
        Cleanup never removes data that a running export is reading.
        """
        handle = self._handle.for_read(branch, at)
        return exports.export_graph(handle, path, types, iso_dates=iso_dates, since=since, format=format)

    # Writes -------------------------------------------------------------------------------------

    mutate = delegate(lambda: writes.mutate)
    insert = delegate(lambda: writes.insert)
    upsert = delegate(lambda: writes.upsert)
    patch = delegate(lambda: writes.patch)
    connect_nodes = delegate(lambda: writes.connect_nodes)
    update = delegate(lambda: writes.update)
    delete = delegate(lambda: writes.delete)
    put_blob = delegate(lambda: blob_writes.put_blob)
    transaction = delegate(lambda: writes.transaction)
    load = delegate(lambda: loads.load)

    def retry(self, fn: Callable[[Self], Answer], *, attempts: int = 12) -> Answer:
        """Call `fn(graph)`, and repeat the call after each conflict that a refresh may resolve.

        The wait between attempts is random. Its upper bound doubles after each attempt, from 4 to 500 milliseconds.
        """
        return writes.retry_on_conflict(self._handle, lambda: fn(self), attempts)

    # Branches and revisions ---------------------------------------------------------------------

    merge = delegate(lambda: merges.merge)
    diff = delegate(lambda: comparisons.diff)
    log = delegate(lambda: comparisons.log)

    def acting(self, actor: str | None) -> "Graph":
        """Return a graph on the same branch or commit, with its writes attributed to `actor` (None means no one).

        Reads through either graph do not affect the conflict checks for writes through the other.
        """
        return type(self)(self._handle.acting(actor))

    def checkout(self, branch: str) -> "Graph":
        """Return a graph on the newest commit of a branch. Raises `BranchNotFound` if the branch does not exist."""
        return type(self)(self._handle.checkout(branch))

    branch = delegate(lambda: branch_blocks.branch)

    def at(self, point: Revision) -> "Graph":
        """Return a read-only graph pinned to a revision.

        A revision is a commit id or a prefix of one, a tag, a branch, a point in time (a `datetime` or an ISO string
        with a time zone, a date, or text such as "2 hours ago"), a duration before now, or a manifest version.
        Steps can follow a name: `HEAD~3` goes back from the commit that this graph reads from, and `main^` goes back
        from the head of `main`. If a tag and a branch have the same name, the tag takes precedence and a warning is
        issued.

        >>> from omnigraph import testing
        >>> with testing.graph("node Person { name: String @key }") as graph:
        ...     _ = graph.insert("Person", {"name": "ada"})
        ...     graph.at("HEAD^").nodes("Person").count(), graph.at(graph.head.id.lower()).nodes("Person").count()
        (0, 1)
        """
        return type(self)(self._handle.at(point))

    def tag(self, name: str, point: Revision | None = None, *, message: str | None = None) -> "Tag":
        """Tag a commit, by default the one that this graph reads from. See `graph.tags` for other operations."""
        return self.tags.create(name, point, message=message)


if TYPE_CHECKING:

    def _check_surface(graph: Graph) -> GraphSurface:
        return graph  # mypy compares every signature with the protocol
