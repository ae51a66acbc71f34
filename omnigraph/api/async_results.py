"""Asynchronous wrappers for the lazy objects that a blocking graph returns.

There are wrappers for streams, feeds, node and edge sets, prepared queries, merge sessions and transactions. Each
wrapper holds the blocking object and reads from it in a thread.
"""

from collections.abc import AsyncIterator, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Never, Self, TypeVar

import pyarrow as pa

from omnigraph.api.async_blobs import AsyncBlob
from omnigraph.api.builders.entity_sets import EdgeSet, EntitySet, HopRange, NodeSet
from omnigraph.api.builders.prepared_queries import Prepared
from omnigraph.api.change_feed.baseline import Baseline
from omnigraph.api.change_feed.feed import ChangeBlock, Feed
from omnigraph.api.merge_sessions import MergeSession
from omnigraph.api.results.lazy_result import LazyResult
from omnigraph.api.results.receipt import Receipt
from omnigraph.api.results.result import ResultStream
from omnigraph.api.results.row import Row
from omnigraph.api.threads import AsyncFacet, in_thread, iterate, run, run_in
from omnigraph.api.transactions import Transaction
from omnigraph.errors import EntityConflict, UsageError
from omnigraph.merging.strategy import ConflictAnswer

_NOT_OPEN = "the transaction is not open: use it inside its `async with` block"
Entities = TypeVar("Entities", bound=EntitySet)


