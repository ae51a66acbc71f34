"""Bounded thread pools for blocking calls: a lane for reads and a lane for heavy work.

Short reads never wait for loads and exports, because each lane has its own threads. If a queue is full, new requests
fail immediately, so requests cannot pile up. This module sets the stop event that running calls check.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any, TypeVar

from omnigraph.errors import ServerBusy
from omnigraph.values.cancellation import STOP_EVENT

from .settings import LaneSizes

CallResult = TypeVar("CallResult")
ObserveCalls = Callable[[str, int], None]  # receives the name of a lane and its number of calls


class LaneContext:
    """The context in which the calls of one request run, one after another, and the event that stops them."""

    __slots__ = ("_pool_future", "context", "stop_event")

    def __init__(self) -> None:
        self.stop_event = threading.Event()
        self._pool_future: Future[Any] | None = None
        self.context: Context = copy_context()
        self.context.run(STOP_EVENT.set, self.stop_event)

    def submit(self, pool: ThreadPoolExecutor, call: Callable[[], CallResult]) -> "asyncio.Future[CallResult]":
        """Start a call in a thread of a pool."""
        self._pool_future = pool_future = pool.submit(self.context.run, call)
        return asyncio.wrap_future(pool_future)

    async def stop(self, future: "asyncio.Future[Any]") -> None:
        """Signal a call to stop, wait for the call to finish, and discard its result."""
        self.stop_event.set()
        # Cancelling `future` would not wait for a running thread. The future of the pool can be cancelled only while
        # the call is still queued.
        if self._pool_future is not None:
            self._pool_future.cancel()
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()


class Lane:
    """A thread pool with a bounded queue."""

    def __init__(self, name: str, threads: int, queue_length: int, observe_calls: ObserveCalls) -> None:
        self._name, self._observe_calls = name, observe_calls
        self._max_calls = threads + queue_length
        self._call_count = 0
        self._change_call_count(0)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"omnigraph-{name}")

    def start(
        self, call: Callable[[], CallResult], lane_context: LaneContext, *, is_admitted: bool = False
    ) -> "asyncio.Future[CallResult]":
        """Start a call in this lane; raise `ServerBusy` if its queue is full.

        Set `is_admitted` for a request whose response has already started, for example to produce the next chunk of a
        stream. The call is then queued even if the queue is full, so that high load never breaks a running response.
        """
        if self._call_count >= self._max_calls and not is_admitted:
            raise ServerBusy()
        self._change_call_count(1)
        future = lane_context.submit(self._pool, call)
        future.add_done_callback(self._count_finished)
        return future

    async def run(
        self, call: Callable[[], CallResult], lane_context: LaneContext, *, is_admitted: bool = False
    ) -> CallResult:
        """Run a call in this lane, and stop it if the caller is cancelled."""
        future = self.start(call, lane_context, is_admitted=is_admitted)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await lane_context.stop(future)
            raise

    def _count_finished(self, _: "asyncio.Future[Any]") -> None:
        self._change_call_count(-1)

    def _change_call_count(self, difference: int) -> None:
        self._call_count += difference
        self._observe_calls(self._name, self._call_count)

    def close(self) -> None:
        """Reject further calls, without waiting for running calls."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Lanes:
    """The lanes of one worker."""

    def __init__(self, sizes: LaneSizes, observe_calls: ObserveCalls) -> None:
        self.read = Lane("read", sizes.read_threads, sizes.read_queue, observe_calls)
        self.heavy = Lane("heavy", sizes.heavy_threads, sizes.heavy_queue, observe_calls)

    def close(self) -> None:
        """Close both lanes."""
        self.read.close()
        self.heavy.close()
