"""End each response so that no client can mistake a partial body for a complete one or keep a connection open forever.

An HTTP/1.0 client does not support chunked encoding, so a streamed body ends when the connection is closed. If the
connection ends before such a body is complete, the client gets a reset, even if this process has died. This module
never changes a body.
"""

import socket
import struct
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_RESET_AT_CLOSE, _FLUSH_AT_CLOSE = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)


class EndingApp:
    """An ASGI application for a single request, which watches how its response ends."""

    def __init__(self, app: Any, cycle: RequestResponseCycle) -> None:
        self._app, self._cycle = app, cycle
        self._ends_with_connection = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the request. If the client has stopped reading, reset the connection instead of flushing it."""
        is_old = scope["http_version"] == "1.0"
        try:
            await self._app(scope, receive, self._send_unframed if is_old else send)
        except BaseException:
            if self._ends_with_connection:
                self._reset_connection()
            raise
        if self._cycle.response_started:
            self._reset_connection()

    async def _send_unframed(self, message: Any) -> None:
        """Send a message without chunked encoding."""
        cycle = self._cycle
        if message["type"] == "http.response.start":
            self._ends_with_connection = not _has_known_length(message, cycle.scope)
            if self._ends_with_connection:
                cycle.chunked_encoding = False
                cycle.transport.set_write_buffer_limits(0)  # `drain` then waits until everything has been written
                self._set_linger(_RESET_AT_CLOSE)
        elif self._ends_with_connection:
            cycle.expected_content_length = len(message.get("body", b""))  # uvicorn checks it for each message
            if not message.get("more_body", False):
                await cycle.flow.drain()
                self._set_linger(_FLUSH_AT_CLOSE)
        await cycle.send(message)

    def _reset_connection(self) -> None:
        """Close an unfinished connection without waiting for the client."""
        cycle = self._cycle
        if not cycle.response_complete and not cycle.disconnected:
            self._set_linger(_RESET_AT_CLOSE)
            cycle.transport.abort()

    def _set_linger(self, value: bytes) -> None:
        connection = self._cycle.transport.get_extra_info("socket")
        if connection is not None and not self._cycle.transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, value)


def _has_known_length(start: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    """Return whether the headers tell a client where the body ends."""
    has_body = scope["method"] != "HEAD" and start["status"] not in (204, 304)
    return not has_body or any(name.lower() == b"content-length" for name, _ in start.get("headers", ()))
