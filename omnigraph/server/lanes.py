"""Bounded thread pools for blocking calls: a lane for reads and a lane for heavy work.

Short reads never wait behind loads and exports, because each lane has its own threads. A full queue is reported at
once instead of letting requests pile up. This module sets the stop event that running calls watch.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any, TypeVar

from omnigraph.api.write_options import STOP_EVENT
from omnigraph.errors import ServerBusy

from .settings import LaneSizes

CallResult = TypeVar("CallResult")


class LaneCall:
    """A call in a lane: its future result, and the event that asks it to stop."""

    __slots__ = ("future", "stop_event")

    def __init__(self, future: "asyncio.Future[Any]", stop_event: threading.Event) -> None:
        self.future = future
        self.stop_event = stop_event

    async def wait_until_stopped(self) -> None:
        """Ask the call to stop, and wait until it has ended; its result is dropped."""
        self.stop_event.set()
        if not self.future.cancel():
            await asyncio.wait([self.future])
        if not self.future.cancelled():
            self.future.exception()


class Lane:
    """A thread pool with a bounded queue."""

    def __init__(self, name: str, threads: int, queue_length: int) -> None:
        self.name = name
        self.max_calls = threads + queue_length
        self.call_count = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"omnigraph-{name}")

    def start(self, call: Callable[[], CallResult], context: Context | None = None) -> LaneCall:
        """Start a call in this lane; raise `ServerBusy` if its queue is full."""
        if self.call_count >= self.max_calls:
            raise ServerBusy()
        stop_event = threading.Event()
        call_context = context if context is not None else copy_context()
        call_context.run(STOP_EVENT.set, stop_event)
        self.call_count += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, call_context.run, call)
        future.add_done_callback(self._finish)
        return LaneCall(future, stop_event)

    async def run(self, call: Callable[[], CallResult], context: Context | None = None) -> CallResult:
        """Run a call in this lane; if the caller is cancelled, the call is asked to stop."""
        lane_call = self.start(call, context)
        try:
            result: CallResult = await asyncio.shield(lane_call.future)
        except asyncio.CancelledError:
            await lane_call.wait_until_stopped()
            raise
        return result

    def _finish(self, _: "asyncio.Future[Any]") -> None:
        self.call_count -= 1

    def close(self) -> None:
        """Refuse further calls, without waiting for the running ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Lanes:
    """The lanes of one worker."""

    def __init__(self, sizes: LaneSizes) -> None:
        self.read = Lane("read", sizes.read_threads, sizes.read_queue)
        self.heavy = Lane("heavy", sizes.heavy_threads, sizes.heavy_queue)

    def close(self) -> None:
        """Close both lanes."""
        self.read.close()
        self.heavy.close()
