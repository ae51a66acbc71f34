"""Resolve which graph a command works on, and ask for confirmation before destructive changes.

This module defines how a graph can be named: with a positional argument, `--store` or `--uri`, `OMNIGRAPH_STORE`, or
the profiles and defaults in the operator configuration. It announces the target of a write, prompts before a
destructive action, and opens graphs only for reading.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omnigraph.errors import InputError, redact_uri
from omnigraph.records.frozen import record

from . import show
from .options import current_graph, scope_option, settings
from .positionals import GRAPH_METAVAR, split_arguments, usage_metavar

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.storage.root import GraphRoot

Command = TypeVar("Command", bound=Callable[..., Any])
STORE_VARIABLE = "OMNIGRAPH_STORE"
ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"
_SERVER_SCHEMES = ("http://", "https://")
_NO_SERVER = "servers and clusters are not supported yet: use a path or s3://bucket/prefix"


@record
class GraphAddress:
    """The graph that the command line names; all members are None if only the environment names one.

    `graph_id` identifies the graph on a server or cluster.
    """

    argument: str | None = None
    store: str | None = None
    uri: str | None = None
    profile: str | None = None
    server: str | None = None
    cluster: str | None = None
    graph_id: str | None = None

    @property
    def spellings(self) -> dict[str, str]:
        """The explicit addresses, by the flag or argument that specifies them."""
        spellings = {
            GRAPH_METAVAR: self.argument,
            "--uri": self.uri,
            "--store": self.store,
            "--server": self.server,
            "--cluster": self.cluster,
        }
        return {spelling: value for spelling, value in spellings.items() if value is not None}

    @property
    def typed_location(self) -> str:
        """The graph's explicit location, or an empty string if there is none."""
        return self.argument or self.uri or self.store or ""


def _load_default_actor() -> str | None:
    """Return `operator.actor` from the configuration unless the environment names an actor."""
    if os.environ.get(ACTOR_VARIABLE):
        return None
    from .operator_config import load_config

    return load_config().actor


actor_option = scope_option(
    "--as",
    "actor",
    metavar="ACTOR",
    help="Actor to record in the commit; defaults to $OMNIGRAPH_ACTOR",
    load_default=_load_default_actor,
)
external_blobs_option = click.option(
    "--external-blobs",
    metavar="URI",
    multiple=True,
    help="Allow external blobs under this location, such as s3://bucket/prefix; may be repeated",
)
yes_option = scope_option("--yes", "yes", is_flag=True, help="Skip the confirmation prompt for remote stores")

_GRAPH_OPTIONS = (
    scope_option(
        "--store",
        "store",
        metavar="URI",
        help="Graph location, as an alternative to GRAPH; defaults to $OMNIGRAPH_STORE, then the profile",
    ),
    click.option("--uri", metavar="URI", hidden=True),
    scope_option(
        "--profile", "profile", metavar="NAME", help="Profile that selects the graph; defaults to $OMNIGRAPH_PROFILE"
    ),
    scope_option("--server", "server", metavar="URL", hidden=True),
    scope_option("--cluster", "cluster", metavar="URI", hidden=True),
    scope_option("--graph", "graph_id", metavar="ID", hidden=True),
)
_ADDRESS_NAMES = ("store", "uri", "profile", "server", "cluster", "graph_id")


def graph_arguments(*, direct: bool = False, **slots: str) -> Callable[[Command], Command]:
    """Add the graph and other positional arguments to a command, which receives the graph as `address`.

    `slots` maps parameter names to metavars, with brackets around optional ones. A `direct` command rejects `--server`,
    because a server does not run it for its clients.
    """

    def add_arguments(command: Command) -> Command:
        @wraps(command)
        def call_command(*positional: Any, arguments: tuple[str, ...], **options: Any) -> Any:
            given = {name: options.pop(name) for name in _ADDRESS_NAMES}
            if direct and given["server"] is not None:
                _reject_server()
            graph_is_given = any(location is not None for location in (given["store"], given["uri"], current_graph()))
            graph, values = split_arguments(arguments, slots, graph_is_given=graph_is_given)
            return command(*positional, address=GraphAddress(graph, **given), **values, **options)

        for option in reversed(_GRAPH_OPTIONS):
            call_command = option(call_command)
        argument = click.argument("arguments", nargs=-1, metavar=usage_metavar(slots))
        return argument(call_command)  # type: ignore[return-value]

    return add_arguments


def _reject_server() -> None:
    context = click.get_current_context()
    advice = "requires direct storage access: use a path or s3://bucket/prefix instead of --server"
    raise click.UsageError(f"{context.info_name} {advice}", context)


