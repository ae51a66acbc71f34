"""Send a large body in pieces, and move the part that a slow client has not yet read to disk.

The memory of a worker must not depend on how many clients read slowly. The files have no names, so none are left
behind. This module sends no headers.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any

from .wire.body import ClientGoneError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
LARGE_BYTES = 512 << 10
_PIECE_BYTES = 256 << 10
_STALLED_SECONDS = 0.25  # a client that takes longer to accept a piece is slow
# Once the bodies in memory exceed this total, any client that does not accept a piece immediately is slow.
_MEMORY_BYTES = 32 << 20


class BodySpooling:
    """The folder for unsent bodies, the time limit for sending a piece (0 for none), and the memory in use."""

    def __init__(self, directory: str | None, write_seconds: float) -> None:
        self.directory, self.write_seconds = directory, write_seconds
        self.memory_bytes = 0

    @property
    def stalled_seconds(self) -> float:
        """How long a client may take to accept a piece before the rest of its body moves to disk."""
        return _STALLED_SECONDS if self.memory_bytes <= _MEMORY_BYTES else 0.0


class RemainingBody:
    """The part of a body that is not yet sent, in memory or in a file."""

    def __init__(self, body: bytes, spooling: BodySpooling) -> None:
        self.spooling = spooling
        self._body, self._position = body, 0
        self._file: IO[bytes] | None = None
        spooling.memory_bytes += len(body)

    @property
    def is_in_memory(self) -> bool:
        """Whether the rest of the body is in memory."""
        return self._file is None

    def take_piece(self) -> bytes:
        """Return the next bytes, or empty bytes at the end."""
        if self._file is not None:
            return self._file.read(_PIECE_BYTES)
        piece = self._body[self._position : self._position + _PIECE_BYTES]
        self._position += len(piece)
        return piece

    async def move_to_disk(self) -> None:
        """Write the rest to a file in a thread, and release its memory."""
        self._file = await asyncio.to_thread(self._write_file)
        self._release_body()

    def _write_file(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(dir=self.spooling.directory)  # noqa: SIM115 - closed by `close`
        with memoryview(self._body) as view:
            file.write(view[self._position :])
        file.seek(0)
        return file

    def _release_body(self) -> None:
        self.spooling.memory_bytes -= len(self._body)
        self._body = b""

    def close(self) -> None:
        """Release the memory, and remove the file."""
        self._release_body()
        if self._file is not None:
            self._file.close()


async def send_large_body(remaining: RemainingBody, send: Send) -> None:
    """Send a body; raise `ClientGoneError` if the client stops reading."""
    try:
        while piece := await _take_piece(remaining):
            await _send_piece(piece, remaining, send)
        await send({"type": "http.response.body", "body": b""})
    finally:
        remaining.close()


async def _take_piece(remaining: RemainingBody) -> bytes:
    return remaining.take_piece() if remaining.is_in_memory else await asyncio.to_thread(remaining.take_piece)


async def _send_piece(piece: bytes, remaining: RemainingBody, send: Send) -> None:
    """Send a piece. If the client is slow to accept the piece, move the rest of the body to disk."""
    sending = asyncio.ensure_future(send({"type": "http.response.body", "body": piece, "more_body": True}))
    try:
        done, _ = await asyncio.wait([sending], timeout=remaining.spooling.stalled_seconds)
        if not done and remaining.is_in_memory:
            await remaining.move_to_disk()
        await asyncio.wait_for(sending, remaining.spooling.write_seconds or None)
    except TimeoutError:
        raise ClientGoneError from None
    finally:
        sending.cancel()
