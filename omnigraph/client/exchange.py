"""Send requests to one graph on a server, and repeat safe requests after a transient failure.

`retries` decides which requests are repeated, and `replies` reads the responses. Server errors are raised as the same
exceptions that an embedded graph raises. This module does not depend on any routes.
"""

import http.client
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote, urlencode

from omnigraph.errors import ConfigError, InputError, OmnigraphError, ServerUnreachable
from omnigraph.records.frozen import record

from .connections import ConnectionPool, TlsOptions
from .engine_warnings import WARNINGS_HEADER, issue_warnings
from .failures import decode_error
from .locations import GraphUrl, ServerAddress
from .replies import Reply, RequestTarget
from .retries import RetryPolicy, is_worth_repeating, read_retry_after

if TYPE_CHECKING:
    from omnigraph.maintenance.health_thresholds import LimitWarning

JSON = "application/json"
NDJSON = "application/x-ndjson"
_CONNECT_SECONDS = 10.0
_UNCHANGING_METHODS = ("GET", "HEAD")


class RequestOptions(TypedDict, total=False):
    """The parts of a request besides its path and parameters. `condition` is the required head of the branch.

    If the body is a function, the request can be repeated, because every call returns all of the bytes. A write without
    an idempotency key can be repeated only if `is_repeatable` is true.
    """

    json_body: Mapping[str, Any] | None
    body: bytes | Iterable[bytes] | Callable[[], Iterable[bytes]] | None
    headers: Mapping[str, str]
    condition: str | None
    is_read: bool
    is_repeatable: bool


@record
class _Request:
    """A request that is ready to be sent. A streamed body can be sent only once."""

    target: RequestTarget
    path: str
    content: Any
    headers: Mapping[str, str]
    is_harmless: bool = False  # whether a second run has no further effect

    @property
    def is_streamed(self) -> bool:
        return self.content is not None and not isinstance(self.content, bytes) and not callable(self.content)

    @property
    def is_repeatable(self) -> bool:
        is_safe = self.target.effect_if_lost == "none" or "Idempotency-Key" in self.headers
        return (is_safe or self.is_harmless) and not self.is_streamed


