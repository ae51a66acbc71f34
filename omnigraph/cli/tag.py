"""`omnigraph tag`: create, list and delete names for single commits."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import GraphAddress, actor_option, announce_target, graph_arguments, resolve_target
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.tags import Tag

_COMMANDS = {
    "create": LazyCommand(__name__, "create", "Create a tag"),
    "list": LazyCommand(__name__, "list_", "List tags"),
    "delete": LazyCommand(__name__, "delete", "Delete a tag"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def tag() -> None:
    """Create, list and delete tags: permanent names for commits."""


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch whose head is tagged when COMMIT is omitted")
@click.option("--message", "-m", help="Tag message")
@graph_arguments(name="NAME", point="[COMMIT]")
@actor_option
@shared_options
def create(name: str, point: str | None, address: GraphAddress, **options: Any) -> None:
    """Tag the head of a branch, or COMMIT, which is an id, a timestamp or another revision, such as HEAD~2.

    A cleanup keeps the data of tagged commits. NAME may contain letters, digits, '.', '-' and '_', with '/' between
    parts, and must not exceed 200 bytes.
    """
    root = resolve_target(address)
    announce_target("tag create", root)
    graph = open_graph(root, branch=options["branch"], actor=options["actor"])
    new_tag = graph.tag(name, point, message=options["message"])
    if settings().json:
        show.document(_tag_document(new_tag))
    else:
        show.confirmation(f"tagged {new_tag.commit_id} as {new_tag.name}")


@click.command("list")
@graph_arguments()
@shared_options
def list_(address: GraphAddress) -> None:
    """List tags, sorted by name."""
    root = resolve_target(address)
    tags = open_graph(root, read_only=True).tags.values()
    if settings().json:
        show.document({"tags": [_tag_document(listed_tag) for listed_tag in tags]})
        return
    for listed_tag in tags:
        columns = [
            listed_tag.name,
            click.style(listed_tag.commit_id, fg="yellow"),
            _format_creation_time(listed_tag),
            listed_tag.actor or "-",
        ]
        show.result("  ".join([*columns, *([listed_tag.message] if listed_tag.message else [])]))


@click.command()
@graph_arguments(name="NAME")
@actor_option
@shared_options
def delete(name: str, address: GraphAddress, actor: str | None) -> None:
    """Delete a tag.

    A cleanup then keeps the tagged commit only if it is recent or if a branch or another tag needs it.
    """
    root = resolve_target(address)
    announce_target("tag delete", root)
    graph = open_graph(root, actor=actor)
    graph.tags.delete(name)
    if settings().json:
        show.document({"uri": root.uri, "name": name.strip(), "actor_id": graph.actor})
    else:
        show.confirmation(f"deleted tag {name.strip()}")


def _tag_document(shown_tag: "Tag") -> dict[str, Any]:
    return {
        "name": shown_tag.name,
        "graph_commit_id": shown_tag.commit_id,
        "graph_branch": shown_tag.branch,
        "created_at": shown_tag.created_at,
        "actor_id": shown_tag.actor,
        "message": shown_tag.message,
    }


def _format_creation_time(shown_tag: "Tag") -> str:
    return f"{datetime.fromtimestamp(shown_tag.created_at / 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
