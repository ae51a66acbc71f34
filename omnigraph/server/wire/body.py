"""Read request bodies within the limits on size and time, and decode them as the route expects.

A JSON body is kept in memory. A raw body larger than one mebibyte is written to a temporary file, so that many
concurrent uploads do not fill the memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, suppress
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import msgspec

from omnigraph.errors import InputError, RequestTimeout, ResourceLimitExceeded, UnsupportedMediaType

from .body_memory import BodyAccount

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
_SPOOLED_BYTES = 1 << 20
_LARGE_JSON_BYTES = 256 << 10
_DISCARDED_BYTES = 64 << 20  # how much of a rejected body is read before the connection is closed
_DISCARD_SECONDS = 2.0


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


class BodyReader:
    """Reads the body of one request, at most once. `message_time` limits the time between two pieces of the body."""

    def __init__(
        self,
        receive: Receive,
        content_length: int | None,
        limit: int,
        resource: str,
        message_time: AbstractContextManager[None],
    ) -> None:
        self._receive, self._message_time = receive, message_time
        self._limit, self._resource = limit, resource
        self._received_bytes, self._is_complete = 0, False
        if content_length is not None and limit and content_length > limit:
            raise self._limit_error(content_length)

    async def read_bytes(self, account: BodyAccount) -> bytes:
        """Return the whole body; raise `ServerBusy` if request bodies exceed the worker's memory limit."""
        chunks = []
        while not self._is_complete:
            if chunk := await self._read_chunk():
                account.add(len(chunk))
                chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def read_file(self) -> IO[bytes]:
        """Return the body as a file that is rewound to its beginning."""
        spooled: IO[bytes] = SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - the handler of the request closes it
        try:
            while not self._is_complete:
                spooled.write(await self._read_chunk())
        except BaseException:
            spooled.close()
            raise
        spooled.seek(0)
        return spooled

    async def _read_chunk(self) -> bytes:
        """Return the next bytes, which may be empty."""
        message = await self._next_message()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk: bytes = message.get("body", b"")
        self._is_complete = not message.get("more_body", False)
        self._received_bytes += len(chunk)
        if self._limit and self._received_bytes > self._limit:
            raise self._limit_error(self._received_bytes)
        return chunk

    async def _next_message(self) -> Message:
        try:
            with self._message_time:
                return await self._receive()
        except TimeoutError:
            raise RequestTimeout("the request body did not arrive in time") from None

    def _limit_error(self, actual: int) -> ResourceLimitExceeded:
        return ResourceLimitExceeded(resource=self._resource, limit=self._limit, actual=actual)


async def decode_body(data: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """Decode a JSON body, in a thread if it is large, so that other requests do not wait for the event loop."""
    if len(data) <= _LARGE_JSON_BYTES:
        return decode_json(data, decoder)
    return await asyncio.to_thread(decode_json, data, decoder)


def decode_json(data: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """Decode a JSON body into its model; raise `InputError` if it is malformed."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise InputError(f"invalid request body: {error}", reason="invalid body") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError("the request body is not valid JSON", reason="malformed JSON") from None
    except RecursionError:
        raise InputError("the request body is nested too deeply", reason="malformed JSON") from None


def require_plain_encoding(content_encoding: str | None) -> None:
    """Raise `UnsupportedMediaType` for a compressed body, whose decompressed size could not be limited."""
    if content_encoding not in (None, "", "identity"):
        raise UnsupportedMediaType("a request body cannot have a Content-Encoding", hint="send the body uncompressed")


def parse_content_length(text: str | None) -> int | None:
    """Return the declared length of a body, or None if there is none.

    >>> parse_content_length("12"), parse_content_length(None)
    (12, None)
    """
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise InputError("the Content-Length is invalid", reason="malformed header")
    return int(text)


async def discard_body(receive: Receive) -> None:
    """Read and discard the rest of a rejected body, within limits on time and size.

    If a server closes a connection while data is still arriving, the client's system may discard a response that the
    client has not read yet.
    """
    discarded_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while discarded_bytes < _DISCARDED_BYTES:
                message = await receive()
                discarded_bytes += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
