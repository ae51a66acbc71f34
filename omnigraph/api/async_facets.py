"""The facets of `AsyncGraph`, which offer the blocking facets' methods as coroutines.

`in_thread` preserves a method's parameters, types and docstring. Methods that return a graph,
an iterator or a lazy object are written by hand.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.api.async_results import AsyncBaseline, AsyncFeed, AsyncMergeSession
from omnigraph.api.branches import Branches
from omnigraph.api.change_feed.feed import ChangeBlock, ChangeFilterNames
from omnigraph.api.change_feed.pages import DEFAULT_PAGE_BYTES, DEFAULT_PAGE_CHANGES, CommitPage
from omnigraph.api.changes import Changes, check_followable
from omnigraph.api.engine_choice import Engine
from omnigraph.api.graph_schema import GraphSchema
from omnigraph.api.maintenance import Maintenance
from omnigraph.api.operations import Operations
from omnigraph.api.revisions import Revisions
from omnigraph.api.schema import Schema
from omnigraph.api.spark import Spark
from omnigraph.api.stored_queries import StoredQueries, StoredQuery
from omnigraph.api.tags import Tags
from omnigraph.api.threads import AsyncFacet, in_thread, iterate, run
from omnigraph.api.type_info import EdgeTypeInfo, NodeTypeInfo
from omnigraph.errors import GraphClosed
from omnigraph.history.branch_info import BranchInfo
from omnigraph.history.revisions import Revision
from omnigraph.history.schemas import StoredSchema
from omnigraph.history.tags import Tag
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.merging.table_merge import Granularity

if TYPE_CHECKING:
    from omnigraph.api.async_graph import AsyncGraph

Stop = threading.Event | asyncio.Event
AsyncWait = Callable[[float], Awaitable[object]]


class AsyncBranches(AsyncFacet[Branches]):
    """A graph's branches. Use `async for name in graph.branches`, or `await graph.branches["main"]` for one branch."""

    names = in_thread(Branches.names)
    get = in_thread(Branches.get)
    delete = in_thread(Branches.delete)
    reset = in_thread(Branches.reset)

    async def __aiter__(self) -> AsyncIterator[str]:
        for name in await self.names():
            yield name

    def __getitem__(self, name: str) -> Coroutine[Any, Any, BranchInfo]:
        """Return an awaitable that resolves to information about a branch."""
        return run(lambda: self.sync[name])

    async def create(
        self, name: str, *, from_: Revision | None = None, commit: Revision | None = None, exist_ok: bool = False
    ) -> "AsyncGraph":
        """Create a branch and return a graph on it; see `Branches.create`."""
        return _async_graph(await run(self.sync.create, name, from_=from_, commit=commit, exist_ok=exist_ok))

    async def rename(self, name: str, new: str) -> "AsyncGraph":
        """Rename a branch and return a graph on it; see `Branches.rename`."""
        return _async_graph(await run(self.sync.rename, name, new))

    async def merge_session(  # noqa: PLR0913 - all but two are keywords
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        granularity: Granularity = "property",
        collapse_edges: bool = False,
        message: str | None = None,
        actor: str | None = None,
        engine: Engine = "auto",
        spark: Any = None,
    ) -> AsyncMergeSession:
        """Open a merge session in which conflicts are resolved one by one; see `Branches.merge_session`."""
        session = await run(
            self.sync.merge_session,
            source,
            into,
            granularity=granularity,
            collapse_edges=collapse_edges,
            message=message,
            actor=actor,
            engine=engine,
            spark=spark,
        )
        return AsyncMergeSession(session)


class AsyncTags(AsyncFacet[Tags]):
    """A graph's tags. Use `async for name in graph.tags`, or `await graph.tags["v1"]` for one tag."""

    values = in_thread(Tags.values)
    names = in_thread(Tags.names)
    get = in_thread(Tags.get)
    create = in_thread(Tags.create)
    delete = in_thread(Tags.delete)

    async def __aiter__(self) -> AsyncIterator[str]:
        for name in await self.names():
            yield name

    def __getitem__(self, name: str) -> Coroutine[Any, Any, Tag]:
        """Return an awaitable that resolves to the tag with the given name."""
        return run(lambda: self.sync[name])


