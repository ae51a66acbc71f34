"""Send requests to one graph on a server, and read the responses.

A request that is safe to repeat is sent again after a transient failure; `retries` decides. Errors from the server are
raised as the exceptions that an embedded graph raises. This module knows no routes.
"""

import http.client
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypedDict, Unpack
from urllib.parse import quote, urlencode

from omnigraph.errors import OmnigraphError, ServerUnreachable

from .connections import ConnectionPool, TlsOptions
from .failures import decode_error
from .locations import GraphAddress, ServerAddress
from .retries import RetryPolicy, is_worth_repeating, read_retry_after

JSON = "application/json"
NDJSON = "application/x-ndjson"
CHUNK_BYTES = 1 << 18
_CONNECT_SECONDS = 10.0
_FIRST_ERROR_STATUS = 400
_UNCHANGING_METHODS = ("GET", "HEAD")


class RequestOptions(TypedDict, total=False):
    """The parts of a request besides its path and parameters. `condition` is the required head of the branch."""

    json_body: Mapping[str, Any] | None
    body: bytes | Iterable[bytes] | None
    headers: Mapping[str, str]
    condition: str | None
    is_read: bool


class Exchange:
    """Requests to one graph, or to the server itself if the address names no graph."""

    def __init__(
        self,
        address: GraphAddress | ServerAddress,
        *,
        token: str | None = None,
        tls: TlsOptions | None = None,
        policy: RetryPolicy | None = None,
        timeout: float | None = None,
    ) -> None:
        self.server = address.server if isinstance(address, GraphAddress) else address
        self._path = self.server.prefix + (address.path if isinstance(address, GraphAddress) else "")
        self._pool = ConnectionPool(self.server, tls or TlsOptions(), _CONNECT_SECONDS)
        self._token, self._policy, self._timeout = token, policy or RetryPolicy(), timeout

    def get(self, *segments: str, **parameters: Any) -> Any:
        """Return the JSON document at a path; parameters that are None are omitted."""
        return self.call("GET", segments, parameters)

    def get_from_server(self, *segments: str) -> Any:
        """Return a JSON document that belongs to the server instead of a graph."""
        path = "/".join([self.server.prefix, *segments])
        reply = self._send("GET", path, None, {"Accept": JSON, **self._authorization()}, is_repeatable=True)
        return json.loads(b"".join(reply.chunks()))

    def post(self, *segments: str, body: Mapping[str, Any], condition: str | None = None, **options: Any) -> Any:
        """Send a JSON body and return the JSON response. `condition` is the required head of the branch."""
        return self.call("POST", segments, {}, json_body=body, condition=condition, **options)

    def call(self, method: str, segments: Iterable[str], parameters: Mapping[str, Any], **options: Any) -> Any:
        """Send a request and return the JSON response."""
        return json.loads(b"".join(self.stream(method, segments, parameters, **options).chunks()))

    def stream(
        self, method: str, segments: Iterable[str], parameters: Mapping[str, Any], **options: Unpack[RequestOptions]
    ) -> "Reply":
        """Send a request and return the response, whose body has not been read yet.

        A streamed `body` can be read only once, so such a request is never sent twice. A `body` of bytes can.
        """
        path = "/".join([self._path, *(quote(segment, safe="") for segment in segments)])
        all_headers = {"Accept": JSON, **self._authorization(), **options.get("headers", {})}
        body, json_body, condition = options.get("body"), options.get("json_body"), options.get("condition")
        if condition is not None:
            path += "/if-graph-commit"
            all_headers["Omnigraph-If-Graph-Commit"] = condition
        query = urlencode(_present_values(parameters), doseq=True)
        content: Any = body
        if json_body is not None:
            content = json.dumps(_without_none(json_body), ensure_ascii=False).encode("utf-8", "surrogatepass")
            all_headers["Content-Type"] = JSON
        can_resend = body is None or isinstance(body, bytes)
        is_safe = options.get("is_read", False) or method in _UNCHANGING_METHODS or "Idempotency-Key" in all_headers
        is_repeatable = can_resend and is_safe
        return self._send(method, f"{path}?{query}" if query else path, content, all_headers, is_repeatable)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _authorization(self) -> dict[str, str]:
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def _send(self, method: str, path: str, content: Any, headers: Mapping[str, str], is_repeatable: bool) -> "Reply":
        attempt = 0
        while True:
            retry_after = None
            try:
                response, connection = self._attempt(method, path, content, headers, is_repeatable)
                if response.status < _FIRST_ERROR_STATUS:
                    return Reply(response, connection, self)
                retry_after = read_retry_after(response.headers.get("Retry-After"))
                error = self._read_error(response, connection)
                may_repeat = is_worth_repeating(error, response.status, is_repeatable=is_repeatable)
            except ServerUnreachable as lost:
                error, may_repeat = lost, is_repeatable or lost.effect == "none"
            is_streamed = content is not None and not isinstance(content, bytes)
            if is_streamed or not may_repeat or not self._policy.may_retry(attempt):
                raise error
            time.sleep(self._policy.delay_before(attempt, retry_after))
            attempt += 1

    def _attempt(
        self, method: str, path: str, content: Any, headers: Mapping[str, str], is_repeatable: bool
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        try:
            connection = self._pool.take(self._timeout)
        except OSError as error:
            raise self.unreachable(error, effect="none") from None
        effect = "none" if is_repeatable and method in _UNCHANGING_METHODS else "unknown"
        try:
            _write_request(connection, method, path, content, headers)
            return connection.getresponse(), connection
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.unreachable(error, effect=effect) from None
        except BaseException:  # an interrupted request must not leave half a body on a connection
            connection.close()
            raise

    def _read_error(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> OmnigraphError:
        request_id = response.headers.get("Omnigraph-Request-Id")
        body = b"".join(Reply(response, connection, self).chunks())
        return decode_error(response.status, body, request_id=request_id)

    def unreachable(self, error: Exception, *, effect: Any) -> ServerUnreachable:
        """Return the error for a connection that could not be opened or was lost."""
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ServerUnreachable(server=str(self.server), reason=reason.lower(), effect=effect)

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection whose response has been read."""
        self._pool.put_back(connection)


class Reply:
    """A response: its status, its headers, and its body, which can be read only once."""

    def __init__(
        self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection, exchange: Exchange
    ) -> None:
        self.status, self.headers = response.status, response.headers
        self._response, self._connection, self._exchange = response, connection, exchange

    def chunks(self) -> Iterator[bytes]:
        """Yield the body; raise an error if the connection is lost before its end."""
        is_complete = False
        try:
            while chunk := self._response.read(CHUNK_BYTES):
                yield chunk
            is_complete = True
        except (OSError, http.client.HTTPException) as error:
            raise self._exchange.unreachable(error, effect="unknown") from None
        finally:
            if is_complete and not self._response.will_close:
                self._exchange.give_back(self._connection)
            else:
                self._connection.close()

    def close(self) -> None:
        """Discard the rest of the body, with the connection."""
        if not self._response.isclosed():
            self._connection.close()

    def __del__(self) -> None:
        self.close()  # an answer that nobody read must not leave an open socket behind


def _write_request(
    connection: http.client.HTTPConnection, method: str, path: str, content: Any, headers: Mapping[str, str]
) -> None:
    """Send a request. The server may respond before it has read the body, so a broken pipe is not yet a failure."""
    is_stream = content is not None and not isinstance(content, bytes)
    try:
        connection.request(
            method, path, content, dict(headers), encode_chunked=is_stream and "Content-Length" not in headers
        )
    except (BrokenPipeError, ConnectionResetError):
        if not is_stream:
            raise


def _present_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have a value; booleans are spelled as JSON spells them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None and value is not False
    }


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
