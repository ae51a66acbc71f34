"""Send a handler's response: a complete body, a stream from a thread, or a stream of events.

If a stream fails after its headers have been sent, the connection is closed without the final chunk, so that a client
never mistakes a partial response for a complete one. If a client stops reading, the server closes the connection after
a configured time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any

from omnigraph.api.byte_blocks import join_small_pieces

from .disconnects import finish_unless_gone, wait_for_disconnect
from .lanes import Lane, LaneContext, LaneFuture
from .large_bodies import LARGE_BYTES, BodySpooling, RemainingBody, send_large_body
from .wire.answer import Answer, EventAnswer, StreamAnswer
from .wire.body import ClientGoneError, Receive, discard_body

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_JOINED_BYTES = 64 << 10  # smaller chunks are joined
_PIECE_BYTES = 256 << 10  # a client has the whole time limit for each piece, however large the chunk is


class BrokenStreamError(Exception):
    """A stream failed after its headers were sent, so the connection must be closed."""


def encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers as ASGI expects them."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


async def send_answer(answer: Answer, send: Send, headers: Mapping[str, str], spooling: BodySpooling) -> None:
    """Send a response with its whole body. A large body is removed from the answer to release its memory."""
    has_body = answer.status not in (204, 304)
    own_headers = {"content-type": answer.media_type, "content-length": str(len(answer.body))} if has_body else {}
    # A handler may replace any header, such as the length in a response to HEAD, so names are compared in lower case.
    handler_headers = {name.lower(): value for name, value in answer.headers.items()}
    all_headers = encode_headers({**own_headers, **headers, **handler_headers})
    await send({"type": "http.response.start", "status": answer.status, "headers": all_headers})
    if has_body and len(answer.body) > LARGE_BYTES:
        remaining, answer.body = RemainingBody(answer.body, spooling), b""
        await send_large_body(remaining, send)
        return
    await send({"type": "http.response.body", "body": answer.body if has_body else b""})


async def send_rejection(answer: Answer, send: Send, receive: Receive, headers: Mapping[str, str]) -> None:
    """Send a response to a request whose body was not read completely, and close the connection afterward."""
    all_headers = {"content-type": answer.media_type, "content-length": str(len(answer.body)), **headers}
    start = {"type": "http.response.start", "status": answer.status}
    await send({**start, "headers": encode_headers({**all_headers, "connection": "close"})})
    await send({"type": "http.response.body", "body": answer.body, "more_body": True})
    await discard_body(receive)
    await send({"type": "http.response.body", "body": b""})


class ResponseStream:
    """Sends chunks to a client that may read slowly or disconnect."""

    def __init__(self, receive: Receive, send: Send, write_seconds: float) -> None:
        self._send, self._write_seconds = send, write_seconds or None
        self._watcher = asyncio.ensure_future(wait_for_disconnect(receive))

    @property
    def is_client_gone(self) -> bool:
        """Whether the client has closed the connection."""
        return self._watcher.done()

    async def wait_for_chunk(self, future: LaneFuture[bytes | None]) -> bytes | None:
        """Return a chunk from a thread; raise `ClientGoneError` if the client disconnects first."""
        return await finish_unless_gone(future, self._watcher)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status and the headers."""
        await self._send({"type": "http.response.start", "status": status, "headers": encode_headers(headers)})

    async def write(self, chunk: bytes, *, is_last: bool = False) -> None:
        """Send a chunk in pieces; raise `ClientGoneError` if the client has disconnected or stopped reading."""
        for start in range(0, max(len(chunk), 1), _PIECE_BYTES):
            piece = chunk[start : start + _PIECE_BYTES]
            await self._write_piece(piece, is_last=is_last and start + _PIECE_BYTES >= len(chunk))

    async def _write_piece(self, piece: bytes, *, is_last: bool) -> None:
        message = {"type": "http.response.body", "body": piece, "more_body": not is_last}
        try:
            async with asyncio.timeout(self._write_seconds):  # unlike `wait_for`, needs no task
                await self._send(message)
        except TimeoutError:
            raise ClientGoneError from None
        if self.is_client_gone and not is_last:
            raise ClientGoneError

    def close(self) -> None:
        """Stop watching the client."""
        self._watcher.cancel()


async def send_stream(
    answer: StreamAnswer, lane: Lane, lane_context: LaneContext, stream: ResponseStream, headers: Mapping[str, str]
) -> None:
    """Send the chunks of an iterator, each produced by a thread of a lane.

    The first chunk is produced before the headers are sent, so that an immediate error can be reported with its own
    status.
    """
    next_chunk: Callable[[], bytes | None] = partial(next, join_small_pieces(answer.chunks, _JOINED_BYTES), None)
    has_started = False
    try:
        while True:
            future = lane.start(next_chunk, lane_context, is_admitted=True)
            chunk = await stream.wait_for_chunk(future)
            if chunk is None:
                break
            if not has_started:
                await stream.start(answer.status, {"content-type": answer.media_type, **headers, **answer.headers})
                has_started = True
            await stream.write(chunk)
        if not has_started:
            await stream.start(answer.status, {"content-type": answer.media_type, **headers, **answer.headers})
        await stream.write(b"", is_last=True)
    except (ClientGoneError, asyncio.CancelledError):
        raise
    except Exception as error:
        if has_started:
            raise BrokenStreamError from error
        raise
    finally:
        stream.close()
        await asyncio.shield(_close_chunks(answer.chunks, lane_context))


async def _close_chunks(chunks: Iterator[bytes], lane_context: LaneContext) -> None:
    """Close an iterator in a thread, because closing it may release leases in the store."""
    close = getattr(chunks, "close", None)
    if close is not None:
        await asyncio.get_running_loop().run_in_executor(None, lane_context.context.run, close)


async def send_events(answer: EventAnswer, stream: ResponseStream, headers: Mapping[str, str]) -> None:
    """Send the chunks of an asynchronous iterator as they arrive, until the client disconnects."""
    await stream.start(200, {"content-type": answer.media_type, **headers, **answer.headers})
    try:
        async for chunk in answer.chunks:
            await stream.write(chunk)
        await stream.write(b"", is_last=True)
    except (ClientGoneError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise BrokenStreamError from error
    finally:
        stream.close()
        close = getattr(answer.chunks, "aclose", None)
        if close is not None:
            await close()
