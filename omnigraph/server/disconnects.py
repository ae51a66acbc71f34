"""Wait for a blocking call while watching whether its client is still there."""

import asyncio
from typing import Any, TypeVar

from .lanes import LaneContext
from .wire.body import ClientGoneError, Receive

CallResult = TypeVar("CallResult")
_WATCH_AFTER_SECONDS = 0.05  # most calls end earlier, and then need no watcher


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_for_read(
    future: "asyncio.Future[CallResult]", lane_context: LaneContext, receive: Receive
) -> CallResult:
    """Return the result of a read; if the client leaves, stop the read and raise `ClientGoneError`."""
    try:
        done, _ = await asyncio.wait([future], timeout=_WATCH_AFTER_SECONDS)
    except asyncio.CancelledError:
        await lane_context.stop(future)
        raise
    if done:
        return future.result()
    watcher = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        return await finish_unless_gone(future, lane_context, watcher)
    finally:
        watcher.cancel()


async def finish_unless_gone(
    future: "asyncio.Future[CallResult]", lane_context: LaneContext, watcher: "asyncio.Future[None]"
) -> CallResult:
    """Return the result of a call; if the watcher sees the client leave first, stop it and raise `ClientGoneError`."""
    try:
        waiting: list[asyncio.Future[Any]] = [future, watcher]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await lane_context.stop(future)
        raise
    if future.done():
        return future.result()
    await lane_context.stop(future)
    raise ClientGoneError
