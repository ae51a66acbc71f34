"""Resolve the graph that a command works on, and ask for confirmation before destructive changes.

This module defines the ways to name a graph (a URI, `--uri`, `--store` or `OMNIGRAPH_STORE`), announces the target of a
write, and prompts before a destructive action. It opens graphs only for reading.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omnigraph.errors import InputError

from . import show
from .options import scope_option, settings

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.storage.root import GraphRoot

Command = TypeVar("Command", bound=Callable[..., Any])
STORE_VARIABLE = "OMNIGRAPH_STORE"
_SERVER_SCHEMES = ("http://", "https://")

uri_argument = click.argument("uri", required=False)
uri_option = click.option("--uri", metavar="URI", help="Graph location: a path or s3://bucket/prefix")
store_option = scope_option(
    "--store", "store", metavar="URI", help="Graph location; may also precede the command; default: $OMNIGRAPH_STORE"
)
actor_option = scope_option("--as", "actor", metavar="ACTOR", help="Actor to record for the change")
external_blobs_option = click.option(
    "--external-blobs",
    metavar="URI",
    multiple=True,
    help="Allow blobs from below this location, such as s3://bucket/prefix; may be repeated",
)
yes_option = scope_option("--yes", "yes", is_flag=True, help="Skip the confirmation prompt for remote stores")


def _reject_server(context: click.Context, _: click.Parameter, server_url: str | None) -> None:
    if server_url is not None:
        advice = "needs direct storage access: use a path or s3://bucket/prefix instead of --server"
        raise click.UsageError(f"{context.info_name} {advice}", context)


# Rejects `--server` in maintenance commands, which a server does not run for its clients.
direct_only = click.option("--server", hidden=True, expose_value=False, callback=_reject_server, metavar="URL")


def resolve_root(
    uri: str | None, store: str | None, *, argument_name: str = "URI", option_value: str | None = None
) -> "GraphRoot":
    """Return the root of the graph that a command names; raise an error if it is named in more than one way.

    If the command names no graph, the environment variable `OMNIGRAPH_STORE` is used. `argument_name` is the name of
    `uri` in the command's usage message; `option_value` is the value of a separate `--uri`.
    """
    spellings = ((argument_name, uri), ("--uri", option_value), ("--store", store))
    named = {spelling: value for spelling, value in spellings if value is not None}
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} both specify a graph: use only one of them")
    default_store = os.environ.get(STORE_VARIABLE)
    if not named and not default_store:
        accepted = " or ".join(dict.fromkeys((argument_name, "--store")))
        raise click.UsageError(f"no graph given: use {accepted}, or set {STORE_VARIABLE}")
    return parse_storage_uri(next(iter(named.values()), default_store or ""))


def parse_storage_uri(location: str) -> "GraphRoot":
    """Parse a storage location; reject the address of a server."""
    from omnigraph.storage.root import parse_root

    if location.lower().startswith(_SERVER_SCHEMES):
        raise InputError(
            f"'{location.partition('://')[0]}://…' is a server address; this command needs direct storage access",
            reason="needs direct storage",
            hint="use a path or s3://bucket/prefix; servers (--server) are not supported yet",
        )
    return parse_root(location)


def open_snapshot(uri: str, branch: str | None, snapshot: str | None) -> "Graph":
    """Open a graph for reading: a branch (default main) or a past revision."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot both select a state: use only one of them")
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(uri, branch=branch or "main", read_only=True)
    return graph if snapshot is None else graph.at(snapshot)


def announce_target(verb: str, root: "GraphRoot") -> None:
    """Print the target of a write to standard error before the write."""
    access = "direct, local" if root.is_local else "direct, remote"
    show.note(f"{verb} {root.uri} ({access})")


def require_consent(action: str, root: "GraphRoot", *, yes: bool) -> None:
    """Ask for confirmation before destroying data on a remote store; scripts must pass `--yes`."""
    if root.is_local or yes:
        return
    if settings().json or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            f"{action} on {root.uri} needs confirmation; nothing was changed",
            reason="needs consent",
            hint="pass --yes to confirm",
        )
    click.echo(f"{action} on {root.uri}? [yes/no] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("yes", "y"):
        raise click.Abort
