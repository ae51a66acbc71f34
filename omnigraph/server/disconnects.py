"""Wait for a blocking call while watching for the client to disconnect."""

import asyncio
from typing import Any, TypeVar

from .lanes import LaneContext, LaneFuture
from .wire.body import ClientGoneError, Receive
from .wire.shared_timer import SharedTimer

CallResult = TypeVar("CallResult")
_WATCH_AFTER_SECONDS = 0.05  # most calls end before this time and need no watcher


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class DisconnectWatch:
    """Stops a read when its client disconnects. Watching starts only if the read takes a while."""

    def __init__(self, receive: Receive, lane_context: LaneContext, timer: SharedTimer) -> None:
        self._receive, self._lane_context = receive, lane_context
        self._watcher: asyncio.Task[None] | None = None
        self._timer = timer
        self._delay = timer.start(_WATCH_AFTER_SECONDS, self._begin_watch)

    def _begin_watch(self) -> None:
        self._watcher = asyncio.ensure_future(self._stop_when_gone())

    async def _stop_when_gone(self) -> None:
        await wait_for_disconnect(self._receive)
        self._lane_context.stop_event.set()

    def end(self) -> None:
        """Stop watching the client."""
        self._timer.end(self._delay)
        if self._watcher is not None:
            self._watcher.cancel()


async def wait_for_read(future: LaneFuture[CallResult], watch: DisconnectWatch) -> CallResult:
    """Return the result of a read. If the client disconnects, stop the read, which raises `Cancelled`."""
    try:
        return await future
    finally:
        watch.end()


async def finish_unless_gone(future: LaneFuture[CallResult], watcher: "asyncio.Future[None]") -> CallResult:
    """Return the result of a call. If the client disconnects first, stop the call and raise `ClientGoneError`."""
    waiting: list[asyncio.Future[Any]] = [future, watcher]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await future.stop()
        raise
    if future.done():
        return future.result()
    await future.stop()
    raise ClientGoneError
