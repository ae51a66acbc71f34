"""`omnigraph queries`: list and show the queries that are stored on a server."""

from collections.abc import Mapping
from typing import Any

import click

from omnigraph.errors import InputError, StoredQueryNotFound

from . import show
from .address import GraphAddress, graph_arguments, resolve_target
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options
from .server_target import ServerTarget

_COMMANDS = {
    "list": LazyCommand(__name__, "list_", "List stored queries and their parameters"),
    "show": LazyCommand(__name__, "show_query", "Show the description and the parameters of a stored query"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def queries() -> None:
    """List and show stored queries, which a server reads from .gq files (`omnigraph serve --queries`)."""


@click.command("list")
@graph_arguments()
@shared_options
def list_(address: GraphAddress) -> None:
    """List the stored queries of a graph on a server, sorted by name."""
    entries = _read_entries(address)
    if settings().json:
        show.document({"queries": entries})
        return
    for entry in entries:
        show.result(f"{_kind(entry):<8}  {_signature(entry)}")
    if not entries:
        show.note("there are no stored queries")


@click.command("show")
@graph_arguments(name="NAME")
@shared_options
def show_query(name: str, address: GraphAddress) -> None:
    """Show the description and the parameters of the stored query NAME."""
    from omnigraph.lang.schema.names import did_you_mean

    entries = {entry["name"]: entry for entry in _read_entries(address)}
    if name not in entries:
        hint = did_you_mean(name, entries, "list the stored queries with `omnigraph queries list`")
        raise StoredQueryNotFound(hint=hint)
    entry = entries[name]
    if settings().json:
        show.document(entry)
        return
    show.result(f"{_kind(entry)}  {_signature(entry)}")
    for member in ("description", "instruction"):
        if entry.get(member):
            show.result(f"{member}: {entry[member]}")


def _read_entries(address: GraphAddress) -> list[dict[str, Any]]:
    target = resolve_target(address)
    if not isinstance(target, ServerTarget):
        message = "queries are stored on a server; commands that open the graph's files read queries from .gq files"
        hint = "pass the URL of a graph on a server, or --server; to describe a file, use `omnigraph describe`"
        raise InputError(message, reason="not a server", hint=hint)
    graph: Any = open_graph(target, read_only=True)
    entries: list[dict[str, Any]] = graph.stored_queries()
    return entries


def _kind(entry: Mapping[str, Any]) -> str:
    return "mutation" if entry["mutation"] else "read"


def _signature(entry: Mapping[str, Any]) -> str:
    from omnigraph.api.stored_queries import write_declaration
    from omnigraph.client.stored_query_types import write_kind

    return write_declaration(entry["name"], {parameter["name"]: write_kind(parameter) for parameter in entry["params"]})
