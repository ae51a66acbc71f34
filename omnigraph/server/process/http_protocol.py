"""uvicorn's HTTP protocol, with limits on headers and with JSON error responses for invalid HTTP.

A request's headers must arrive within a time limit and must not exceed a size limit. If they do not, the connection is
closed, so that connections with incomplete headers cannot pile up.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from omnigraph.errors import InputError, RequestTimeout
from omnigraph.server.route_model import REQUEST_ID_HEADER
from omnigraph.server.settings import RequestLimits
from omnigraph.server.wire.errors import encode_error
from omnigraph.values import clock_and_ids

from .response_end import EndingApp

_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_LATE = b"408 Request Timeout"
_MALFORMED = b"400 Bad Request"


class LimitedProtocol(HttpToolsProtocol):
    """A connection whose headers are limited in size and time."""

    limits = RequestLimits()  # set once per process, before the first connection

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._is_inside_request = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the first headers."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the headers are already too large."""
        if not self._is_inside_request:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._is_inside_request or not self._header_bytes:
            return
        if self._header_timer is None:  # most headers arrive at once and need no timer
            self._start_timer()
        if self._header_bytes > self.limits.header_bytes:
            self._refuse_request(_TOO_LARGE, "the headers are too large")

    def on_headers_complete(self) -> None:
        """Begin the request, unless its headers are too large or ambiguous."""
        self._stop_timer()
        header_bytes = sum([len(name) + len(value) for name, value in self.headers], len(self.url))
        if header_bytes > self.limits.header_bytes:
            self._refuse_request(_TOO_LARGE, "the headers are too large")
            return
        names = [name for name, _ in self.headers]
        if not self._has_host(names):
            self._refuse_request(_MALFORMED, "the request must have exactly one Host header")
            return
        if _has_ambiguous_length(names):
            self._refuse_request(_MALFORMED, "the length of the body is ambiguous")
            return
        self._is_inside_request, self._header_bytes = True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass the body on, unless the request was rejected."""
        if self._is_inside_request:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request, and start waiting for the next headers."""
        if self._is_inside_request:
            self._is_inside_request = False
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject a request that is not valid HTTP."""
        self._refuse_request(_MALFORMED, "this is not a valid HTTP request")

    def _has_host(self, names: list[bytes]) -> bool:
        """Return whether the request has one Host header, as HTTP/1.1 requires. An HTTP/1.0 request may omit it."""
        host_count = names.count(b"host")
        return host_count == 1 or (host_count == 0 and self.parser.get_http_version() == "1.0")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start the application for a request, and watch how the response ends."""
        super()._start_asgi_task(cycle, EndingApp(app, cycle))

    def _start_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.limits.header_seconds, self._refuse_late_headers)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _refuse_late_headers(self) -> None:
        self._header_timer = None
        is_idle = self.cycle is None or self.cycle.response_complete
        if not self._is_inside_request and is_idle:
            self._refuse_request(_TOO_LATE, "the request headers did not arrive in time")

    def _refuse_request(self, status: bytes, message: str) -> None:
        """Respond with an error object and close the connection."""
        if self.transport.is_closing():
            return
        error = RequestTimeout(message) if status == _TOO_LATE else InputError(message)
        request_id = clock_and_ids.new_nonce()
        body = encode_error(error, request_id).body
        headers = {
            "content-type": "application/json",
            REQUEST_ID_HEADER: request_id,
            "connection": "close",
            "content-length": len(body),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, lines.encode(), body))
        self.transport.close()


def _has_ambiguous_length(names: list[bytes]) -> bool:
    """Return whether a proxy and this server could disagree about where a request with these headers ends."""
    length_count = names.count(b"content-length")
    return length_count > 1 or (length_count == 1 and b"transfer-encoding" in names)
