"""`omnigraph revert` and `omnigraph cherry-pick`: undo a commit, or apply it to another branch."""

from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import MergeConflict

from . import show
from .address import actor_option, address, store_option, tell_target, uri_option
from .conflicts import (
    counts,
    deciding_options,
    lost_documents,
    preview_conflicts,
    strategy_of,
    tell_lost,
    told_conflict,
    typed,
)
from .options import settings, shared_options, will_write

if TYPE_CHECKING:
    from omnigraph.merges import MergeResult

_mainline = click.option(
    "--mainline", type=click.IntRange(min=1), help="Parent number to diff a merge commit against"
)


@click.command()
@click.argument("commit")
@click.option("--branch", default="main", show_default=True, help="Branch to revert on")
@_mainline
@deciding_options
@uri_option
@store_option
@actor_option
@shared_options
def revert(commit: str, branch: str, **how: Any) -> None:
    """Undo the changes of a commit with a new commit; later changes are kept.

    COMMIT is an id, a tag, HEAD or HEAD~2. Values that were changed again since are conflicts.
    """
    _run("revert", commit, branch, how)


@click.command("cherry-pick")
@click.argument("commit")
@click.option("--into", "branch", default="main", show_default=True, help="Branch to apply to")
@_mainline
@deciding_options
@uri_option
@store_option
@actor_option
@shared_options
def cherry_pick(commit: str, branch: str, **how: Any) -> None:
    """Apply the changes of one commit to a branch.

    COMMIT is an id, a tag, or a branch, optionally with steps back: review~1.
    """
    _run("cherry-pick", commit, branch, how)


def _run(verb: str, commit: str, branch: str, how: dict[str, Any]) -> None:
    uri, store = how.pop("uri"), how.pop("store")
    root = address(uri, store, way="--uri")
    actor, strategies = how.pop("actor"), how.pop("strategies")
    strategy = strategy_of(strategies)
    if not how["dry_run"]:
        tell_target(verb, root)
        will_write()
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch, actor=actor, read_only=how["dry_run"])
    flag = "--branch" if verb == "revert" else "--into"
    words = (verb, commit, *((flag, branch) if branch != "main" else ()))
    again = typed(words, uri or store, how, strategies)
    sides = branch, f"before {commit}" if verb == "revert" else commit
    turned = "reverted" if verb == "revert" else "applied"
    what = f"'{commit}' cannot be {turned} on '{branch}'"
    call = graph.revisions.revert if verb == "revert" else graph.revisions.cherry_pick
    try:
        done = call(commit, strategy=strategy, **how)
    except MergeConflict as error:
        told_conflict(error, what, sides, again)
        return
    if done.conflicts and not settings().json:
        preview_conflicts(done.conflicts, what, sides, again)
        return
    _tell(done, (verb, commit, branch), sides, graph.actor)


def _tell(
    done: "MergeResult", asked: tuple[str, str, str], sides: tuple[str, str], actor: str | None
) -> None:
    from .commit import document

    verb, commit, branch = asked
    if settings().json:
        facts = {"commit_id": commit, "branch": branch, "outcome": done.outcome, "actor_id": actor}
        conflicts = [one.to_json() for one in done.conflicts]
        made = document(done.commit) if done.commit is not None else None
        told = {"merge_conflicts": conflicts, "lost_edges": lost_documents(done, sides)}
        show.document(facts | {"stats": done.stats, **told, "commit": made})
        return
    if done.outcome == "already_up_to_date":
        show.result(f"nothing to do: {branch} already has the changes of {commit}")
        return
    words = ("reverted", "would revert") if verb == "revert" else ("picked", "would pick")
    end = "" if done.commit is None else f"; commit {done.commit.id}"
    show.result(f"{words[done.commit is None]} {commit} on {branch}: {counts(done)}{end}")
    tell_lost(done, sides)
