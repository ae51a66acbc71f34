"""`omnigraph commit`: the commits of a graph, for programs and for people."""

from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import address, store_option, uri_argument, uri_option
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.commit import Commit

_COMMANDS = {
    "list": Lazy(__name__, "list_", "List the commits of a branch, newest first"),
    "show": Lazy(__name__, "show_", "Show one commit"),
    "changes": Lazy("omnigraph.cli.changes", "commit_changes", "Show what one commit changed"),
}
_FILTERS = ("actor", "operation", "type")


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def commit() -> None:
    """List and show commits."""


@click.command("list")
@uri_argument
@click.option("--branch", default="main", show_default=True, help="Branch to list")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only commits with this actor, operation or type",
)
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of commits")
@store_option
@shared_options
def list_(
    uri: str | None, branch: str, filters: tuple[str, ...], limit: int | None, store: str | None
) -> None:
    """List the commits in the history of a branch, newest first."""
    root = address(uri, store)
    wanted = dict(_filter(text) for text in filters)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch, read_only=True)
    operation = wanted.pop("operation", None)
    listed = graph.log(limit=None if operation else limit, **wanted)  # type: ignore[arg-type]
    found = [one for one in listed if operation in (None, one.operation)][:limit]
    if settings().json:
        show.document({"commits": [document(one) for one in found]})
        return
    for one in found:
        show.result(_line(one))


def _filter(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or name not in _FILTERS:
        known = ", ".join(f"{one}=…" for one in _FILTERS)
        raise click.UsageError(f"--filter {text}: expected one of {known}")
    return name, value


@click.command("show")
@click.argument("commit_id", metavar="ID")
@uri_option
@store_option
@shared_options
def show_(commit_id: str, uri: str | None, store: str | None) -> None:
    """Show one commit: author, time, message and changes. HEAD is the newest commit of main."""
    root = address(uri, store, way="--uri")
    from omnigraph.api.opening import open as open_graph

    found = open_graph(root.uri, read_only=True).revisions.commit(commit_id)
    if settings().json:
        show.document(document(found))
    else:
        show.result("\n".join(_lines(found)))


def document(one: "Commit") -> dict[str, Any]:
    """Return a commit as JSON-compatible data; times are microseconds since 1970."""
    return {
        "graph_commit_id": one.id,
        "graph_branch": one.branch,
        "graph_manifest_version": one.manifest_version,
        "parent_commit_id": one.parent,
        "merged_parent_commit_id": one.merged_parent,
        "actor_id": one.actor,
        "created_at": one.created_at,
        "published_at": one.published_at,
        "operation": one.operation,
        "message": one.message,
        "types": [
            {
                "type_key": key,
                "published_dataset_version": entry and entry.version,
                "entity_count": entry and entry.rows,
            }
            for key, entry in sorted(one.tables.items())
        ],
    }


def _line(one: "Commit") -> str:
    when = f"{one.published:%Y-%m-%d %H:%M:%S}"
    parts = [click.style(one.id, fg="yellow"), when, one.actor or "-", one.operation]
    return "  ".join([*parts, *([one.message] if one.message else [])])


def _lines(one: "Commit") -> list[str]:
    facts = {
        "commit": click.style(one.id, fg="yellow"),
        "parent": one.parent,
        "merged": one.merged_parent,
        "branch": one.branch,
        "actor": one.actor,
        "began": one.created.isoformat(timespec="milliseconds"),
        "published": one.published.isoformat(timespec="milliseconds"),
        "operation": one.operation,
        "message": one.message,
    }
    lines = [f"{name:<10}{value}" for name, value in facts.items() if value is not None]
    for key, entry in sorted(one.tables.items()):
        told = f"version {entry.version}, {show.count(entry.rows, 'row')}" if entry else "dropped"
        lines.append(f"  {key}: {told}")
    return lines
