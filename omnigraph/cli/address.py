"""Which graph a command is about, and leave to change it.

Owns the three ways to name a graph (a URI, `--uri`, `--store`), the line that names the target of
a write, and the question before something is destroyed. Only reads open a graph here.
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
uri_option = click.option("--uri", metavar="URI", help="The graph: a path or s3://bucket/prefix.")
store_option = scope_option("--store", "store", metavar="URI", help="The same as a URI.")
actor_option = scope_option("--as", "actor", metavar="ACTOR", help="Who makes the change.")
yes_option = scope_option(
    "--yes", "yes", is_flag=True, help="Do not ask; only a remote store is asked about."
)


def _no_server(context: click.Context, _: click.Parameter, given: str | None) -> None:
    if given is not None:
        text = "needs direct storage: give a path or s3://bucket/prefix instead of --server"
        raise click.UsageError(f"{context.info_name} {text}", context)


# Of commands that look after files; no server does that for others.
direct_only = click.option(
    "--server", hidden=True, expose_value=False, callback=_no_server, metavar="URL"
)


def address(
    uri: str | None, store: str | None, *, way: str = "URI", option: str | None = None
) -> "Root":
    """The place that was named: exactly one way may be used, and it must be storage.

    `way` is what `uri` is called in the usage of the command; `option` is `--uri` beside it.
    """
    ways = ((way, uri), ("--uri", option), ("--store", store))
    given = {name: text for name, text in ways if text is not None}
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} both name a graph: give one of them")
    if not given:
        known = " or ".join(dict.fromkeys((way, "--store")))
        raise click.UsageError(f"no graph is named: give {known}")
    return place(next(iter(given.values())))


def place(text: str) -> "Root":
    """A location as storage; the address of a server is refused."""
    from omnigraph.storage.root import parse_root

    if text.lower().startswith(_SERVERS):
        raise InputError(
            f"'{text.partition('://')[0]}://…' is the address of a server;"
            " this command needs direct storage",
            reason="needs direct storage",
            hint="a server is named with --server, which is not built yet;"
            " give a path or s3://bucket/prefix",
        )
    return parse_root(text)


def shown_at(uri: str, branch: str | None, snapshot: str | None) -> "Graph":
    """A graph to read: a branch, main by default, or a point of the past."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot both name a state: give one of them")
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(uri, branch=branch or "main", read_only=True)
    return graph if snapshot is None else graph.at(snapshot)


def tell_target(verb: str, root: "Root") -> None:
    """Name the target of a write on standard error, before the write."""
    access = "direct, local" if root.local else "direct, remote"
    show.note(f"{verb} {root.uri} ({access})")


def consent(what: str, root: "Root", *, yes: bool) -> None:
    """Ask before something is destroyed elsewhere; a script must say `--yes`."""
    if root.local or yes:
        return
    if settings().json or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            f"{what} on {root.uri} needs consent; nothing was changed",
            reason="needs consent",
            hint="add --yes if you mean it",
        )
    click.echo(f"{what} on {root.uri}? [yes/no] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("yes", "y"):
        raise click.Abort
