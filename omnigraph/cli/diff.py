"""`omnigraph diff`: show which entities differ between two revisions."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import GraphAddress, current_branch, graph_arguments, resolve_target
from .changes import filter_arguments, filter_options, format_change, schema_change_members, schema_lines
from .conflicts import format_value
from .opening import open_graph
from .options import settings, shared_options
from .query import print_lines
from .server_target import is_served

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.results.diff import Diff


@click.command()
@click.option("--stat", is_flag=True, help="Show only counts")
@click.option("--check", is_flag=True, help="Exit with code 5 if there are differences")
@filter_options
@graph_arguments(old_revision="A", new_revision="[B]")
@shared_options
def diff(
    old_revision: str,
    new_revision: str | None,
    stat: bool,
    check: bool,
    address: GraphAddress,
    **filters: Any,
) -> None:
    """Show the changes from revision A to B; B defaults to the head of main.

    A revision is a branch, tag, commit, version or timestamp, optionally followed by ~N, as in
    main~3. A..B is the same as A B; A...B shows what B changed since it diverged from A.
    """
    root = resolve_target(address)
    graph = open_graph(root, branch=current_branch(root.uri), read_only=True)
    difference = graph.diff(old_revision, new_revision, **filter_arguments(filters))
    if settings().json:
        show.document(_difference_document(graph, difference, stat=stat))
    else:
        print_lines(_difference_lines(difference, stat=stat))
    if check and difference:
        click.get_current_context().exit(exits.DIFFERENCES)


def _difference_lines(difference: "Diff", *, stat: bool) -> Iterator[str]:
    summary = difference.summary()
    yield from schema_lines(difference.schema_change)
    if stat:
        for type_name, op_counts in sorted(summary["types"].items()):
            counts = (op_counts[op] for op in ("insert", "update", "delete"))
            yield f"{type_name}: {_describe_counts(*counts)}"
    else:
        for change in difference:
            yield _change_line(change)
    total = summary["inserts"], summary["updates"], summary["deletes"]
    yield _describe_counts(*total) if any(total) or difference.schema_change else "no differences"


def _change_line(change: Any) -> str:
    """Format a change; an update includes the old and new values."""
    if change.op != "update":
        return format_change(change)
    before = {**(change.before or {}), **(change.endpoints_before or {})}
    after = {**(change.after or {}), **(change.endpoints_after or {})}
    changed_values = [f"{name} {format_value(before, name)} -> {format_value(after, name)}" for name in change.changed]
    headline = format_change(change).rpartition(": ")[0]
    return f"{headline}: {', '.join(changed_values)}"


def _describe_counts(inserts: int, updates: int, deletes: int) -> str:
    return f"{inserts} added, {updates} changed, {deletes} removed"


def _difference_document(graph: "Graph", difference: "Diff", *, stat: bool) -> dict[str, Any]:
    members = {"from": difference.from_commit, "to": difference.to_commit, "summary": difference.summary()}
    members |= schema_change_members(difference.schema_change)
    return members if stat else members | {"changes": list(_change_documents(graph, difference))}


def _change_documents(graph: "Graph", difference: "Diff") -> Iterator[Mapping[str, Any]]:
    if is_served(graph):
        return difference.change_documents()  # type: ignore[attr-defined,no-any-return]
    from omnigraph.api.change_feed.diff_documents import iter_diff_documents

    return iter_diff_documents(graph, difference)
