"""Open the graph that a command works on: its files directly, or through a server."""

from typing import TYPE_CHECKING, Any

from .server_target import ServerTarget, is_server_url, locate_served_graph

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.storage.root import GraphRoot


def open_graph(target: "GraphRoot | ServerTarget | str", **options: Any) -> "Graph":
    """Open a graph. A graph on a server has the part of the interface that commands use."""
    if isinstance(target, str) and is_server_url(target):
        from .operator_config import load_config

        target = locate_served_graph(load_config(), target)
    if isinstance(target, ServerTarget):
        from .remote.graph import open_served_graph

        return open_served_graph(target, **options)  # type: ignore[return-value]
    from omnigraph.api.opening import open as open_stored_graph

    return open_stored_graph(target if isinstance(target, str) else target.uri, **options)
