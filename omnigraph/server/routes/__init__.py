"""The table of all routes. It drives routing, the OpenAPI document, actions, limits and the reference page.

To add an operation, add a row to a module in this package, a function to `handlers`, and models for its documents. The
rows are only data: this package imports neither handlers nor the web framework.
"""

from omnigraph.server.route_model import Route

from .compatibility import COMPATIBILITY_ROUTES
from .data import DATA_ROUTES
from .entities import ENTITY_ROUTES
from .history import HISTORY_ROUTES
from .system import SYSTEM_ROUTES

ROUTES: tuple[Route, ...] = (
    *SYSTEM_ROUTES,
    *DATA_ROUTES,
    *HISTORY_ROUTES,
    *ENTITY_ROUTES,
    *COMPATIBILITY_ROUTES,
)
