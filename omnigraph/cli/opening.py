"""Open the graph that a command operates on, either directly from its files or through a server."""

from typing import TYPE_CHECKING, Any

from .server_target import ServerTarget, is_server_url, locate_served_graph

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.storage.root import GraphRoot


def open_graph(target: "GraphRoot | ServerTarget | str", **options: Any) -> "Graph":
    """Open a graph. For a graph on a server, return an object with the `Graph` members that commands use."""
    if isinstance(target, str) and is_server_url(target):
        from .operator_config import load_config

        target = locate_served_graph(load_config(), target)
    if isinstance(target, ServerTarget):
        from .remote.graph import open_served_graph

        return open_served_graph(target, **options)  # type: ignore[return-value]
    from omnigraph.api.opening import open as open_stored_graph

    return open_stored_graph(target if isinstance(target, str) else target.uri, **options)
