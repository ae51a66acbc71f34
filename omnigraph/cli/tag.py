"""`omnigraph tag`: names for single commits."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import actor_option, address, store_option, tell_target, uri_option
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.tags import Tag

_COMMANDS = {
    "create": Lazy(__name__, "create", "Create a tag"),
    "list": Lazy(__name__, "list_", "List tags"),
    "delete": Lazy(__name__, "delete", "Delete a tag"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def tag() -> None:
    """Create, list and delete tags: permanent names of commits."""


@click.command()
@click.argument("name")
@click.argument("point", metavar="[COMMIT]", required=False)
@click.option(
    "--branch",
    default="main",
    show_default=True,
    help="Branch whose head is tagged when COMMIT is omitted",
)
@click.option("--message", "-m", help="Tag message")
@uri_option
@store_option
@actor_option
@shared_options
def create(name: str, point: str | None, uri: str | None, store: str | None, **how: Any) -> None:
    """Tag the head of a branch, or COMMIT: an id, a timestamp, HEAD~2. Tagged data is kept.

    NAME may contain letters, digits, '.', '-' and '_', with '/' between parts; at most 200 bytes.
    """
    root = address(uri, store, way="--uri")
    tell_target("tag create", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=how["branch"], actor=how["actor"])
    made = graph.tag(name, point, message=how["message"])
    if settings().json:
        show.document(_document(made))
    else:
        show.result(f"tagged {made.commit_id} as {made.name}")


@click.command("list")
@click.argument("graph_uri", metavar="[URI]", required=False)
@uri_option
@store_option
@shared_options
def list_(graph_uri: str | None, uri: str | None, store: str | None) -> None:
    """List tags, sorted by name."""
    root = address(graph_uri, store, option=uri)
    from omnigraph.api.opening import open as open_graph

    found = open_graph(root.uri, read_only=True).tags.values()
    if settings().json:
        show.document({"tags": [_document(one) for one in found]})
        return
    for one in found:
        parts = [one.name, click.style(one.commit_id, fg="yellow"), _when(one), one.actor or "-"]
        show.result("  ".join([*parts, *([one.message] if one.message else [])]))


@click.command()
@click.argument("name")
@uri_option
@store_option
@actor_option
@shared_options
def delete(name: str, uri: str | None, store: str | None, actor: str | None) -> None:
    """Delete a tag. Its commit is kept while branches, other tags or its age retain it."""
    root = address(uri, store, way="--uri")
    tell_target("tag delete", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, actor=actor)
    graph.tags.delete(name)
    if settings().json:
        show.document({"uri": root.uri, "name": name.strip(), "actor_id": graph.actor})
    else:
        show.result(f"deleted tag {name.strip()}")


def _document(one: "Tag") -> dict[str, Any]:
    return {
        "name": one.name,
        "graph_commit_id": one.commit_id,
        "graph_branch": one.branch,
        "created_at": one.created_at,
        "actor_id": one.actor,
        "message": one.message,
    }


def _when(one: "Tag") -> str:
    return f"{datetime.fromtimestamp(one.created_at / 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
