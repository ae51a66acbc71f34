"""Which graph a command works on, and the consent to change it.

Owns the three ways to name a graph (a URI, `--uri`, `--store`), the line that announces the target
of a write, and the prompt before something is destroyed. Opens graphs for reading only.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omnigraph.errors import InputError

from . import show
from .options import scope_option, settings

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.storage.root import Root

Command = TypeVar("Command", bound=Callable[..., Any])
_SERVERS = ("http://", "https://")

uri_argument = click.argument("uri", required=False)
uri_option = click.option("--uri", metavar="URI", help="Graph: a path or s3://bucket/prefix")
store_option = scope_option(
    "--store", "store", metavar="URI", help="Graph; may also be given before the command"
)
actor_option = scope_option("--as", "actor", metavar="ACTOR", help="Actor to record for the change")
yes_option = scope_option(
    "--yes", "yes", is_flag=True, help="Skip the confirmation prompt for remote stores"
)


def _no_server(context: click.Context, _: click.Parameter, given: str | None) -> None:
    if given is not None:
        text = "needs direct storage: use a path or s3://bucket/prefix instead of --server"
        raise click.UsageError(f"{context.info_name} {text}", context)


# For maintenance commands; a server does not run those for its clients.
direct_only = click.option(
    "--server", hidden=True, expose_value=False, callback=_no_server, metavar="URL"
)


def address(
    uri: str | None, store: str | None, *, way: str = "URI", option: str | None = None
) -> "Root":
    """Return the graph's root; exactly one spelling may be used, and it must be storage.

    `argument_name` is what the usage of the command calls `uri`; `option_value` is the value of a
    separate `--uri`.
    """
    ways = ((way, uri), ("--uri", option), ("--store", store))
    given = {name: text for name, text in ways if text is not None}
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} both name a graph: use only one of them")
    if not given:
        known = " or ".join(dict.fromkeys((way, "--store")))
        raise click.UsageError(f"no graph given: use {known}")
    return place(next(iter(given.values())))


def place(text: str) -> "Root":
    """Parse a storage location; the address of a server is rejected."""
    from omnigraph.storage.root import parse_root

    if text.lower().startswith(_SERVERS):
        raise InputError(
            f"'{text.partition('://')[0]}://…' is the address of a server;"
            " this command needs direct storage",
            reason="needs direct storage",
            hint="servers are named with --server, which is not supported yet;"
            " use a path or s3://bucket/prefix",
        )
    return parse_root(text)


def shown_at(uri: str, branch: str | None, snapshot: str | None) -> "Graph":
    """Open a graph for reading: a branch (default main) or a past revision."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot both name a state: use only one of them")
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(uri, branch=branch or "main", read_only=True)
    return graph if snapshot is None else graph.at(snapshot)


def tell_target(verb: str, root: "Root") -> None:
    """Print the target of a write to standard error, before the write."""
    access = "direct, local" if root.local else "direct, remote"
    show.note(f"{verb} {root.uri} ({access})")


def consent(what: str, root: "Root", *, yes: bool) -> None:
    """Ask before something is destroyed on a remote store; scripts must pass `--yes`."""
    if root.local or yes:
        return
    if settings().json or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            f"{what} on {root.uri} needs confirmation; nothing was changed",
            reason="needs consent",
            hint="pass --yes to confirm",
        )
    click.echo(f"{what} on {root.uri}? [yes/no] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("yes", "y"):
        raise click.Abort