class AsyncRevisions(AsyncFacet[Revisions]):
    """Commits and entity history."""

    commit = in_thread(Revisions.commit)
    history = in_thread(Revisions.history)
    blame = in_thread(Revisions.blame)
    revert = in_thread(Revisions.revert)
    cherry_pick = in_thread(Revisions.cherry_pick)

    async def pin(self) -> "AsyncGraph":
        """Return a read-only graph pinned to the newest commit; see `Revisions.pin`."""
        return _async_graph(await run(self.sync.pin))


class AsyncGraphSchema(AsyncFacet[GraphSchema]):
    """A graph's schema. Its properties are coroutines, because they read the text and types from the store."""

    plan = in_thread(GraphSchema.plan)
    apply = in_thread(GraphSchema.apply)
    to_arrow = in_thread(GraphSchema.to_arrow)
    diff = in_thread(GraphSchema.diff)
    diagram = in_thread(GraphSchema.diagram)

    def __getitem__(self, type_name: str) -> Coroutine[Any, Any, NodeTypeInfo | EdgeTypeInfo]:
        """Return an awaitable that resolves to the type with the given name."""
        return run(lambda: self.sync[type_name])

    async def current(self) -> Schema:
        """The schema as an object that is independent of the graph."""
        return await run(lambda: self.sync.current)

    async def types(self) -> Mapping[str, NodeTypeInfo]:
        """The node types, keyed by name."""
        return await run(lambda: self.sync.types)

    async def edges(self) -> Mapping[str, EdgeTypeInfo]:
        """The edge types, keyed by name."""
        return await run(lambda: self.sync.edges)

    async def contract(self) -> StoredSchema:
        """The stored schema: its text and its compiled form."""
        return await run(lambda: self.sync.contract)

    async def source(self) -> str:
        """The `.pg` text."""
        return await run(lambda: self.sync.source)

    async def ir(self) -> SchemaIR:
        """The compiled schema."""
        return await run(lambda: self.sync.ir)

    async def node_types(self) -> tuple[str, ...]:
        """The names of the node types."""
        return await run(lambda: self.sync.node_types)

    async def edge_types(self) -> tuple[str, ...]:
        """The names of the edge types."""
        return await run(lambda: self.sync.edge_types)