class Exchange:
    """A client for one graph, or for the server itself if the address does not identify a graph."""

    def __init__(
        self,
        address: GraphUrl | ServerAddress,
        *,
        token: str | None = None,
        tls: TlsOptions | None = None,
        policy: RetryPolicy | None = None,
        timeout: float | None = None,
    ) -> None:
        self._authorization = _write_authorization(token)
        self.server = address.server if isinstance(address, GraphUrl) else address
        self._address, self._graph_path = str(address), address.path if isinstance(address, GraphUrl) else ""
        self._pool = ConnectionPool(self.server, tls or TlsOptions(), _CONNECT_SECONDS)
        self._policy, self._timeout = policy or RetryPolicy(), timeout
        self.limit_warnings: list[LimitWarning] = []

    def get(self, *segments: str, **parameters: Any) -> Any:
        """Return the JSON document at a path; parameters that are None or False are omitted."""
        return self.call("GET", segments, parameters)

    def get_from_server(self, *segments: str) -> Any:
        """Return a JSON document about the server rather than about a graph."""
        path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
        target = RequestTarget(str(self.server), str(self.server), "GET", path, JSON, "none", self._timeout)
        headers = {"Accept": JSON, **self._authorization}
        return self._send(_Request(target, self.server.prefix + path, None, headers), reads_body=True).json()

    def post(self, *segments: str, body: Mapping[str, Any], condition: str | None = None, **options: Any) -> Any:
        """Send a JSON body and return the JSON response. `condition` is the required head of the branch."""
        return self.call("POST", segments, {}, json_body=body, condition=condition, **options)

    def call(self, method: str, segments: Iterable[str], parameters: Mapping[str, Any], **options: Any) -> Any:
        """Send a request and return the JSON response."""
        return self.fetch(method, segments, parameters, **options).json()

    def fetch(
        self, method: str, segments: Iterable[str], parameters: Mapping[str, Any], **options: Unpack[RequestOptions]
    ) -> Reply:
        """Send a request and return the response with its whole body; repeat the request if this body is incomplete."""
        return self._send(self._build_request(method, segments, parameters, options), reads_body=True)

    def stream(
        self, method: str, segments: Iterable[str], parameters: Mapping[str, Any], **options: Unpack[RequestOptions]
    ) -> Reply:
        """Send a request and return the response, whose body has not been read yet."""
        return self._send(self._build_request(method, segments, parameters, options), reads_body=False)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _build_request(
        self, method: str, segments: Iterable[str], parameters: Mapping[str, Any], options: RequestOptions
    ) -> _Request:
        path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
        headers = {"Accept": JSON, **self._authorization, **options.get("headers", {})}
        content: Any = options.get("body")
        json_body, condition = options.get("json_body"), options.get("condition")
        if condition is not None:
            path += "/if-graph-commit"
            headers["Omnigraph-If-Graph-Commit"] = condition
        if json_body is not None:
            content = json.dumps(_without_none(json_body), ensure_ascii=False).encode("utf-8", "surrogatepass")
            headers["Content-Type"] = JSON
        query = urlencode(_present_values(parameters), doseq=True)
        path = f"{path}?{query}" if query else path
        is_read = options.get("is_read", False) or method in _UNCHANGING_METHODS
        effect: Any = "none" if is_read else "unknown"
        target = RequestTarget(str(self.server), self._address, method, path, headers["Accept"], effect, self._timeout)
        _check_headers(headers)
        is_harmless = options.get("is_repeatable", False)
        return _Request(target, self.server.prefix + self._graph_path + path, content, headers, is_harmless)

    def _send(self, request: _Request, *, reads_body: bool) -> Reply:
        attempt = 0
        while True:
            retry_after = None
            try:
                reply = self._attempt(request)
                self._note_warnings(reply)
                if not reply.is_error:
                    reply.verify()
                    if reads_body:
                        reply.read()
                    return reply
                retry_after = read_retry_after(reply.headers.get("Retry-After"))
                error = _read_error(reply, request, retry_after)
                may_repeat = is_worth_repeating(error, reply.status, is_repeatable=request.is_repeatable)
            except ServerUnreachable as lost:
                error, may_repeat = lost, request.is_repeatable or lost.effect == "none"
            may_repeat &= self._policy.repeats_writes or request.target.effect_if_lost == "none"
            if request.is_streamed or not may_repeat or not self._policy.may_retry(attempt, retry_after):
                raise error
            time.sleep(self._policy.delay_before(attempt, retry_after))
            attempt += 1

    def _note_warnings(self, reply: Reply) -> None:
        """Issue the warnings from the server, and keep the first one about each exceeded limit."""
        for warning in issue_warnings(reply.headers.get(WARNINGS_HEADER, "[]"), self._graph_path, self._address):
            if all((known.what, known.type_key) != (warning.what, warning.type_key) for known in self.limit_warnings):
                self.limit_warnings.append(warning)

    def _attempt(self, request: _Request) -> Reply:
        target = request.target
        try:
            connection = self._pool.take(self._timeout)
        except OSError as error:
            raise target.unreachable(error, effect="none") from None
        try:
            _write_request(connection, request)
            return Reply(connection.getresponse(), connection, self._pool, target)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise target.unreachable(error) from None
        except BaseException:  # an interrupted request must not leave half a body on a connection
            connection.close()
            raise


def _read_error(reply: Reply, request: _Request, retry_after: float | None) -> OmnigraphError:
    try:
        body = reply.read()
    except ServerUnreachable:  # the status alone is sufficient
        body = b""
    return decode_error(
        reply.status,
        body,
        request_id=reply.headers.get("Omnigraph-Request-Id"),
        effect_if_foreign=request.target.effect_if_lost,
        retry_after=retry_after,
    )


def _write_request(connection: http.client.HTTPConnection, request: _Request) -> None:
    """Send a request. Ignore a broken pipe while a body is sent: the server may respond before reading all of it."""
    content = request.content() if callable(request.content) else request.content
    is_chunked = not isinstance(content, bytes | None) and "Content-Length" not in request.headers
    try:
        connection.request(
            request.target.method, request.path, content, dict(request.headers), encode_chunked=is_chunked
        )
    except (BrokenPipeError, ConnectionResetError):
        if request.content is None:
            raise


def _write_authorization(token: str | None) -> dict[str, str]:
    """Return the header with the token, stripped of whitespace such as the newline at the end of a token file."""
    token = (token or "").strip()
    if not token.isascii() or not token.isprintable():
        raise ConfigError(reason="the token contains characters that an HTTP header cannot contain")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raise `InputError` for a key or commit id that an HTTP header cannot contain."""
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise InputError(f"the value of {name} must consist of printable ASCII characters", reason="bad header")


def _present_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are neither None nor False, with `true` for True."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None and value is not False
    }


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
