"""`omnigraph branch`: create, list, merge, rename and delete branches."""

import click

from . import show
from .address import (
    actor_option,
    address,
    consent,
    store_option,
    tell_target,
    uri_option,
    yes_option,
)
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options

_MERGE = "omnigraph.cli.branch_merge"
_COMMANDS = {
    "create": Lazy(__name__, "create", "Create a branch from a branch or a past commit"),
    "list": Lazy(__name__, "list_", "List branches"),
    "merge": Lazy(_MERGE, "merge", "Merge a branch into another, or preview its conflicts"),
    "rename": Lazy(_MERGE, "rename", "Rename a branch"),
    "delete": Lazy(__name__, "delete", "Delete a branch"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def branch() -> None:
    """Create, list, merge, rename and delete branches."""


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "source",
    metavar="REVISION",
    default="main",
    show_default=True,
    help="Branch, commit, tag, timestamp, or main~3 to start from",
)
@click.option(
    "--commit",
    "commit_id",
    metavar="REVISION",
    help="Past commit of --from to use instead of its head",
)
@uri_option
@store_option
@actor_option
@shared_options
def create(
    name: str,
    source: str,
    commit_id: str | None,
    uri: str | None,
    store: str | None,
    actor: str | None,
) -> None:
    """Create a branch. No data is copied: the cost does not depend on the graph's size.

    NAME may contain letters, digits, '.', '-' and '_', with '/' between parts; at most 200 bytes.
    """
    root = address(uri, store, way="--uri")
    tell_target("branch create", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, actor=actor)
    made = graph.branches.create(name, from_=source, commit=commit_id)
    head = made.snapshot.commit_id
    if settings().json:
        facts = {"uri": root.uri, "from": source, "name": made.branch_name}
        show.document(facts | {"graph_commit_id": head, "actor_id": made.actor})
    else:
        show.result(f"created branch {made.branch_name} from {source} at {head}")


@click.command("list")
@click.argument("graph_uri", metavar="[URI]", required=False)
@uri_option
@store_option
@shared_options
def list_(graph_uri: str | None, uri: str | None, store: str | None) -> None:
    """List branches, sorted by name."""
    root = address(graph_uri, store, option=uri)
    from omnigraph.api.opening import open as open_graph

    names = open_graph(root.uri, read_only=True).branches.names()
    if settings().json:
        show.document({"branches": names})
    else:
        show.result("\n".join(names))


@click.command()
@click.argument("name")
@uri_option
@store_option
@actor_option
@yes_option
@shared_options
def delete(name: str, uri: str | None, store: str | None, actor: str | None, yes: bool) -> None:
    """Delete a branch. Commits that other branches merged from it are kept."""
    root = address(uri, store, way="--uri")
    consent(f"delete branch {name}", root, yes=yes)
    tell_target("branch delete", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, actor=actor)
    graph.branches.delete(name)
    if settings().json:
        show.document({"uri": root.uri, "name": name.strip(), "actor_id": graph.actor})
    else:
        show.result(f"deleted branch {name.strip()}")