def resolve_root(address: GraphAddress, *, alternative: str = "") -> "GraphRoot":
    """Return the root of the graph that a command names; raise an error if two addresses are given.

    An explicit address takes precedence over `--profile`, followed by `OMNIGRAPH_STORE`, `OMNIGRAPH_PROFILE` and the
    defaults in the operator configuration. `alternative` describes what the command accepts instead of a graph.
    """
    location = _explicit_location(address)
    if location is None and address.profile is None:
        location = _ambient_location()
    if location is None:
        location = _configured_location(address, alternative)
    return parse_storage_uri(location)


def has_address(address: GraphAddress) -> bool:
    """Return whether anything other than the configuration defaults names a graph."""
    return bool(address.spellings or address.profile or _ambient_location())


def _ambient_location() -> str | None:
    current = current_graph()
    return current.uri if current is not None else os.environ.get(STORE_VARIABLE) or None


def current_branch(uri: str) -> str:
    """Return the branch that a command works on by default: main, or the shell's current branch."""
    current = current_graph()
    return current.branch if current is not None and current.uri == uri else "main"


def _explicit_location(address: GraphAddress) -> str | None:
    spellings = [
        (spelling, value, f"{spelling} '{redact_uri(value)}'") for spelling, value in address.spellings.items()
    ]
    if len(spellings) > 1:
        named = " and ".join(label for _, _, label in spellings)
        raise click.UsageError(f"{named} both specify a graph: use only one of them")
    flag, location, label = spellings[0] if spellings else (None, None, None)
    if flag in ("--server", "--cluster"):
        raise click.UsageError(f"{label}: {_NO_SERVER}")
    if address.graph_id is not None:
        problem = f" and cannot be combined with {label}" if label else f"; {_NO_SERVER}"
        raise click.UsageError(f"--graph {address.graph_id} selects a graph on a server or cluster{problem}")
    return location


def _configured_location(address: GraphAddress, alternative: str) -> str:
    from .operator_config import load_config
    from .profiles import resolve_scope

    scope = resolve_scope(load_config(), address.profile)
    if scope is None:
        raise click.UsageError(
            f"no graph specified: pass {GRAPH_METAVAR} as the first argument or --store, set {STORE_VARIABLE},"
            f" or use a profile (see `omnigraph config path`){alternative and f'; or pass {alternative}'}"
        )
    if scope.kind != "store":
        raise click.UsageError(f"{scope.origin} selects a {scope.kind}: {_NO_SERVER}")
    return scope.target


def parse_storage_uri(location: str) -> "GraphRoot":
    """Parse a storage location; raise an error for a server address."""
    from omnigraph.storage.root import parse_root

    if location.lower().startswith(_SERVER_SCHEMES):
        raise InputError(
            f"'{location.partition('://')[0]}://…' is a server address; this command requires direct storage access",
            reason="requires direct storage",
            hint="use a path or s3://bucket/prefix; servers (--server) are not supported yet",
        )
    return parse_root(location)


def open_snapshot(uri: str, branch: str | None, snapshot: str | None) -> "Graph":
    """Open a branch or a past revision for reading. The default is main, or the current position in the shell."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot cannot be combined")
    from omnigraph.api.opening import open as open_graph

    current = current_graph()
    if branch is None and snapshot is None and current is not None and current.uri == uri:
        snapshot = current.commit_id
    graph = open_graph(uri, branch=branch or current_branch(uri), read_only=True)
    return graph if snapshot is None else graph.at(snapshot)


def announce_target(verb: str, root: "GraphRoot") -> None:
    """Print the target to standard error before a write, except in the shell, whose prompt already shows it."""
    current = current_graph()
    if current is not None and current.uri == root.uri:
        if current.revision is not None:
            raise InputError(
                f"{verb} is not allowed: the shell is at revision {current.revision}, not on a branch",
                reason="read-only",
                hint=f"enter \\at to return to the head of {current.branch}",
            )
        return
    access = "direct, local" if root.is_local else "direct, remote"
    show.note(f"{verb} {root.uri} ({access})")


def require_consent(action: str, root: "GraphRoot", *, yes: bool) -> None:
    """Ask for confirmation before destroying data on a remote store; scripts must pass `--yes`."""
    if root.is_local or yes:
        return
    if settings().json or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            f"{action} on {root.uri} requires confirmation; nothing was changed",
            reason="not confirmed",
            hint="pass --yes to confirm",
        )
    click.echo(f"{action} on {root.uri}? [yes/no] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("yes", "y"):
        raise click.Abort
