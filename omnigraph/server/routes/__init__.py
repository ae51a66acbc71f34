"""The table of all routes. It drives routing, the OpenAPI document, actions, limits and the reference page.

To add an operation, add a row to a module in this package, a function to `handlers`, and models for its request and
response bodies. The rows are only data: this package imports neither handlers nor the web framework.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.server.route_model import GRAPH_PREFIX, Route

from .compatibility import COMPATIBILITY_ROUTES
from .data import DATA_ROUTES
from .entities import ENTITY_ROUTES
from .history import HISTORY_ROUTES
from .maintenance import MAINTENANCE_ROUTES
from .system import SYSTEM_ROUTES


def _add_conditional_paths(routes: Iterable[Route]) -> Iterator[Route]:
    """Yield each route with the path of its conditional form. A deprecated route gets the path for its successor."""
    routes = tuple(routes)
    conditional_paths = {route.path for route in routes if route.takes_condition}
    for route in routes:
        path = route.path if route.successor is None else f"{GRAPH_PREFIX}/{route.successor}"
        conditional_path = f"{path}/if-graph-commit"
        is_available = route.is_write and conditional_path in conditional_paths
        relative_path = conditional_path.removeprefix(GRAPH_PREFIX) if is_available else None
        yield replace(route, conditional_path=relative_path)


ROUTES: tuple[Route, ...] = tuple(
    _add_conditional_paths(
        (*SYSTEM_ROUTES, *DATA_ROUTES, *HISTORY_ROUTES, *ENTITY_ROUTES, *MAINTENANCE_ROUTES, *COMPATIBILITY_ROUTES)
    )
)
