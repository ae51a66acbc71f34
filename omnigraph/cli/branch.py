"""`omnigraph branch`: create, list, merge, rename, reset and delete branches."""

import click

from . import show
from .address import (
    GraphAddress,
    actor_option,
    announce_target,
    current_branch,
    graph_arguments,
    require_consent,
    resolve_target,
    yes_option,
)
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options

_MERGE_MODULE = "omnigraph.cli.branch_merge"
_COMMANDS = {
    "create": LazyCommand(__name__, "create", "Create a branch from a branch or a past commit"),
    "list": LazyCommand(__name__, "list_", "List branches"),
    "merge": LazyCommand(_MERGE_MODULE, "merge", "Merge a branch into another, or preview its conflicts"),
    "rename": LazyCommand(_MERGE_MODULE, "rename", "Rename a branch"),
    "reset": LazyCommand("omnigraph.cli.branch_reset", "reset", "Reset a branch to a past commit"),
    "delete": LazyCommand(__name__, "delete", "Delete a merged branch"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def branch() -> None:
    """Create, list, merge, rename, reset and delete branches."""


@click.command()
@click.option(
    "--from",
    "source",
    metavar="REVISION",
    default="main",
    show_default=True,
    help="Revision to start from: a branch, commit, tag, timestamp or other revision, such as main~3",
)
@click.option(
    "--commit", "commit_id", metavar="REVISION", help="Commit on the --from branch to use instead of its head"
)
@graph_arguments(name="NAME")
@actor_option
@shared_options
def create(name: str, source: str, commit_id: str | None, address: GraphAddress, actor: str | None) -> None:
    """Create a branch. No data is copied, so the cost does not depend on the graph's size.

    NAME may contain letters, digits, '.', '-' and '_', with '/' between parts, and must not exceed
    200 bytes.
    """
    root = resolve_target(address)
    announce_target("branch create", root)
    graph = open_graph(root, actor=actor)
    new_branch = graph.branches.create(name, from_=source, commit=commit_id)
    head_commit = new_branch.snapshot.commit_id
    if settings().json:
        members = {"uri": root.uri, "from": source, "name": new_branch.branch_name}
        show.document(members | {"graph_commit_id": head_commit, "actor_id": new_branch.actor})
    else:
        show.confirmation(f"created branch {new_branch.branch_name} from {source} at {head_commit}")


@click.command("list")
@graph_arguments()
@shared_options
def list_(address: GraphAddress) -> None:
    """List branches, sorted by name."""
    root = resolve_target(address)
    branch_names = open_graph(root, read_only=True).branches.names()
    if settings().json:
        show.document({"branches": branch_names})
    else:
        show.result("\n".join(branch_names))


@click.command()
@graph_arguments(name="NAME")
@actor_option
@click.option("--force", is_flag=True, help="Delete the branch even if it has unmerged commits")
@yes_option
@shared_options
def delete(name: str, address: GraphAddress, actor: str | None, force: bool, yes: bool) -> None:
    """Delete a branch.

    If some of its commits cannot be reached from another branch or a tag, --force is required, and these commits become
    unreadable.
    """
    root = resolve_target(address)
    require_consent(f"branch delete {name}", root, yes=yes)
    announce_target("branch delete", root)
    graph = open_graph(root, branch=current_branch(root.uri), actor=actor)
    graph.branches.delete(name, force=force)
    if settings().json:
        show.document({"uri": root.uri, "name": name.strip(), "actor_id": graph.actor})
    else:
        show.confirmation(f"deleted branch {name.strip()}")
