"""A graph on a server, as a command addresses it: its URL and the token to send.

This module turns `--server`, `--graph`, URLs and profiles into a served graph, and lists the graphs on a server. It
contacts the server only to list its graphs or, if a command names no graph, to find the only one.
"""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.records.frozen import record

from . import show

if TYPE_CHECKING:
    from omnigraph.client.exchange import Exchange

    from .operator_config import OperatorConfig

_DEFAULT_GRAPH_ID = "default"  # the id of the only graph on a server that was started without graph ids
_SCHEMES = ("http://", "https://", "http+unix://")


@record
class ServerTarget:
    """A graph on a server. For a graph that is opened from its files, commands use a `GraphRoot` instead."""

    uri: str
    token: str | None = None
    is_local: bool = False


class ServedHandle:
    """The base class of opened graphs on a server, so that commands can recognize them without importing a client."""


def is_served(graph: object) -> bool:
    """Return whether an opened graph is on a server."""
    return isinstance(graph, ServedHandle)


def is_server_url(location: str) -> bool:
    """Return whether a location is a server's URL rather than a storage location.

    >>> is_server_url("https://db.example.org/graphs/g"), is_server_url("s3://bucket/g")
    (True, False)
    """
    return location.lower().startswith(_SCHEMES)


def locate_served_graph(
    config: "OperatorConfig", url: str, graph_id: str | None = None, token_reference: str | None = None
) -> ServerTarget:
    """Return the graph that a URL names, or the graph with the given id on a server."""
    from omnigraph.client.locations import parse_graph_address, parse_server_address

    from .credentials import find_token

    if graph_id is None and "/graphs/" in url:
        graph_url = str(parse_graph_address(url))
        return ServerTarget(graph_url, find_token(config, graph_url, token_reference))
    server_url = str(parse_server_address(url))
    token = find_token(config, server_url, token_reference)
    if graph_id is None:
        graph_id = _find_only_graph(server_url, token)
    return ServerTarget(str(parse_graph_address(f"{server_url}/graphs/{graph_id}")), token)


def _find_only_graph(server_url: str, token: str | None) -> str:
    """Return the id of a server's only graph.

    If the token may not list graphs, return `default`, provided that the token may read the graph with this id.
    """
    from omnigraph.client.exchange import Exchange
    from omnigraph.client.locations import parse_server_address
    from omnigraph.errors import PermissionDenied

    exchange = Exchange(parse_server_address(server_url), token=token)
    try:
        graphs = _read_graphs(exchange, server_url)
    except PermissionDenied:
        if _can_read_default_graph(exchange):
            show.note(f"using graph {_DEFAULT_GRAPH_ID} on {server_url}")
            return _DEFAULT_GRAPH_ID
        raise click.UsageError(f"{server_url} does not list its graphs: pass the id of a graph with --graph") from None
    finally:
        exchange.close()
    graph_ids = [graph["graph_id"] for graph in graphs]
    if len(graph_ids) != 1:
        available = ", ".join(graph_ids) or "none"
        raise click.UsageError(f"{server_url} has {len(graph_ids)} graphs ({available}): choose one with --graph")
    show.note(f"using graph {graph_ids[0]}, the only one on {server_url}")
    return str(graph_ids[0])


def list_served_graphs(url: str, token_reference: str | None = None) -> list[Any]:
    """Return the graphs on a server as the server lists them, each with its `graph_id` and `uri`."""
    from omnigraph.client.exchange import Exchange
    from omnigraph.client.locations import parse_server_address

    from .credentials import find_token
    from .operator_config import load_config

    address = parse_server_address(url.partition("/graphs/")[0])
    exchange = Exchange(address, token=find_token(load_config(), str(address), token_reference))
    try:
        return _read_graphs(exchange, str(address))
    finally:
        exchange.close()


def _read_graphs(exchange: "Exchange", server_url: str) -> list[Any]:
    from omnigraph.errors import NotFound

    try:
        graphs: list[Any] = exchange.get("graphs")["graphs"]
    except NotFound:
        base_url, _, path = server_url.rpartition("/")
        if not path or base_url.endswith("/"):
            raise
        example = f"to address a graph, write {base_url}/graphs/{path}"
        raise click.UsageError(f"{server_url} is not a valid server URL; {example}") from None
    return graphs


def _can_read_default_graph(exchange: "Exchange") -> bool:
    """Return whether a graph with the default id exists and the token may read it."""
    from omnigraph.errors import NotFound, PermissionDenied

    try:
        exchange.get("graphs", _DEFAULT_GRAPH_ID, "limits")
    except (NotFound, PermissionDenied):
        return False
    return True
