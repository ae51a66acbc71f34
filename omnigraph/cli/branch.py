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
    "create": Lazy(__name__, "create", "Make a branch from a branch or from a past commit."),
    "list": Lazy(__name__, "list_", "List the branches."),
    "merge": Lazy(_MERGE, "merge", "Merge a branch into another, or show what stands against it."),
    "rename": Lazy(_MERGE, "rename", "Give a branch another name."),
    "delete": Lazy(__name__, "delete", "Delete a branch."),
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
    metavar="POINT",
    default="main",
    show_default=True,
    help="A branch, a commit, a tag, a moment, or main~3.",
)
@click.option(
    "--commit", "commit_id", metavar="POINT", help="A past commit of it, instead of its head."
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
    """Make a branch. No data is copied: it costs the same for any graph.

    NAME has letters, digits, '.', '-', '_', and '/' between parts; at most 200 bytes.
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
@click.argument("place", metavar="URI", required=False)
@uri_option
@store_option
@shared_options
def list_(place: str | None, uri: str | None, store: str | None) -> None:
    """List the branches, sorted by name."""
    root = address(place, store, option=uri)
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
    """Delete a branch. What other branches took from it stays."""
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
