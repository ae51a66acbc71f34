"""Find the route of a request from its raw path.

The path is split into segments before they are percent-decoded, so `review%2Fx` is a single segment that names the
branch `review/x`. A fixed segment takes precedence over a placeholder, but only among routes with the request's method.
For example, a branch named `merge` can be deleted even though `POST /branches/merge` exists.
"""

from collections.abc import Iterable, Mapping, Sequence
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


class _PathPrefix:
    """The routes that share a path prefix: those that end with the prefix, and those that continue after it."""

    __slots__ = ("after_placeholder", "after_segment", "routes")

    def __init__(self) -> None:
        self.routes: list[Route] = []
        self.after_segment: dict[bytes, _PathPrefix] = {}
        self.after_placeholder: _PathPrefix | None = None

    def add(self, route: Route) -> None:
        """Add a route whose path continues after this prefix."""
        prefix = self
        for segment in route.segments:
            if not is_placeholder(segment):
                prefix = prefix.after_segment.setdefault(segment.encode(), _PathPrefix())
                continue
            if prefix.after_placeholder is None:
                prefix.after_placeholder = _PathPrefix()
            prefix = prefix.after_placeholder
        prefix.routes.append(route)

    def find(self, segments: Sequence[bytes], position: int = 0) -> list[Route]:
        """Return the routes for a path. Those with a fixed segment come before those with a placeholder."""
        if position == len(segments):
            return self.routes
        segment = segments[position]
        fixed, placeholder = self.after_segment.get(segment), self.after_placeholder
        routes = [] if fixed is None else fixed.find(segments, position + 1)
        if placeholder is not None and segment:
            routes = routes + placeholder.find(segments, position + 1)
        return routes


class Router:
    """The routes, in a tree of path segments. A flat path has no graph prefix and refers to the default graph."""

    def __init__(self, routes: Iterable[Route], flat_graph_id: str | None = None) -> None:
        self._root = _PathPrefix()
        self._placeholders: dict[Route, tuple[tuple[int, str], ...]] = {}  # the positions and names in each path
        for route in routes:
            self._root.add(route)
            self._placeholders[route] = tuple(
                (position, segment[1:-1]) for position, segment in enumerate(route.segments) if is_placeholder(segment)
            )
        self._flat_graph_id = flat_graph_id

    def match(self, method: str, raw_path: bytes) -> MatchedRoute:
        """Return the route of a request; raise `NotFound` or `MethodNotAllowed`.

        >>> from omnigraph.server.route_model import Route
        >>> routes = [Route("DELETE", "/graphs/{graph_id}/branches/{branch}", "deleteBranch", "", "")]
        >>> dict(Router(routes).match("DELETE", b"/graphs/g/branches/review%2Fx").path_values)
        {'graph_id': 'g', 'branch': 'review/x'}
        """
        segments = tuple(raw_path.split(b"/"))[1:]
        candidates = self._root.find(segments)
        is_flat = False
        if not candidates and self._flat_graph_id is not None:
            segments = (b"graphs", self._flat_graph_id.encode(), *segments)
            candidates, is_flat = self._root.find(segments), True
        if not candidates:
            raise NotFound("no such path", hint="see /openapi.json for the routes that this server supports")
        route = next((route for route in candidates if route.method == method), None)
        if route is None and method == "HEAD":
            route = next((route for route in candidates if route.method == "GET" and EVENTS not in route.answers), None)
        if route is None:
            raise MethodNotAllowed(f"{method} is not allowed on this path", method=method, allowed=allowed(candidates))
        path_values = {name: _decode_segment(segments[position]) for position, name in self._placeholders[route]}
        return MatchedRoute(route, path_values, is_flat)


def allowed(routes: Iterable[Route]) -> str:
    """Return the value of the `Allow` header for a path."""
    return ", ".join(sorted({route.method for route in routes}))


def is_placeholder(segment: str) -> bool:
    """Return whether a segment of a path template is a placeholder."""
    return segment.startswith("{")


def _decode_segment(segment: bytes) -> str:
    decoded = unquote_to_bytes(segment) if b"%" in segment else segment
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        raise InputError("a path segment is not valid UTF-8", reason="malformed path") from None
