"""Determine which graph a command operates on, and ask for confirmation before destructive changes.

This module defines the ways to specify a graph: a positional argument, `--store` or `--uri`, `OMNIGRAPH_STORE`, or the
profiles and defaults in the operator configuration. It announces the target of a write, prompts before a destructive
action, and opens graphs only for reading.
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
from .engines import reject_spark_on_server
from .options import current_graph, scope_option, settings
from .positionals import GRAPH_METAVAR, split_arguments, usage_metavar

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.storage.root import GraphRoot

    from .server_target import ServerTarget

Command = TypeVar("Command", bound=Callable[..., Any])
STORE_VARIABLE = "OMNIGRAPH_STORE"
ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"
# What to do instead of commands that a server cannot run.
_STORAGE_HINTS = {
    "omnigraph init": "create the graph where its files will be stored, and start `omnigraph serve` with its location",
    "omnigraph copy": "run `omnigraph copy` where the files are stored, or use `omnigraph export` for the newest data",
    "omnigraph upgrade": "stop the server, and run `omnigraph upgrade` where the files are stored",
}
_NO_CLUSTER = "clusters are not supported yet: use a path, s3://bucket/prefix or a server"


@record
class GraphAddress:
    """The graph that is specified on the command line; all members are None if the graph comes from the environment.

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
        """The explicit addresses, keyed by the flag or argument that specifies them."""
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
    """Return `operator.actor` from the configuration, or None if it is unset or the environment specifies an actor."""
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
    scope_option("--server", "server", metavar="NAME|URL", help="Server that hosts the graph"),
    scope_option("--cluster", "cluster", metavar="URI", hidden=True),
    scope_option(
        "--graph", "graph_id", metavar="ID", help="Graph on the server; optional if the server has only one graph"
    ),
)
_ADDRESS_NAMES = ("store", "uri", "profile", "server", "cluster", "graph_id")


def graph_arguments(*, direct: bool = False, **slots: str) -> Callable[[Command], Command]:
    """Add the graph and other positional arguments to a command, which receives the graph as `address`.

    `slots` maps parameter names to metavars, with brackets around optional ones. A `direct` command rejects `--server`,
    because servers do not run such commands for clients.
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
    hint = _STORAGE_HINTS.get(context.command_path)
    raise click.UsageError(f"{context.info_name} {advice}{'' if hint is None else f'; {hint}'}", context)


def resolve_root(address: GraphAddress, *, alternative: str = "") -> "GraphRoot":
    """Return the root of the graph that a command names, for commands that access the graph's files directly.

    An explicit address takes precedence over `--profile`, followed by `OMNIGRAPH_STORE`, `OMNIGRAPH_PROFILE` and the
    defaults in the operator configuration. `alternative` describes what the command accepts instead of a graph. Raises
    an error if two addresses are given, or if the address is that of a server.
    """
    location = _resolve_location(address, alternative)
    if isinstance(location, str):
        return parse_storage_uri(location)
    raise _storage_required(location.server)


def resolve_target(address: GraphAddress, *, alternative: str = "") -> "GraphRoot | ServerTarget":
    """Return the graph that a command names, for commands that also support graphs on a server."""
    location = _resolve_location(address, alternative)
    if isinstance(location, str):
        return parse_storage_uri(location)
    reject_spark_on_server()
    return _locate_on_server(location)


@record
class _ServerLocation:
    """The server that an address refers to, before it is contacted."""

    server: str
    graph_id: str | None = None
    token: str | None = None


def _resolve_location(address: GraphAddress, alternative: str) -> "str | _ServerLocation":
    """Return the storage location of a graph, or the server that hosts the graph."""
    from .server_target import is_server_url

    location = _explicit_location(address)
    if location is None and address.server is not None:
        return _ServerLocation(address.server, address.graph_id)
    if location is None and address.profile is None:
        location = _ambient_location()
    if location is None:
        return _configured_location(address, alternative)
    if address.graph_id is not None:
        raise _misplaced_graph_id(address.graph_id, f"'{redact_uri(location)}', which already identifies a graph")
    return _ServerLocation(location) if is_server_url(location) else location


def _locate_on_server(location: _ServerLocation) -> "ServerTarget":
    from .operator_config import load_config
    from .profiles import locate_server
    from .server_target import locate_served_graph

    config = load_config()
    return locate_served_graph(config, locate_server(config, location.server), location.graph_id, location.token)


def _misplaced_graph_id(graph_id: str, location: str) -> click.UsageError:
    return click.UsageError(f"--graph {graph_id} selects a graph on a server and cannot be combined with {location}")


def has_address(address: GraphAddress) -> bool:
    """Return whether a graph is specified by anything other than the defaults in the configuration."""
    return bool(address.spellings or address.profile or _ambient_location())


def _ambient_location() -> str | None:
    current = current_graph()
    return current.uri if current is not None else os.environ.get(STORE_VARIABLE) or None


def current_branch(uri: str) -> str:
    """Return the branch that a command uses by default: main, or the shell's current branch."""
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
    if flag == "--cluster":
        raise click.UsageError(f"{label}: {_NO_CLUSTER}")
    if flag == "--server":
        return None
    if address.graph_id is not None and label is not None:
        raise _misplaced_graph_id(address.graph_id, label)
    return location


