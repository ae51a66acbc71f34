"""Wait for a blocking call while watching whether its client is still there."""

import asyncio
from typing import Any

from .lanes import LaneCall
from .wire.body import ClientGoneError, Receive

_WATCH_AFTER_SECONDS = 0.05  # most calls end earlier, and then need no watcher


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_for_read(lane_call: LaneCall, receive: Receive) -> Any:
    """Return the result of a read; if the client leaves, stop the read and raise `ClientGoneError`."""
    future = lane_call.future
    try:
        done, _ = await asyncio.wait([future], timeout=_WATCH_AFTER_SECONDS)
        return future.result() if done else await _watch_client(lane_call, receive)
    except asyncio.CancelledError:
        await lane_call.wait_until_stopped()
        raise


async def _watch_client(lane_call: LaneCall, receive: Receive) -> Any:
    watcher = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        await asyncio.wait([lane_call.future, watcher], return_when=asyncio.FIRST_COMPLETED)
        if lane_call.future.done():
            return lane_call.future.result()
        await lane_call.wait_until_stopped()
        raise ClientGoneError
    finally:
        watcher.cancel()
