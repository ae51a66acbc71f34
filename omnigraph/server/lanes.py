"""Bounded thread pools for blocking calls: a lane for reads and a lane for heavy work.

Short reads never wait for loads and exports, because each lane has its own threads. If a queue is full, new requests
fail immediately, so requests cannot pile up. This module sets the stop event that running calls check.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, TypeVar

from omnigraph.errors import ServerBusy
from omnigraph.values.cancellation import STOP_EVENT

from .settings import LaneSizes

CallResult = TypeVar("CallResult")
ObserveCalls = Callable[[str, int], None]  # receives the name of a lane and its number of calls


class LaneContext:
    """The context in which the calls of one request run, one after another, and the event that stops them."""

    __slots__ = ("context", "stop_event")

    def __init__(self) -> None:
        self.stop_event = threading.Event()
        self.context: Context = copy_context()
        self.context.run(STOP_EVENT.set, self.stop_event)


class LaneFuture(asyncio.Future[CallResult]):
    """The result of a call in a thread. `cancel` signals the call to stop, but the wait goes on until the call ends.

    A task that awaits this future is therefore canceled only after its call has ended. The wait ends early in two
    cases: if the call is still queued, and if it is canceled a second time.
    """

    def __init__(self, lane_context: LaneContext, count_finished: Callable[[], None]) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._lane_context, self._count_finished = lane_context, count_finished
        self._pool_future: Future[None] | None = None
        self._is_stopping = False

    def start(self, pool: ThreadPoolExecutor, call: Callable[[], CallResult]) -> None:
        """Start the call in a thread of a pool."""
        self._pool_future = pool.submit(self._run, call)

    def _run(self, call: Callable[[], CallResult]) -> None:
        try:
            result = self._lane_context.context.run(call)
        except StopIteration as error:  # a future accepts any error except this one
            stop_error = RuntimeError("the call raised StopIteration")
            stop_error.__cause__ = error
            self._report(self.set_exception, stop_error)
        except BaseException as error:
            self._report(self.set_exception, error)
        else:
            self._report(self.set_result, result)

    def _report(self, set_outcome: Callable[[Any], None], outcome: Any) -> None:
        with suppress(RuntimeError):  # raised if the event loop is closed, and nobody waits any longer
            self.get_loop().call_soon_threadsafe(self._finish, set_outcome, outcome)

    def _finish(self, set_outcome: Callable[[Any], None], outcome: Any) -> None:
        try:
            if not self.done():
                set_outcome(outcome)
        finally:
            self._count_finished()

    def cancel(self, msg: Any | None = None) -> bool:
        """Signal the call to stop, and return whether this ends the wait."""
        if self.done():
            return False
        self._lane_context.stop_event.set()
        if self._pool_future is not None and self._pool_future.cancel():
            self._count_finished()
            return super().cancel(msg)
        is_repeated, self._is_stopping = self._is_stopping, True
        return is_repeated and super().cancel(msg)

    async def stop(self) -> None:
        """Signal the call to stop, wait for the call to end, and discard its result."""
        self.cancel()
        await asyncio.wait([self])
        if not self.cancelled():
            self.exception()


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
    ) -> LaneFuture[CallResult]:
        """Start a call in this lane; raise `ServerBusy` if its queue is full.

        Set `is_admitted` for a request whose response has already started, for example to produce the next chunk of a
        stream. The call is then queued even if the queue is full, so that high load never breaks a running response.
        """
        if self._call_count >= self._max_calls and not is_admitted:
            raise ServerBusy()
        self._change_call_count(1)
        future: LaneFuture[CallResult] = LaneFuture(lane_context, self._count_finished)
        future.start(self._pool, call)
        return future

    async def run(
        self, call: Callable[[], CallResult], lane_context: LaneContext, *, is_admitted: bool = False
    ) -> CallResult:
        """Run a call in this lane, and stop it if the caller is canceled."""
        return await self.start(call, lane_context, is_admitted=is_admitted)

    def _count_finished(self) -> None:
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