def _configured_location(address: GraphAddress, alternative: str) -> "str | _ServerLocation":
    from .operator_config import load_config
    from .profiles import resolve_scope
    from .server_target import is_server_url

    scope = resolve_scope(load_config(), address.profile)
    if scope is None:
        raise click.UsageError(
            f"no graph specified: pass {GRAPH_METAVAR} as the first argument or --store, set {STORE_VARIABLE},"
            f" or use a profile (see `omnigraph config path`){alternative and f'; or pass {alternative}'}"
        )
    if scope.kind == "cluster":
        raise click.UsageError(f"{scope.origin} selects a cluster: {_NO_CLUSTER}")
    if scope.kind == "server":
        return _ServerLocation(scope.target, address.graph_id or scope.default_graph, scope.token)
    if address.graph_id is not None:
        raise _misplaced_graph_id(address.graph_id, f"{scope.origin}, which selects a store")
    return _ServerLocation(scope.target) if is_server_url(scope.target) else scope.target


def parse_storage_uri(location: str) -> "GraphRoot":
    """Parse a storage location; raise an error for a server address."""
    from omnigraph.storage.root import parse_root

    from .server_target import is_server_url

    if is_server_url(location):
        raise _storage_required(location)
    return parse_root(location)


def _storage_required(server: str) -> InputError:
    from .server_target import is_server_url

    context = click.get_current_context(silent=True)
    command = "omnigraph" if context is None else context.command_path
    local_hint = f"run `{command}` on the machine that has the graph's files, with a path or s3://bucket/prefix"
    shown_server = f"{server.partition('://')[0]}://…" if is_server_url(server) else server
    return InputError(
        f"'{shown_server}' is a server address; this command requires direct storage access",
        reason="requires direct storage",
        hint=_STORAGE_HINTS.get(command) or local_hint,
    )


def open_snapshot(target: "GraphRoot | ServerTarget | str", branch: str | None, snapshot: str | None) -> "Graph":
    """Open a branch or a past revision for reading. The default is main, or the current position in the shell."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot cannot be combined")
    from .opening import open_graph

    uri = target if isinstance(target, str) else target.uri
    current = current_graph()
    if branch is None and snapshot is None and current is not None and current.uri == uri:
        snapshot = current.commit_id
    graph = open_graph(target, branch=branch or current_branch(uri), read_only=True)
    return graph if snapshot is None else graph.at(snapshot)


def announce_target(verb: str, root: "GraphRoot | ServerTarget") -> None:
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
    from .server_target import ServerTarget

    access = "direct, local" if root.is_local else "direct, remote"
    if isinstance(root, ServerTarget):
        access = "served"
    show.note(f"{verb} {root.uri} ({access})")


def require_consent(action: str, root: "GraphRoot | ServerTarget", *, yes: bool) -> None:
    """Ask for confirmation before destroying data on a remote store; scripts must pass `--yes`."""
    if root.is_local or yes:
        return
    if settings().json or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            f"{action} on {root.uri} requires confirmation; nothing was changed",
            reason="not confirmed",
            hint="pass --yes to confirm",
        )
    click.echo(f"{action} on {root.uri}: continue? [yes/no] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("yes", "y"):
        raise click.Abort
