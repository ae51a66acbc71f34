"""The graphs that a worker serves, and those that it could not open.

A graph that fails to open is quarantined: its routes respond as if the graph did not exist, and the worker retries
periodically. Graphs are opened in a thread, never on the event loop.
"""

import threading
from collections.abc import Iterator

from omnigraph.api.graph import Graph
from omnigraph.errors import ConfigError, GraphNotFound, OmnigraphError
from omnigraph.values import clock_and_ids

from .engine_access import open_served_graph, warm_up
from .locations import name_graphs
from .log_output import LOGGER
from .settings import GraphLocation, ServerSettings, public_uri, require_graph_id
from .stored_queries import ServedQueries, load_stored_queries

_RETRY_SECONDS = 30.0


class ServedGraph:
    """A graph that this worker serves: its public location, its stored queries, and the open graph.

    The graph object for each request is derived from the open graph.
    """

    def __init__(self, location: GraphLocation, opened: Graph, uri: str, queries: ServedQueries) -> None:
        self.graph_id = location.graph_id
        self.uri = uri
        self.opened = opened
        self.queries = queries

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Strings that must not appear in any error message."""
        location = self.opened.uri
        return tuple({location, location.removeprefix("file://")} - {"", "/"})


class GraphRegistry:
    """All graphs of a worker by id."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._served: dict[str, ServedGraph] = {}
        self._quarantined: dict[str, float] = {}
        self._locations = {location.graph_id: location for location in settings.graphs}
        self._lock = threading.Lock()

    def open_all(self) -> None:
        """Open every graph; raise `ConfigError` if none can be opened, or if one cannot and all are required."""
        failures = [self._try_open(location) for location in self._locations.values()]
        if not self._served or (self._settings.requires_all_graphs and self._quarantined):
            reasons = "; ".join(sorted({failure for failure in failures if failure}))
            extent = "not all graphs" if self._served else "no graph"
            raise ConfigError(reason=f"{extent} can be served: {reasons}")

    def find(self, graph_id: str) -> ServedGraph:
        """Return a graph by its id; raise `InputError` for an invalid id and `GraphNotFound` for an unknown one."""
        served = self._served.get(graph_id)
        if served is not None:
            return served
        require_graph_id(graph_id)
        raise GraphNotFound(graph=graph_id)

    def reopen_due(self) -> None:
        """Retry the quarantined graphs whose retry delay has elapsed."""
        with self._lock:
            now = clock_and_ids.monotonic()
            for graph_id in [graph_id for graph_id, due in self._quarantined.items() if due <= now]:
                self._try_open(self._locations[graph_id])

    @property
    def quarantined(self) -> list[str]:
        """The ids of the graphs that could not be opened."""
        return sorted(self._quarantined)

    def __iter__(self) -> Iterator[ServedGraph]:
        return iter([self._served[graph_id] for graph_id in sorted(self._served)])

    def __len__(self) -> int:
        return len(self._served)

    def _try_open(self, location: GraphLocation) -> str | None:
        """Open a graph and return None, or quarantine it and return the reason."""
        try:
            opened = open_served_graph(location)
            queries = load_stored_queries(self._settings.queries_directory, location.graph_id, opened)
            warm_up(opened)
        except OmnigraphError as error:
            self._quarantined[location.graph_id] = clock_and_ids.monotonic() + _RETRY_SECONDS
            reason = name_graphs(error.message, [location])
            LOGGER.warning("graph '%s' is quarantined: %s", location.graph_id, reason)
            return error.message
        self._quarantined.pop(location.graph_id, None)
        uri = public_uri(self._settings, location)
        self._served[location.graph_id] = ServedGraph(location, opened, uri, queries)
        return None
