"""`AsyncGraph`, which offers every `Graph` method and facet to asynchronous programs.

Methods are coroutines that run in a bounded thread pool, iterators are asynchronous, and cheap properties remain
properties. A test checks that `AsyncGraph` has the same methods and parameters as `Graph`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from omnigraph.api.async_blobs import AsyncBlob
from omnigraph.api.async_facets import (
    AsyncBranches,
    AsyncChanges,
    AsyncGraphSchema,
    AsyncMaintenance,
    AsyncRevisions,
    AsyncSpark,
    AsyncStoredQueries,
    AsyncTags,
)
from omnigraph.api.async_pool import AsyncQueryPool
from omnigraph.api.async_results import AsyncEdgeSet, AsyncNodeSet, AsyncPrepared, AsyncResultStream, AsyncTransaction
from omnigraph.api.block_guards import AsyncBlockGuard
from omnigraph.api.branch_exits import BranchExit
from omnigraph.api.builders.prepared_queries import QuerySource
from omnigraph.api.graph import Graph, Path
from omnigraph.api.queries import Params, combine_arguments
from omnigraph.api.results.diff import Diff, DiffFilterNames
from omnigraph.api.results.node import Node
from omnigraph.api.results.result import Result
from omnigraph.api.threads import AsyncFacet, enter_in_thread, in_thread, iterate, run
from omnigraph.api.writes import WriteKeywords
from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision
from omnigraph.history.snapshot import Snapshot
from omnigraph.maintenance.health_thresholds import LimitWarning

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from omnigraph.api.comparisons import State
    from omnigraph.api.export_files import ExportFormat

Answer = TypeVar("Answer")


class AsyncGraph(AsyncFacet[Graph]):
    """A graph whose methods are coroutines. `sync` is the same graph with blocking methods.

    >>> import asyncio
    >>> from omnigraph import testing
    >>> async def names(graph):
    ...     await graph.insert("Person", {"name": "ada"})
    ...     return await graph.nodes("Person").ids(), [name async for name in graph.branches]
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     asyncio.run(names(AsyncGraph(graph)))
    (['ada'], ['main'])
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # State --------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """The graph's location."""
        return self.sync.uri

    @property
    def branch_name(self) -> str:
        """The branch that this graph is bound to."""
        return self.sync.branch_name

    @property
    def head(self) -> Commit:
        """The commit that this graph reads from."""
        return self.sync.head

    @property
    def snapshot(self) -> Snapshot:
        """The immutable snapshot that this graph reads from."""
        return self.sync.snapshot

    @property
    def read_only(self) -> bool:
        """Whether writes are rejected."""
        return self.sync.read_only

    @property
    def actor(self) -> str | None:
        """The default author of writes, or None."""
        return self.sync.actor

    @property
    def warnings(self) -> list[LimitWarning]:
        """The limits that writes have exceeded, each with a recommended command."""
        return self.sync.warnings

    @property
    def is_remote(self) -> bool:
        """Whether calls are sent to a server."""
        return self.sync.is_remote

    async def refresh(self) -> Self:
        """Move to the newest commit on the branch and return this graph."""
        await run(self.sync.refresh)
        return self

    async def close(self) -> None:
        """Close the graph."""
        self.sync.close()

    # Facets -------------------------------------------------------------------------------------

    @property
    def branches(self) -> AsyncBranches:
        """Facet for listing, creating, renaming and deleting branches, and for merge sessions."""
        return AsyncBranches(self.sync.branches)

    @property
    def tags(self) -> AsyncTags:
        """Facet for listing, creating and deleting tags."""
        return AsyncTags(self.sync.tags)

    @property
    def revisions(self) -> AsyncRevisions:
        """Facet for commits and entity history, including revert and cherry-pick."""
        return AsyncRevisions(self.sync.revisions)

    @property
    def schema(self) -> AsyncGraphSchema:
        """The schema at the commit that this graph reads from."""
        return AsyncGraphSchema(self.sync.schema)

    @property
    def changes(self) -> AsyncChanges:
        """The change feed."""
        return AsyncChanges(self.sync.changes)

    @property
    def queries(self) -> AsyncStoredQueries:
        """The queries that are stored on a server, by name. Call them like asynchronous functions."""
        return AsyncStoredQueries(self.sync.queries)

    @property
    def maintenance(self) -> AsyncMaintenance:
        """Facet for compaction, indexes, cleanup, checks, repairs and copies."""
        return AsyncMaintenance(self.sync.maintenance)

    @property
    def spark(self) -> AsyncSpark:
        """Facet for Spark DataFrames and loads from Spark streams."""
        return AsyncSpark(self.sync.spark)

    # Reads --------------------------------------------------------------------------------------

    explain = in_thread(Graph.explain)
    node = in_thread(Graph.node)
    table = in_thread(Graph.table)
    subgraph = in_thread(Graph.subgraph)
    scan = in_thread(Graph.scan)
    duckdb = in_thread(Graph.duckdb)
    search = in_thread(Graph.search)
    log = in_thread(Graph.log)

    @overload
    async def query(self, source: QuerySource, /, *, lazy: Literal[True], **options: Any) -> AsyncResultStream: ...
    @overload
    async def query(
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        lazy: Literal[False] = False,
        **values: Any,
    ) -> Result: ...
    async def query(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        lazy: bool = False,
        **values: Any,
    ) -> Result | AsyncResultStream:
        """Run a query; see `Graph.query`. If `lazy` is true, return an open stream."""
        options: dict[str, Any] = {"name": name, "branch": branch, "at": at, "timeout": timeout}
        options["assume_utc"] = assume_utc
        arguments = combine_arguments(params, values)
        if lazy:
            return await self.stream(source, params=arguments, **options)
        return await run(self.sync.query, source, params=arguments, **options)

    def stream(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> AsyncResultStream:
        """Run a query and yield its batches, as in `async for batch in graph.stream(…)`."""
        options: dict[str, Any] = {"name": name, "branch": branch, "at": at, "timeout": timeout}
        options["assume_utc"] = assume_utc
        arguments = combine_arguments(params, values)
        return AsyncResultStream(lambda: self.sync.stream(source, params=arguments, **options))

    async def prepare(self, source: QuerySource, /, *, name: str | None = None) -> AsyncPrepared:
        """Compile and check a query now, and return an asynchronous function that runs it later."""
        return AsyncPrepared(await run(self.sync.prepare, source, name=name))

    async def pool(self, processes: int = 2) -> AsyncQueryPool:
        """Start processes that run queries in parallel, as in `async with await graph.pool() as pool`."""
        return AsyncQueryPool(await run(self.sync.pool, processes))

    async def blob(
        self,
        type_name: str,
        key: Any,
        property_name: str,
        /,
        *,
        kind: str | None = None,
        if_match: str | None = None,
    ) -> AsyncBlob:
        """Open a blob, as in `await (await graph.blob("Doc", "a", "body")).read()`."""
        return AsyncBlob(await run(self.sync.blob, type_name, key, property_name, kind=kind, if_match=if_match))

    def nodes(self, type_name: str, /) -> AsyncNodeSet:
        """Return the nodes of a given type, as in `await graph.nodes("Person").filter("age > 30").to_dicts()`."""
        return AsyncNodeSet(lambda: self.sync.nodes(type_name))

    def edges(self, type_name: str, /) -> AsyncEdgeSet:
        """Return the edges of a given type, with their ids, endpoints and properties."""
        return AsyncEdgeSet(lambda: self.sync.edges(type_name))

    def __getitem__(self, wanted: tuple[str, Any]) -> Coroutine[Any, Any, Node]:
        """Return a node, as in `await graph["Person", "ada"]`. Raises `KeyError` if there is no such node."""
        return run(lambda: self.sync[wanted])

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
    ) -> AsyncIterator[bytes]: ...
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
    ) -> Coroutine[Any, Any, int]: ...
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
    ) -> AsyncIterator[bytes] | Coroutine[Any, Any, int]:
        """Export one snapshot. Iterate over the lines with `async for`, or await the export to a file."""
        options = {"types": types, "branch": branch, "at": at, "iso_dates": iso_dates, "since": since, "format": format}

        def export_to(target: Any) -> Any:
            return self.sync.export(target, **options)  # type: ignore[call-overload]

        return _lines(lambda: export_to(None)) if path is None else run(export_to, path)

    async def diff(
        self,
        a: "State | Graph | AsyncGraph",
        b: "State | Graph | AsyncGraph" = None,
        *,
        types: DiffFilterNames = None,
        kinds: DiffFilterNames = None,
        ops: DiffFilterNames = None,
    ) -> Diff:
        """Return the changes from `a` to `b`; see `Graph.diff`. All changes are read before the call returns."""
        old = a.sync if isinstance(a, AsyncGraph) else a
        new = b.sync if isinstance(b, AsyncGraph) else b
        diff = await run(self.sync.diff, old, new, types=types, kinds=kinds, ops=ops)
        await run(lambda: diff.lazy_changes.tables)
        return diff

    # Writes -------------------------------------------------------------------------------------

    mutate = in_thread(Graph.mutate)
    insert = in_thread(Graph.insert)
    upsert = in_thread(Graph.upsert)
    patch = in_thread(Graph.patch)
    connect_nodes = in_thread(Graph.connect_nodes)
    update = in_thread(Graph.update)
    delete = in_thread(Graph.delete)
    put_blob = in_thread(Graph.put_blob)
    load = in_thread(Graph.load)
    merge = in_thread(Graph.merge)
    tag = in_thread(Graph.tag)

    async def retry(self, fn: Callable[[Self], Awaitable[Answer]], *, attempts: int = 12) -> Answer:
        """Await `fn(graph)`, and repeat the call after each conflict that a refresh may resolve."""
        for attempt in range(1, attempts + 1):
            try:
                return await fn(self)
            except OmnigraphError as error:
                if error.retryable != "fresh" or attempt == attempts:
                    raise
                await run(self.sync._handle.pause_before_retry, attempt)
        raise UsageError(reason="attempts must be at least 1")

    def transaction(
        self,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncTransaction:
        """Combine several writes into one commit, using `async with graph.transaction() as tx`."""
        options = WriteKeywords(
            branch=branch, if_commit=if_commit, message=message, actor=actor, idempotency_key=idempotency_key
        )
        return AsyncTransaction(lambda: self.sync.transaction(**options))

    # Branches and revisions ---------------------------------------------------------------------

    async def acting(self, actor: str | None) -> "AsyncGraph":
        """Return a graph on the same branch or commit, with its writes attributed to `actor`; see `Graph.acting`."""
        return AsyncGraph(await run(self.sync.acting, actor))

    async def checkout(self, branch: str) -> "AsyncGraph":
        """Return a graph on a different branch."""
        return AsyncGraph(await run(self.sync.checkout, branch))

    def branch(
        self,
        name: str,
        *,
        from_: Revision | None = None,
        exist_ok: bool = False,
        delete: bool = False,
        on_exit: BranchExit = "keep",
    ) -> "AbstractAsyncContextManager[AsyncGraph]":
        """Yield a graph on a new branch for the duration of an `async with` block; see `Graph.branch`."""
        block = self.sync.branch(name, from_=from_, exist_ok=exist_ok, delete=delete, on_exit=on_exit)
        return AsyncBlockGuard(name, enter_in_thread(block, AsyncGraph))

    async def at(self, point: Revision) -> "AsyncGraph":
        """Return a read-only graph pinned to a revision; see `Graph.at`."""
        return AsyncGraph(await run(self.sync.at, point))


async def _lines(open_lines: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
    async for line in iterate(await run(open_lines)):
        yield line
