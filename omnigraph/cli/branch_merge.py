"""`omnigraph branch merge` and `omnigraph branch rename`."""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import MergeConflict

from . import show
from .address import actor_option, address, store_option, tell_target, uri_option
from .conflicts import (
    Next,
    counts,
    deciding_options,
    lost_documents,
    preview_conflicts,
    strategy_of,
    tell_lost,
    told_conflict,
    typed,
)
from .engines import chosen, engine_options
from .options import settings, shared_options, will_write

if TYPE_CHECKING:
    from omnigraph.merges import MergeResult


@click.command()
@click.argument("source")
@click.option("--into", default="main", show_default=True, help="Branch to merge into")
@click.option("--delete-branch", is_flag=True, help="Delete SOURCE after the merge")
@click.option("--collapse-edges", is_flag=True, help="Keep only one of equal edges that both added")
@deciding_options
@engine_options("when both branches changed millions of rows")
@uri_option
@store_option
@actor_option
@shared_options
def merge(source: str, into: str, uri: str | None, store: str | None, **how: Any) -> None:
    """Merge branch SOURCE into another, as one commit with two parents.

    Changes made on only one branch are taken. Different changes of the same value are conflicts:
    nothing is written, and the conflicts are shown with the values of both branches. Use
    --strategy to resolve them.
    """
    root = address(uri, store, way="--uri")
    strategies = how.pop("strategies")
    strategy = strategy_of(strategies)
    actor, dry_run = how.pop("actor"), how["dry_run"]
    where = {name: how.pop(name) for name in ("engine", "master", "remote")}
    if not dry_run:
        tell_target("branch merge", root)
        will_write()
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=into, actor=actor, read_only=dry_run)
    words = ("branch", "merge", source, *(("--into", into) if into != "main" else ()))
    named = {name: value for name, value in where.items() if value != "auto"}
    again = typed(words, uri or store or "", how | named, strategies)
    try:
        done = graph.merge(source, into, strategy=strategy, **how, **chosen(**where))
    except MergeConflict as error:
        told_conflict(error, f"'{source}' cannot be merged into '{into}'", (into, source), again)
        return
    _tell(done, source, into, graph.actor, again)


def _tell(done: "MergeResult", source: str, into: str, actor: str | None, again: Next) -> None:
    if done.branch_delete_error is not None:
        show.note(f"warning: '{source}' was merged, but not deleted: {done.branch_delete_error}")
    if settings().json:
        show.document(_document(done, source, into, actor))
        return
    if done.outcome == "already_up_to_date":
        show.result(f"{into} already has all changes of {source}")
        return
    if done.conflicts:
        what = f"'{source}' cannot be merged into '{into}'"
        preview_conflicts(done.conflicts, what, (into, source), again)
        return
    would = "would merge" if done.commit is None else "merged"
    end = "" if done.commit is None else f"; commit {done.commit.id}"
    show.result(f"{would} {source} into {into}: {counts(done)}{end}")
    for edge in done.parallel_edges[:3]:
        name = edge.key.partition(":")[2]
        show.note(f"both branches added the same {name}: '{edge.ours}' and '{edge.theirs}'")
    tell_lost(done, (into, source))


def _document(done: "MergeResult", source: str, into: str, actor: str | None) -> dict[str, Any]:
    from .commit import document

    deleted = {"branch_deleted": done.branch_deleted}
    if done.branch_delete_error is not None:
        deleted |= {"branch_delete_error": done.branch_delete_error}  # type: ignore[dict-item]
    return {
        "source": source,
        "target": into,
        "outcome": done.outcome,
        "actor_id": actor,
        **deleted,
        "stats": done.stats,
        "merge_conflicts": [one.to_json() for one in done.conflicts],
        "lost_edges": lost_documents(done, (into, source)),
        "commit": document(done.commit) if done.commit is not None else None,
    }


@click.command()
@click.argument("name")
@click.argument("new_name", metavar="NEW")
@uri_option
@store_option
@actor_option
@shared_options
def rename(name: str, new_name: str, uri: str | None, store: str | None, actor: str | None) -> None:
    """Rename a branch. Running readers and writers of the branch are not disturbed."""
    root = address(uri, store, way="--uri")
    tell_target("branch rename", root)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, actor=actor)
    made = graph.branches.rename(name, new_name)
    if settings().json:
        facts = {"uri": root.uri, "from": name.strip(), "name": made.branch_name}
        show.document(facts | {"actor_id": graph.actor})
    else:
        show.result(f"renamed branch {name.strip()} to {made.branch_name}")
