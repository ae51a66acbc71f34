"""`omnigraph commit`: list and show a graph's commits, as JSON or as text."""

from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import GraphAddress, current_branch, graph_arguments, resolve_target
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.history.commit import Commit

_COMMANDS = {
    "list": LazyCommand(__name__, "list_", "List commits on a branch, newest first"),
    "show": LazyCommand(__name__, "show_", "Show one commit"),
    "changes": LazyCommand("omnigraph.cli.changes", "commit_changes", "Show what one commit changed"),
}
_FILTER_NAMES = ("actor", "operation", "type")


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def commit() -> None:
    """List and show commits."""


@click.command("list")
@click.option("--branch", default="main", show_default=True, help="Branch to list")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Filter by actor, operation or changed type, such as actor=ann",
)
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of commits")
@graph_arguments()
@shared_options
def list_(address: GraphAddress, branch: str, filters: tuple[str, ...], limit: int | None) -> None:
    """List the commits on a branch, newest first."""
    root = resolve_target(address)
    criteria = dict(_parse_filter(filter_text) for filter_text in filters)
    graph = open_graph(root, branch=branch, read_only=True)
    operation = criteria.pop("operation", None)
    logged_commits = _log_commits(graph, None if operation else limit, criteria)
    matching_commits = [
        logged_commit for logged_commit in logged_commits if operation in (None, logged_commit.operation)
    ][:limit]
    if settings().json:
        show.document({"commits": [commit_document(logged_commit) for logged_commit in matching_commits]})
        return
    for logged_commit in matching_commits:
        show.result(_summary_line(logged_commit))


def _log_commits(graph: "Graph", limit: int | None, criteria: dict[str, str]) -> "list[Commit]":
    """Return the matching commits. For the recovery actor, include commits that recovery finished for other actors."""
    from omnigraph.history.recovery_records import RECOVERY_ACTOR

    if criteria.get("actor") != RECOVERY_ACTOR:
        return graph.log(limit=limit, **criteria)  # type: ignore[arg-type]
    outcomes = graph.maintenance.operations.recoveries()
    finished_ids = {outcome.commit_id for outcome in outcomes if outcome.kind == "finished"}
    logged_commits = graph.log(type=criteria.get("type"))
    return [
        logged_commit
        for logged_commit in logged_commits
        if logged_commit.actor == RECOVERY_ACTOR or logged_commit.id in finished_ids
    ][:limit]


def _parse_filter(filter_text: str) -> tuple[str, str]:
    filter_name, separator, value = filter_text.partition("=")
    if not separator or filter_name not in _FILTER_NAMES:
        expected = ", ".join(f"{known_name}=…" for known_name in _FILTER_NAMES)
        raise click.UsageError(f"--filter {filter_text}: expected one of {expected}")
    return filter_name, value


@click.command("show")
@graph_arguments(commit_id="ID")
@shared_options
def show_(commit_id: str, address: GraphAddress) -> None:
    """Show one commit: author, time, message and changes. HEAD is the newest commit on main."""
    root = resolve_target(address)
    shown_commit = open_graph(root, branch=current_branch(root.uri), read_only=True).revisions.commit(commit_id)
    if settings().json:
        show.document(commit_document(shown_commit))
    else:
        show.result("\n".join(_detail_lines(shown_commit)))


def commit_document(shown_commit: "Commit") -> dict[str, Any]:
    """Return a commit as JSON-compatible data; times are in microseconds since 1970."""
    return {
        "graph_commit_id": shown_commit.id,
        "graph_branch": shown_commit.branch,
        "graph_manifest_version": shown_commit.manifest_version,
        "parent_commit_id": shown_commit.parent,
        "merged_parent_commit_id": shown_commit.merged_parent,
        "actor_id": shown_commit.actor,
        "created_at": shown_commit.created_at,
        "published_at": shown_commit.published_at,
        "operation": shown_commit.operation,
        "message": shown_commit.message,
        "types": [
            {
                "type_key": type_key,
                "published_dataset_version": entry and entry.version,
                "entity_count": entry and entry.row_count,
            }
            for type_key, entry in sorted(shown_commit.tables.items())
        ],
    }


def _summary_line(shown_commit: "Commit") -> str:
    published = f"{shown_commit.published:%Y-%m-%d %H:%M:%S}"
    columns = [click.style(shown_commit.id, fg="yellow"), published, shown_commit.actor or "-", shown_commit.operation]
    return "  ".join([*columns, *([shown_commit.message] if shown_commit.message else [])])


def _detail_lines(shown_commit: "Commit") -> list[str]:
    fields = {
        "commit": click.style(shown_commit.id, fg="yellow"),
        "parent": shown_commit.parent,
        "merged": shown_commit.merged_parent,
        "branch": shown_commit.branch,
        "actor": shown_commit.actor,
        "began": shown_commit.created.isoformat(timespec="milliseconds"),
        "published": shown_commit.published.isoformat(timespec="milliseconds"),
        "operation": shown_commit.operation,
        "message": shown_commit.message,
    }
    lines = [f"{name:<10}{value}" for name, value in fields.items() if value is not None]
    for type_key, entry in sorted(shown_commit.tables.items()):
        description = f"version {entry.version}, {show.count(entry.row_count, 'row')}" if entry else "dropped"
        lines.append(f"  {type_key}: {description}")
    return lines
