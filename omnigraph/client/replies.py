"""Read the responses of a server, and detect responses from other programs, such as a proxy or a login page.

Redirects are reported with the address to use instead. They are never followed, because the token must not reach
another host. This module does not depend on routes.
"""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from omnigraph.errors import ServerError, ServerUnreachable, redact_uri
from omnigraph.errors.root import Effect
from omnigraph.records.frozen import record

from .connections import ConnectionPool

CHUNK_BYTES = 1 << 18
_TIME_OUT_HINT = "pass a larger `timeout`, or check that the server is running"
_LOST_WRITE_HINT = (
    "the write may have been applied; repeat it with the same idempotency key, or check whether the data has changed"
)
_FIRST_REDIRECT_STATUS, _FIRST_ERROR_STATUS = 300, 400


@record
class RequestTarget:
    """A request's destination, the expected media type, and the effect to report if the response is lost."""

    server: str
    graph: str
    method: str
    path: str  # below the graph, with the query string
    media_type: str
    effect_if_lost: Effect
    timeout: float | None = None  # the time to wait for an answer, in seconds

    def unreachable(self, error: Exception, *, effect: Effect | None = None) -> ServerUnreachable:
        """Return the error for a connection that could not be opened or was lost."""
        is_answer_late = effect is None and isinstance(error, TimeoutError)  # otherwise, no connection was opened
        if is_answer_late and self.timeout is not None:
            return self._timed_out(self.timeout)
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, http.client.IncompleteRead):
            reason = "the connection was closed before the end of the response"
        return ServerUnreachable(server=self.server, reason=reason.lower(), effect=effect or self.effect_if_lost)

    def _timed_out(self, seconds: float) -> ServerUnreachable:
        effect = self.effect_if_lost
        hint = _LOST_WRITE_HINT if effect == "unknown" else _TIME_OUT_HINT
        message = f"the server at {self.server} did not answer within {seconds:g} seconds"
        return ServerUnreachable(message, server=self.server, reason="timed out", effect=effect, hint=hint)

    def foreign_answer(self, status: int, description: str) -> ServerError:
        """Return the error for a successful response that did not come from an Omnigraph server."""
        return ServerError(
            f"{self.server} sent {description}, which is not a response from an Omnigraph server",
            status=status,
            effect=self.effect_if_lost,
            hint="check the URL; a proxy or another program may be answering in place of the server",
        )


class Reply:
    """A response: its status and headers, and the body, which can be read once."""

    def __init__(
        self,
        response: http.client.HTTPResponse,
        connection: http.client.HTTPConnection,
        pool: ConnectionPool,
        target: RequestTarget,
    ) -> None:
        self.status, self.headers = response.status, response.headers
        self._response, self._connection, self._pool, self._target = response, connection, pool, target
        self._body: bytes | None = None
        self._holds_connection = True

    @property
    def is_error(self) -> bool:
        """Whether the status indicates an error."""
        return self.status >= _FIRST_ERROR_STATUS

    def chunks(self) -> Iterator[bytes]:
        """Yield the body; raise an error if the connection is lost before its end."""
        try:
            while chunk := self._response.read(CHUNK_BYTES):
                yield chunk
            if self._response.length:  # a body that is shorter than its Content-Length ends without an exception
                raise http.client.IncompleteRead(b"", self._response.length)
        except (OSError, http.client.HTTPException) as error:
            raise self._target.unreachable(error) from None
        finally:
            self.close()

    def read(self) -> bytes:
        """Return the whole body. Later calls return the same bytes."""
        if self._body is None:
            self._body = b"".join(self.chunks())
        return self._body

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the body, each with its newline."""
        rest = b""
        for chunk in self.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest

    def json(self) -> Any:
        """Return the body, which must be a JSON object."""
        try:
            document = json.loads(self.read())
        except (ValueError, RecursionError):
            raise self.malformed("malformed JSON") from None
        if not isinstance(document, dict):
            raise self.malformed("JSON that is not an object")
        return document

    def malformed(self, description: str) -> ServerError:
        """Return the error for a body that cannot be read."""
        return self._target.foreign_answer(self.status, description)

    def close(self) -> None:
        """Keep the connection for other requests if the whole body has been read; otherwise, close it."""
        if not self._holds_connection:
            return
        self._holds_connection = False
        is_complete = self._response.isclosed() and not self._response.length
        if is_complete and not self._response.will_close:
            self._pool.put_back(self._connection)
        else:
            self._response.close()  # a response that ends with its connection owns the socket
            self._connection.close()

    def __del__(self) -> None:
        self.close()  # an unread response must not leave an open socket behind

    def verify(self) -> None:
        """Raise `ServerError` for a redirect, and for a body whose media type is not the requested one."""
        if self.status >= _FIRST_REDIRECT_STATUS:
            self.close()
            raise _describe_redirect(self.status, self.headers.get("Location"), self._target)
        media_type = self.headers.get_content_type() if "Content-Type" in self.headers else "a body without a type"
        if media_type != self._target.media_type:
            self.close()
            raise self._target.foreign_answer(self.status, media_type)


def _describe_redirect(status: int, location: str | None, target: RequestTarget) -> ServerError:
    address = _resolve_location(location, target)
    if address is None:
        message, hint = f"{target.server} responded with a redirect that has no valid address", "check the URL"
    elif (graph := _suggest_graph(address, target)) is not None:
        message = f"{target.server} redirects to {redact_uri(address)}"
        hint = f"redirects are not followed, to keep the token safe; use the URL {graph}"
    else:
        message = f"{target.server} redirects to {redact_uri(address)}"
        hint = "use the URL of the Omnigraph server itself; a proxy may require a login or another path"
    return ServerError(message, status=status, effect="none", hint=hint)


def _resolve_location(location: str | None, target: RequestTarget) -> str | None:
    """Return the absolute address of a redirect, or None if it is missing or invalid."""
    if not location:
        return None
    try:
        address = urljoin(target.graph + target.path, location)
        parts = urlsplit(address)
        return address if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


def _suggest_graph(address: str, target: RequestTarget) -> str | None:
    """Return the URL of the graph if the redirect leads to the same path under another URL.

    >>> target = RequestTarget("http://a", "http://a/graphs/g", "GET", "/snapshot?branch=b", "application/json", "none")
    >>> _suggest_graph("https://a/graphs/g/snapshot?branch=b", target)
    'https://a/graphs/g'
    """
    path = target.path.partition("?")[0]
    origin = redact_uri(address)
    return origin[: -len(path)] if path and origin.endswith(path) and origin != target.graph + path else None
