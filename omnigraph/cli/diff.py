"""`omnigraph diff`: the differences between two revisions, entity by entity."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import exits, show
from .address import address, store_option, uri_option
from .changes import change_line, chosen, filter_options
from .conflicts import short_value
from .options import settings, shared_options
from .query import print_lines

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.comparison import Diff


@click.command()
@click.argument("old_revision", metavar="A")
@click.argument("new_revision", metavar="[B]", required=False)
@click.option("--stat", is_flag=True, help="Show only counts")
@click.option("--check", is_flag=True, help="Exit 5 if there are differences")
@filter_options
@uri_option
@store_option
@shared_options
def diff(
    old_revision: str,
    new_revision: str | None,
    stat: bool,
    check: bool,
    uri: str | None,
    store: str | None,
    **filters: Any,
) -> None:
    """Show the changes from revision A to B; B defaults to the head of main.

    A revision is a branch, tag, commit, version or timestamp, optionally with steps back: main~3.
    A..B is the same as A B; A...B shows what B changed since it diverged from A.
    """
    root = address(uri, store, way="--uri")
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, read_only=True)
    found = graph.diff(old_revision, new_revision, **chosen(filters))
    if settings().json:
        show.document(_document(graph, found, stat=stat))
    else:
        print_lines(_lines(found, stat=stat))
    if check and found:
        click.get_current_context().exit(exits.DIFFERENCES)


def _lines(found: "Diff", *, stat: bool) -> Iterator[str]:
    summary = found.summary()
    if stat:
        for name, ops in sorted(summary["types"].items()):
            yield f"{name}: {_counts(ops['insert'], ops['update'], ops['delete'])}"
    else:
        for one in found:
            yield _line(one)
    total = summary["inserts"], summary["updates"], summary["deletes"]
    yield _counts(*total) if any(total) else "no differences"


def _line(one: Any) -> str:
    """Format a change with the old and new values that an update changed."""
    if one.op != "update":
        return change_line(one)
    was = {**(one.before or {}), **(one.endpoints_before or {})}
    now = {**(one.after or {}), **(one.endpoints_after or {})}
    told = [f"{n} {short_value(was, n)} -> {short_value(now, n)}" for n in one.changed]
    head = change_line(one).rpartition(": ")[0]
    return f"{head}: {', '.join(told)}"


def _counts(inserts: int, updates: int, deletes: int) -> str:
    return f"{inserts} added, {updates} changed, {deletes} removed"


def _document(graph: "Graph", found: "Diff", *, stat: bool) -> dict[str, Any]:
    facts = {"from": found.from_commit, "to": found.to_commit, "summary": found.summary()}
    return facts if stat else facts | {"changes": list(_changes(graph, found))}


def _changes(graph: "Graph", found: "Diff") -> Iterator[dict[str, Any]]:
    from omnigraph.feed import document_form

    ids: dict[str, int] = {}
    for commit in (found.from_commit, found.to_commit):
        ir = graph.at(commit).schema.ir
        ids |= {f"{declared.kind}:{declared.name}": declared.type_id for declared in ir.types}
    for table in found.tables():
        form = document_form(ids.get(table.key, 0), table)
        for one in table.records():
            changed = {"changed": list(one.changed)} if one.changed else {}
            yield form(one) | changed
