"""The same graph for asynchronous programs: every method a coroutine, on a bounded pool of threads.

Owns the pool and cancellation. A write that is cancelled before it is published has no effect;
while it is being published its outcome is awaited. Nothing here has an event loop of its own.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from os import PathLike
from typing import Any, Self, TypeVar

import pyarrow as pa

from omnigraph import graph as sync
from omnigraph.comparison import Diff
from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan
from omnigraph.feed import ChangeBlock
from omnigraph.history.commit import Commit
from omnigraph.history.trace import EntityVersion
from omnigraph.merges import MergeResult
from omnigraph.nodes import Node
from omnigraph.receipt import LoadReport, Receipt
from omnigraph.result import Result, ResultStream
from omnigraph.terms import STOP

Given = TypeVar("Given")
WORKERS = min(32, (os.cpu_count() or 1) + 4)
_pool: ThreadPoolExecutor | None = None
_making = threading.Lock()


def _workers() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603 - one pool per process
    with _making:
        if _pool is None:
            _pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="omnigraph")
        return _pool


def _after_fork() -> None:
    global _pool, _making
    _pool, _making = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def run(call: Callable[..., Given], /, *args: Any, **options: Any) -> Given:
    """Run a call in the pool. Cancelled, it is told to stop, and its outcome is awaited."""
    stop = threading.Event()
    context = copy_context()
    context.run(STOP.set, stop)
    future = _workers().submit(context.run, lambda: call(*args, **options))
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        stop.set()
        if not future.cancel():
            # It runs already: it ends before its publish, or its outcome is known when we leave.
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                waiting.exception()
        raise


class AsyncGraph:
    """A graph handle whose methods are coroutines; `sync` is the handle itself."""

    def __init__(self, graph: sync.Graph) -> None:
        self.sync = graph

    def __repr__(self) -> str:
        return f"Async{self.sync!r}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the handle."""
        self.sync.close()

    @property
    def uri(self) -> str:
        """Where the graph lives."""
        return self.sync.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self.sync.branch_name

    # Reading ------------------------------------------------------------------------------------

    async def query(self, source: Any, /, **options: Any) -> Result:
        """As `Graph.query`."""
        return await run(self.sync.query, source, **options)

    async def stream(self, source: Any, /, **options: Any) -> AsyncIterator[pa.RecordBatch]:
        """As `Graph.stream`: batch by batch."""
        found: ResultStream = await run(self.sync.stream, source, **options)
        try:
            while (batch := await run(next, found, None)) is not None:
                yield batch
        finally:
            found.close()

    async def explain(self, source: Any, /, **options: Any) -> Any:
        """As `Graph.explain`."""
        return await run(self.sync.explain, source, **options)

    async def node(self, type_name: str, key: Any, /) -> Node | None:
        """As `Graph.node`."""
        return await run(self.sync.node, type_name, key)

    async def diff(self, a: Any, b: Any = None, /, **options: Any) -> Diff:
        """As `Graph.diff`; all of it is compared before it is given."""
        found = await run(self.sync.diff, a, b, **options)
        await run(lambda: found.found.tables)
        return found

    async def history(self, type_name: str, key: Any, /, **options: Any) -> list[EntityVersion]:
        """As `Graph.history`."""
        return await run(self.sync.history, type_name, key, **options)

    async def log(self, **options: Any) -> list[Commit]:
        """As `Graph.log`."""
        return await run(self.sync.log, **options)

    async def export(self, path: str | PathLike[str], /, **options: Any) -> int:
        """As `Graph.export`, to a file."""
        return await run(self.sync.export, path, **options)

    async def follow(
        self,
        start: str | None = None,
        *,
        cursor: str | None = None,
        poll: float = 2.0,
        **filters: Any,
    ) -> AsyncIterator[ChangeBlock]:
        """As `Graph.follow`, until nobody asks for more; waiting holds no thread."""
        feed = await run(self.sync.changes, start, cursor=cursor, **filters)
        while True:
            while (block := await run(next, feed, None)) is not None:
                yield block
            await asyncio.sleep(poll)
            feed = await run(self.sync.changes, cursor=feed.cursor, **filters)

    # Writing ------------------------------------------------------------------------------------

    async def mutate(self, source: Any, /, **options: Any) -> Receipt:
        """As `Graph.mutate`."""
        return await run(self.sync.mutate, source, **options)

    async def insert(self, type_name: str, /, *records: Any, **options: Any) -> Receipt:
        """As `Graph.insert`."""
        return await run(self.sync.insert, type_name, *records, **options)

    async def upsert(self, type_name: str, /, *records: Any, **options: Any) -> Receipt:
        """As `Graph.upsert`."""
        return await run(self.sync.upsert, type_name, *records, **options)

    async def connect_nodes(
        self, edge_type: str, ends: Iterable[tuple[Any, ...]], /, **options: Any
    ) -> Receipt:
        """As `Graph.connect_nodes`."""
        return await run(self.sync.connect_nodes, edge_type, ends, **options)

    async def update(self, type_name: str, /, **options: Any) -> Receipt:
        """As `Graph.update`."""
        return await run(self.sync.update, type_name, **options)

    async def delete(self, type_name: str, /, **options: Any) -> Receipt:
        """As `Graph.delete`."""
        return await run(self.sync.delete, type_name, **options)

    async def load(self, data: Any, **options: Any) -> Receipt | LoadReport:
        """As `Graph.load`."""
        return await run(self.sync.load, data, **options)

    async def merge(self, source: str | None = None, /, **options: Any) -> MergeResult:
        """As `Graph.merge`."""
        return await run(self.sync.merge, source, **options)

    async def revert(self, commit: Any, /, **options: Any) -> MergeResult:
        """As `Graph.revert`."""
        return await run(self.sync.revert, commit, **options)

    async def cherry_pick(self, commit: Any, /, **options: Any) -> MergeResult:
        """As `Graph.cherry_pick`."""
        return await run(self.sync.cherry_pick, commit, **options)

    async def plan_schema(self, new: Any, /, **options: Any) -> SchemaPlan:
        """As `Graph.plan_schema`."""
        return await run(self.sync.plan_schema, new, **options)

    async def apply_schema(self, new: Any, /, **options: Any) -> SchemaApplied:
        """As `Graph.apply_schema`."""
        return await run(self.sync.apply_schema, new, **options)

    # Other states -------------------------------------------------------------------------------

    async def refresh(self) -> Self:
        """As `Graph.refresh`."""
        await run(self.sync.refresh)
        return self

    async def at(self, point: Any) -> "AsyncGraph":
        """As `Graph.at`."""
        return AsyncGraph(await run(self.sync.at, point))

    async def checkout(self, branch: str) -> "AsyncGraph":
        """As `Graph.checkout`."""
        return AsyncGraph(await run(self.sync.checkout, branch))


async def open(uri: str | PathLike[str], **options: Any) -> AsyncGraph:
    """Open a graph, with the options of `omnigraph.open`."""
    return AsyncGraph(await run(sync.open, uri, **options))