class AsyncChanges(AsyncFacet[Changes]):
    """The change feed."""

    poll = in_thread(Changes.poll)
    of_commit = in_thread(Changes.of_commit)
    commit_page = in_thread(Changes.commit_page)

    async def feed(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> AsyncFeed:
        """Return the commits after a position, up to the newest; see `Changes.feed`."""
        feed = self.sync.feed
        return AsyncFeed(await run(feed, start, cursor=cursor, types=types, kinds=kinds, ops=ops))

    async def follow(  # noqa: PLR0913 - all but one are keywords
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        poll: float = 2.0,
        stop: Stop | None = None,
        wait: AsyncWait | None = None,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> AsyncIterator[ChangeBlock]:
        """Follow the feed indefinitely. Waiting for new commits does not occupy a thread.

        The iteration ends within `poll` seconds after `stop` is set, or when the graph is closed.
        """
        handle = self.sync._handle
        check_followable(handle, poll)
        feed = await self.feed(start, cursor=cursor, types=types, kinds=kinds, ops=ops)
        while True:
            async for block in feed:
                if handle.closed or _is_set(stop):
                    return
                yield block
            if handle.closed or _is_set(stop):
                return
            await (wait or asyncio.sleep)(poll)
            try:
                feed = await self.feed(cursor=feed.cursor, types=types, kinds=kinds, ops=ops)
            except GraphClosed:
                return

    async def commit_pages(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int = DEFAULT_PAGE_CHANGES,
        max_bytes: int = DEFAULT_PAGE_BYTES,
        **filters: ChangeFilterNames,
    ) -> AsyncIterator[CommitPage]:
        """Return all pages of a commit's changes; see `Changes.commit_pages`."""
        pages = await run(
            self.sync.commit_pages, commit_id, page_token=page_token, limit=limit, max_bytes=max_bytes, **filters
        )
        async for page in iterate(pages):
            yield page

    async def baseline(
        self,
        path: str | PathLike[str] | None = None,
        *,
        types: ChangeFilterNames = None,
        kinds: ChangeFilterNames = None,
        ops: ChangeFilterNames = None,
    ) -> AsyncBaseline:
        """Return the current content of the branch; see `Changes.baseline`."""
        baseline = await run(self.sync.baseline, path, types=types, kinds=kinds, ops=ops)
        return AsyncBaseline(baseline)


class AsyncStoredQuery(AsyncFacet[StoredQuery]):
    """A query that is stored on a server. Call it like an asynchronous function."""

    def __init__(self, sync: StoredQuery) -> None:
        super().__init__(sync)
        self.name, self.kind, self.params = sync.name, sync.kind, sync.params
        self.description, self.instruction = sync.description, sync.instruction
        self.__doc__ = sync.__doc__

    async def __call__(self, /, **params: Any) -> Any:
        """Run the query. A read returns a `Result`, and a mutation returns a `Receipt`."""
        return await run(self.sync, **params)


class AsyncStoredQueries(AsyncFacet[StoredQueries]):
    """The queries that are stored on a server. Run one with `await graph.queries.adults(min=18)`.

    `async for name in graph.queries` lists the names, and `await graph.queries["adults"]` returns a query with its
    parameters and description.
    """

    names = in_thread(StoredQueries.names)

    async def values(self) -> list[AsyncStoredQuery]:
        """Return all stored queries, sorted by name."""
        return list(map(AsyncStoredQuery, await run(self.sync.values)))

    async def get(self, name: str) -> AsyncStoredQuery | None:
        """Return a stored query by name, or None."""
        query = await run(self.sync.get, name)
        return None if query is None else AsyncStoredQuery(query)

    async def __aiter__(self) -> AsyncIterator[str]:
        for name in await self.names():
            yield name

    def __getitem__(self, name: str) -> Coroutine[Any, Any, AsyncStoredQuery]:
        """Return an awaitable that resolves to the stored query with the given name."""
        return run(lambda: AsyncStoredQuery(self.sync[name]))

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_"):  # tools look for special methods, which are not queries
            raise AttributeError(name)
        return lambda **params: run(lambda: getattr(self.sync, name)(**params))

    def _ipython_key_completions_(self) -> list[str]:
        return self.sync._ipython_key_completions_()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._ipython_key_completions_()]


class AsyncOperations(AsyncFacet[Operations]):
    """Unfinished operations, and the outcomes of recovered operations."""

    recoveries = in_thread(Operations.recoveries)
    pending = in_thread(Operations.pending)
    set_aside = in_thread(Operations.set_aside)
    retry = in_thread(Operations.retry)
    drop = in_thread(Operations.drop)


class AsyncMaintenance(AsyncFacet[Maintenance]):
    """Compaction, indexes, cleanup, checks, repairs and copies."""

    optimize = in_thread(Maintenance.optimize)
    ensure_indices = in_thread(Maintenance.ensure_indices)
    pending_indices = in_thread(Maintenance.pending_indices)
    cleanup = in_thread(Maintenance.cleanup)
    check_absent = in_thread(Maintenance.check_absent)
    check = in_thread(Maintenance.check)
    status = in_thread(Maintenance.status)
    repair = in_thread(Maintenance.repair)
    copy_to = in_thread(Maintenance.copy_to)

    @property
    def operations(self) -> AsyncOperations:
        """Unfinished operations, and the outcomes of recovered operations."""
        return AsyncOperations(self.sync.operations)

    @asynccontextmanager
    async def hold(self) -> "AsyncIterator[AsyncGraph]":
        """Protect the newest commit from cleanup during an `async with` block; see `Maintenance.hold`."""
        block = self.sync.hold()
        graph = await run(block.__enter__)
        try:
            yield _async_graph(graph)
        finally:
            await run(block.__exit__, None, None, None)


class AsyncSpark(AsyncFacet[Spark]):
    """Spark DataFrames, and loads from Spark streams."""

    frames = in_thread(Spark.frames)
    stream_load = in_thread(Spark.stream_load)


def _async_graph(graph: Any) -> "AsyncGraph":
    from omnigraph.api.async_graph import AsyncGraph

    return AsyncGraph(graph)


def _is_set(stop: Stop | None) -> bool:
    return stop is not None and stop.is_set()