class AsyncResultStream:
    """The batches of a query result. Read them with `async for`. Use `async with` to close the stream, or call `close`.

    The query starts when the first batch is read or the stream is awaited.
    """

    def __init__(self, open_stream: Callable[[], ResultStream]) -> None:
        self._open_stream = open_stream
        self._stream: ResultStream | None = None

    async def open(self) -> ResultStream:
        """Start the query and return the blocking stream."""
        if self._stream is None:
            self._stream = await run(self._open_stream)
        return self._stream

    def __await__(self) -> Generator[Any, Any, Self]:
        yield from self.open().__await__()
        return self

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await run(next, await self.open(), None)
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def iter_rows(self) -> AsyncIterator[Row]:
        """Yield the rows one at a time."""
        async for row in iterate((await self.open()).iter_rows()):
            yield row

    async def close(self) -> None:
        """Close the stream without reading the remaining batches."""
        if self._stream is not None:
            await run(self._stream.close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncFeed(AsyncFacet[Feed]):
    """The blocks of a change feed, for use with `async for`. `cursor` is the position after the last block read."""

    def __aiter__(self) -> AsyncIterator[ChangeBlock]:
        return iterate(self.sync)

    def to_arrow_batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield one Arrow batch per commit."""
        return iterate(self.sync.to_arrow_batches())

    @property
    def cursor(self) -> str:
        """The position to continue from."""
        return self.sync.cursor

    @property
    def caught_up(self) -> bool:
        """Whether the newest commit was reached."""
        return self.sync.caught_up


class AsyncBaseline(AsyncFacet[Baseline]):
    """All entities at one commit. Read them with `async for document in baseline`."""

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return iterate(self.sync)

    def lines(self) -> AsyncIterator[bytes]:
        """Yield the remaining entities as NDJSON lines, then the closing record; see `Baseline.lines`."""
        return iterate(self.sync.lines())

    @property
    def cursor(self) -> str | None:
        """The position from which a feed continues, or None until everything has been read."""
        return self.sync.cursor

    @property
    def commit_id(self) -> str:
        """The id of the baseline's commit."""
        return self.sync.commit_id


class AsyncPrepared(AsyncFacet[Prepared]):
    """A checked query that can be called like an asynchronous function, as in `await friends(name="ann")`."""

    async def __call__(self, /, **params: Any) -> Any:
        """Run the query. A read returns a `Result`, and a mutation returns a `Receipt`."""
        return await run(self.sync, **params)

    explain = in_thread(Prepared.explain)

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.sync.name

    @property
    def params(self) -> Mapping[str, str]:
        """The parameter types, keyed by parameter name."""
        return self.sync.params


class AsyncMergeSession(AsyncFacet[MergeSession]):
    """A merge session. Resolve conflicts one at a time with `resolve`, then publish the merge with `commit`."""

    preview = in_thread(MergeSession.preview)
    commit = in_thread(MergeSession.commit)
    to_arrow = in_thread(MergeSession.to_arrow)

    async def conflicts(self) -> tuple[EntityConflict, ...]:
        """Return all conflicts found so far, whether resolved or not."""
        return await run(lambda: self.sync.conflicts)

    async def open(self) -> tuple[EntityConflict, ...]:
        """Return the unresolved conflicts."""
        return await run(lambda: self.sync.open)

    async def resolve(self, which: int | EntityConflict, choice: ConflictAnswer) -> Self:
        """Resolve one conflict with `ours`, `theirs`, or a dict of property values."""
        await run(self.sync.resolve, which, choice)
        return self

    async def resolve_all(self, choice: ConflictAnswer, *, type: str | None = None, kind: str | None = None) -> Self:
        """Resolve all open conflicts, or only those of one type or kind."""
        await run(self.sync.resolve_all, choice, type=type, kind=kind)
        return self


class AsyncEntitySet(Generic[Entities]):
    """A set of nodes or edges. Building a set reads no data; the methods that read data are coroutines."""

    def __init__(self, build: Callable[[], Entities], execute: Callable[..., Any] = run) -> None:
        self._build = build
        self._execute = execute

    async def _call(self, name: str, /, *args: Any, **options: Any) -> Any:
        return await self._execute(lambda: getattr(self._build(), name)(*args, **options))

    def _then(self, step: Callable[[Entities], Entities]) -> Self:
        return type(self)(lambda: step(self._build()), self._execute)

    async def __aiter__(self) -> AsyncIterator[Row]:
        for row in await self.result():
            yield row

    def filter(self, predicate: str, /, **params: Any) -> Self:
        """Keep the entities that match a predicate, as in `filter("age > $min", min=30)`."""
        return self._then(lambda entities: entities.filter(predicate, **params))

    def where(self, *predicates: Never, **values: Any) -> Self:
        """Keep the entities whose properties have the given values."""
        return self._then(lambda entities: entities.where(*predicates, **values))

    def select(self, *names: str) -> Self:
        """Select the properties to return."""
        return self._then(lambda entities: entities.select(*names))

    def order_by(self, *names: str) -> Self:
        """Sort by the given properties. `-age` sorts in descending order."""
        return self._then(lambda entities: entities.order_by(*names))

    def limit(self, n: int) -> Self:
        """Return at most `n` entities."""
        return self._then(lambda entities: entities.limit(n))

    def offset(self, n: int) -> Self:
        """Skip the first `n` entities."""
        return self._then(lambda entities: entities.offset(n))

    result = in_thread(EntitySet.result)
    to_query = in_thread(EntitySet.to_query)
    count = in_thread(EntitySet.count)
    exists = in_thread(EntitySet.exists)
    ids = in_thread(EntitySet.ids)
    to_arrow = in_thread(LazyResult.to_arrow)
    to_batches = in_thread(LazyResult.to_batches)
    to_reader = in_thread(LazyResult.to_reader)
    to_pandas = in_thread(LazyResult.to_pandas)
    to_polars = in_thread(LazyResult.to_polars)
    to_numpy = in_thread(LazyResult.to_numpy)
    to_dicts = in_thread(LazyResult.to_dicts)
    to_lists = in_thread(LazyResult.to_lists)
    to_records = in_thread(LazyResult.to_records)
    one = in_thread(LazyResult.one)
    one_or_none = in_thread(LazyResult.one_or_none)
    first = in_thread(LazyResult.first)
    scalar = in_thread(LazyResult.scalar)
    scalars = in_thread(LazyResult.scalars)
    write_parquet = in_thread(LazyResult.write_parquet)
    write_csv = in_thread(LazyResult.write_csv)
    write_ndjson = in_thread(LazyResult.write_ndjson)
    write_ipc = in_thread(LazyResult.write_ipc)
    show = in_thread(LazyResult.show)


class AsyncNodeSet(AsyncEntitySet[NodeSet]):
    """Nodes of one type or interface."""

    def out(self, edge: str, *, hops: HopRange = 1) -> Self:
        """Return the nodes at the targets of outgoing edges."""
        return self._then(lambda nodes: nodes.out(edge, hops=hops))

    def in_(self, edge: str, *, hops: HopRange = 1) -> Self:
        """Return the nodes at the sources of incoming edges."""
        return self._then(lambda nodes: nodes.in_(edge, hops=hops))

    def both(self, edge: str, *, hops: HopRange = 1) -> Self:
        """Return the nodes at the other end of edges in either direction."""
        return self._then(lambda nodes: nodes.both(edge, hops=hops))


class AsyncEdgeSet(AsyncEntitySet[EdgeSet]):
    """Edges of one type, with their ids, endpoints and properties."""


class AsyncTransaction:
    """Several writes that become one commit at the end of the `async with` block.

    All calls in a transaction run in the same thread, which is reserved for that transaction.
    """

    def __init__(self, begin: Callable[[], Transaction]) -> None:
        self._begin = begin
        self._executor: ThreadPoolExecutor | None = None
        self._transaction: Transaction | None = None

    async def __aenter__(self) -> Self:
        if self._executor is not None or self._transaction is not None:
            raise UsageError(reason="a transaction object can be used only once")
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="omnigraph-transaction")
        try:
            self._transaction = await self._run(lambda: self._begin().__enter__())
        except BaseException:
            self._release_thread()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self._call("__exit__", kind)
        finally:
            self._release_thread()

    @property
    def receipt(self) -> Receipt | None:
        """The receipt for the commit, or None until the block ends."""
        return None if self._transaction is None else self._transaction.receipt

    mutate = in_thread(Transaction.mutate)
    insert = in_thread(Transaction.insert)
    upsert = in_thread(Transaction.upsert)
    patch = in_thread(Transaction.patch)
    connect_nodes = in_thread(Transaction.connect_nodes)
    update = in_thread(Transaction.update)
    delete = in_thread(Transaction.delete)
    load = in_thread(Transaction.load)
    query = in_thread(Transaction.query)

    async def blob(self, type_name: str, key: Any, property_name: str, /, *, kind: str | None = None) -> AsyncBlob:
        """Open a blob, including one that this transaction has written; see `Transaction.blob`."""
        return AsyncBlob(await self._call("blob", type_name, key, property_name, kind=kind))

    def nodes(self, type_name: str, /) -> AsyncNodeSet:
        """Return the nodes of a given type, including those written in this transaction."""
        return AsyncNodeSet(lambda: self._opened().nodes(type_name), self._run)

    def edges(self, type_name: str, /) -> AsyncEdgeSet:
        """Return the edges of a given type, including those written in this transaction."""
        return AsyncEdgeSet(lambda: self._opened().edges(type_name), self._run)

    def _opened(self) -> Transaction:
        if self._transaction is None or self._executor is None:
            raise UsageError(reason=_NOT_OPEN)
        return self._transaction

    async def _call(self, name: str, /, *args: Any, **options: Any) -> Any:
        call = getattr(self._opened(), name)
        return await self._run(lambda: call(*args, **options))

    async def _run(self, call: Callable[[], Any], /) -> Any:
        executor = self._executor
        if executor is None:
            raise UsageError(reason=_NOT_OPEN)
        return await run_in(executor, call)

    def _release_thread(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
