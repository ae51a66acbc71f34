"""Find the route of a request from its raw path.

The path is split before its segments are percent-decoded, so that `review%2Fx` is one segment, which names the branch
`review/x`. A fixed segment takes precedence over a placeholder, but only among routes with the request's method. For
example, a branch named `merge` can be deleted even though `POST /branches/merge` exists.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

from omnigraph.errors import InputError, MethodNotAllowed, NotFound
from omnigraph.records.frozen import record

from .route_model import EVENTS, Route


@record
class MatchedRoute:
    """A route, the values of its placeholders, and whether the path has no graph prefix."""

    route: Route
    path_values: Mapping[str, str]
    is_flat: bool = False


class Router:
    """The routes, grouped by their number of segments. A flat path omits the prefix of one graph, the default graph."""

    def __init__(self, routes: Iterable[Route], flat_graph_id: str | None = None) -> None:
        self._routes_by_length: dict[int, list[Route]] = {}
        for route in routes:
            self._routes_by_length.setdefault(len(route.segments), []).append(route)
        for same_length in self._routes_by_length.values():
            same_length.sort(key=lambda route: [is_placeholder(segment) for segment in route.segments])
        self._flat_graph_id = flat_graph_id

    def match(self, method: str, raw_path: bytes) -> MatchedRoute:
        """Return the route of a request; raise `NotFound` or `MethodNotAllowed`.

        >>> from omnigraph.server.route_model import Route
        >>> routes = [Route("DELETE", "/graphs/{graph_id}/branches/{branch}", "deleteBranch", "", "")]
        >>> dict(Router(routes).match("DELETE", b"/graphs/g/branches/review%2Fx").path_values)
        {'graph_id': 'g', 'branch': 'review/x'}
        """
        segments = tuple(raw_path.split(b"/"))[1:]
        candidates = self._find_candidates(segments)
        is_flat = False
        if not candidates and self._flat_graph_id is not None:
            segments = (b"graphs", self._flat_graph_id.encode(), *segments)
            candidates, is_flat = self._find_candidates(segments), True
        if not candidates:
            raise NotFound("no such path", hint="see /openapi.json for the routes that this server supports")
        route = next((route for route in candidates if route.method == method), None)
        if route is None and method == "HEAD":
            route = next((route for route in candidates if route.method == "GET" and EVENTS not in route.answers), None)
        if route is None:
            raise MethodNotAllowed(f"{method} is not allowed on this path", method=method, allowed=allowed(candidates))
        return MatchedRoute(route, _read_placeholders(route, segments), is_flat)

    def _find_candidates(self, segments: tuple[bytes, ...]) -> list[Route]:
        same_length = self._routes_by_length.get(len(segments), ())
        return [route for route in same_length if _fits_route(route, segments)]


def allowed(routes: Iterable[Route]) -> str:
    """Return the value of the `Allow` header for a path."""
    return ", ".join(sorted({route.method for route in routes}))


def is_placeholder(segment: str) -> bool:
    """Return whether a segment of a path template is a placeholder."""
    return segment.startswith("{")


def _fits_route(route: Route, segments: tuple[bytes, ...]) -> bool:
    return all(
        bool(segment) if is_placeholder(expected) else segment == expected.encode()
        for expected, segment in zip(route.segments, segments, strict=True)
    )


def _read_placeholders(route: Route, segments: tuple[bytes, ...]) -> dict[str, str]:
    return {
        expected[1:-1]: _decode_segment(segment)
        for expected, segment in zip(route.segments, segments, strict=True)
        if is_placeholder(expected)
    }


def _decode_segment(segment: bytes) -> str:
    decoded = unquote_to_bytes(segment) if b"%" in segment else segment
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        raise InputError("a path segment is not valid UTF-8", reason="malformed path") from None
