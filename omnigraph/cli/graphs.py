"""`omnigraph graphs`: list the graphs on a server."""

import click

from . import show
from .group import LazyCommand, LazyGroup
from .options import scope_option, scope_options, settings, shared_options

_COMMANDS = {"list": LazyCommand(__name__, "list_", "List the graphs on a server")}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def graphs() -> None:
    """List the graphs on a server."""


@click.command("list")
@scope_option("--server", "server", metavar="NAME|URL", help="Server, by its name in the configuration or its URL")
@scope_option(
    "--profile", "profile", metavar="NAME", help="Profile that selects the server; defaults to $OMNIGRAPH_PROFILE"
)
@shared_options
def list_(server: str | None, profile: str | None) -> None:
    """List the graphs on a server, sorted by id, with their locations.

    Without --server, the server comes from the profile or from `defaults.server` in the configuration.
    """
    from .server_target import list_served_graphs

    served_graphs = list_served_graphs(*_find_server(server, profile))
    if settings().json:
        show.document({"graphs": served_graphs})
        return
    for graph in served_graphs:
        show.result(f"{graph['graph_id']}\t{graph['uri']}")
    if not served_graphs:
        show.note("there are no graphs")


def _find_server(server: str | None, profile: str | None) -> tuple[str, str | None]:
    """Return the URL of the server, and a reference to its token if the profile has one."""
    from .operator_config import load_config
    from .profiles import locate_server, resolve_scope

    config = load_config()
    if server is not None:
        return locate_server(config, server), None
    scope = resolve_scope(config, profile)
    if scope is None:
        raise click.UsageError("no server specified: pass --server, or use a profile (see `omnigraph config path`)")
    if scope.kind != "server":
        raise click.UsageError(f"{scope.origin} selects a {scope.kind}: pass --server, or a profile that has a server")
    return scope.target, scope.token
