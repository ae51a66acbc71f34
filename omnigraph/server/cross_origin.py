"""Allow cross-origin requests from browsers (CORS) for the configured origins."""

from collections.abc import Mapping, Sequence

from .wire.answer import Answer

ANY_ORIGIN = "*"
_METHODS = "GET, HEAD, POST, PUT, DELETE"
_REQUEST_HEADERS = (
    "Authorization, Content-Type, Accept, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, Last-Event-ID,"
    " Omnigraph-If-Graph-Commit, Omnigraph-Request-Id, Omnigraph-Integers, Omnigraph-Api, traceparent, tracestate"
)
_EXPOSED_HEADERS = (
    "ETag, Location, Retry-After, Server-Timing, Accept-Ranges, Content-Range, Repr-Digest, Deprecation, Link,"
    " WWW-Authenticate, Allow, Idempotent-Replay, Omnigraph-Request-Id, Omnigraph-Snapshot-Id, Omnigraph-Query-Name,"
    " Omnigraph-Blob-Media-Type, Omnigraph-Warnings"
)


class CrossOrigin:
    """Responds to preflight requests and marks responses for allowed origins."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    def preflight(self, method: str, headers: Mapping[str, str]) -> Answer | None:
        """Return the response to a preflight request, or None for any other request."""
        is_preflight = method == "OPTIONS" and "access-control-request-method" in headers
        if not is_preflight or not self._allows_origin(headers.get("origin")):
            return None
        allowed = {
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _REQUEST_HEADERS,
            "Access-Control-Max-Age": "600",
        }
        return Answer(b"", status=204, headers=allowed)

    def response_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that allow a page from an allowed origin to read the response."""
        origin = headers.get("origin") if self._origins else None
        if not self._allows_origin(origin):
            return {}
        return {
            "Access-Control-Allow-Origin": str(origin),
            "Access-Control-Expose-Headers": _EXPOSED_HEADERS,
            "Vary": "Origin",
        }

    def _allows_origin(self, origin: str | None) -> bool:
        return origin is not None and (origin in self._origins or ANY_ORIGIN in self._origins)
