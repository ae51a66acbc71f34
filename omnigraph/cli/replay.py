"""`omnigraph revert`, `omnigraph undo` and `omnigraph cherry-pick`: undo commits, or apply one to another branch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import MergeConflict

from . import show
from .address import GraphAddress, actor_option, announce_target, graph_arguments, resolve_target
from .conflicts import (
    build_typed_command,
    conflict_options,
    describe_counts,
    exit_with_conflicts,
    lost_edge_documents,
    parse_strategies,
    preview_conflicts,
    print_lost_edges,
)
from .discarded_changes import discarded_change_documents, print_discarded_changes
from .opening import open_graph
from .options import mark_as_write, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.api.merge_sessions import MergeResult

_MAX_SKIPPED_COMMITS = 100
_mainline_option = click.option(
    "--mainline", type=click.IntRange(min=1), help="Number of the parent to compare a merge commit with"
)


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch on which to revert the commit")
@_mainline_option
@conflict_options
@graph_arguments(commit="COMMIT")
@actor_option
@shared_options
def revert(commit: str, branch: str, **options: Any) -> None:
    """Undo a commit or a range of commits with a new commit; later changes are kept.

    COMMIT is an id, a tag or another revision, such as HEAD~2, or a range of commits. A..B undoes
    the net effect of the commits after A, up to and including B; A.. ends at the head. Values that
    a later commit has changed again are conflicts.
    """
    _replay_commit("revert", commit, branch, options)


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch on which to undo the commit")
@_mainline_option
@conflict_options
@graph_arguments(commit="[COMMIT]")
@actor_option
@shared_options
def undo(commit: str | None, branch: str, **options: Any) -> None:
    """Undo the last commit on a branch, or COMMIT, with a new commit; same as revert.

    Without COMMIT, undo skips maintenance commits, because they change no data. COMMIT is anything that revert accepts,
    such as an id, HEAD~2 or a range A..B. Running undo twice restores the undone changes, because the second run undoes
    the first.
    """
    _replay_commit("revert", commit, branch, options)


@click.command("cherry-pick")
@click.option("--into", "branch", default="main", show_default=True, help="Branch to apply the commit to")
@_mainline_option
@conflict_options
@graph_arguments(commit="COMMIT")
@actor_option
@shared_options
def cherry_pick(commit: str, branch: str, **options: Any) -> None:
    """Apply the changes from one commit to a branch.

    COMMIT is an id, a tag, or a branch, optionally followed by ~N, as in review~1.
    """
    _replay_commit("cherry-pick", commit, branch, options)


def _replay_commit(verb: str, commit: str | None, branch: str, options: dict[str, Any]) -> None:
    address: GraphAddress = options.pop("address")
    root = resolve_target(address)
    actor, strategies = options.pop("actor"), options.pop("strategies")
    strategy = parse_strategies(strategies)
    if not options["dry_run"]:
        announce_target(verb, root)
        mark_as_write()
    graph = open_graph(root, branch=branch, actor=actor, read_only=options["dry_run"])
    commit = commit or _find_last_change(graph)
    branch_flag = "--branch" if verb == "revert" else "--into"
    command_words = (verb, commit, *((branch_flag, branch) if branch != "main" else ()))
    typed_command = build_typed_command(command_words, address.typed_location, options, strategies)
    sides = branch, _other_side(verb, commit)
    action = "reverted on" if verb == "revert" else "applied to"
    failure = f"'{commit}' cannot be {action} '{branch}'"
    replay = graph.revisions.revert if verb == "revert" else graph.revisions.cherry_pick
    try:
        merge_result = replay(commit, strategy=strategy, **options)
    except MergeConflict as error:
        exit_with_conflicts(error, failure, sides, typed_command)
        return
    if merge_result.conflicts and not settings().json:
        preview_conflicts(merge_result.conflicts, failure, sides, typed_command)
        return
    _print_result(merge_result, (verb, commit, branch), sides, graph.actor)
    if verb == "revert" and _changed_schema(graph, getattr(merge_result.commit, "details", {})):
        show.note(f"note: the schema change in {commit} is kept; to change the schema, run `omnigraph schema apply`")


def _find_last_change(graph: Any) -> str:
    """Return `HEAD`, or the id of the newest commit before it that is not a maintenance commit."""
    from omnigraph.history.commit import MAINTENANCE_OPERATIONS

    recent_commits = graph.log(limit=_MAX_SKIPPED_COMMITS)
    head = candidate = recent_commits[0]
    commits_by_id = {logged_commit.id: logged_commit for logged_commit in recent_commits}
    while candidate.operation in MAINTENANCE_OPERATIONS and candidate.parents[0] in commits_by_id:
        candidate = commits_by_id[candidate.parents[0]]
    return "HEAD" if candidate is head else str(candidate.id)


def _other_side(verb: str, commit: str) -> str:
    """Return the label for the state that a revert restores or a cherry-pick applies."""
    if verb != "revert":
        return commit
    return commit.partition("..")[0] if ".." in commit else f"before {commit}"


def _changed_schema(graph: Any, details: Mapping[str, Any]) -> bool:
    """Return whether a reverted commit or range changed the schema."""
    last = details.get("commit")
    if last is None:
        return False
    before = details.get("after") or f"{last}^{details.get('mainline', 1)}"
    return bool(graph.at(before).schema.source != graph.at(last).schema.source)


def _print_result(
    merge_result: "MergeResult", request: tuple[str, str, str], sides: tuple[str, str], actor: str | None
) -> None:
    from .commit import commit_document

    verb, commit, branch = request
    if settings().json:
        members = {"commit_id": commit, "branch": branch, "outcome": merge_result.outcome, "actor_id": actor}
        conflicts = [conflict.to_json() for conflict in merge_result.conflicts]
        commit_json = commit_document(merge_result.commit) if merge_result.commit is not None else None
        conflict_members = {
            "merge_conflicts": conflicts,
            "discarded": discarded_change_documents(merge_result, sides),
            "lost_edges": lost_edge_documents(merge_result, sides),
        }
        show.document(members | {"stats": merge_result.stats, **conflict_members, "commit": commit_json})
        return
    if merge_result.outcome == "already_up_to_date":
        show.confirmation(f"nothing to do: {_describe_no_change(merge_result, verb, commit, branch)}")
        print_discarded_changes(merge_result, sides)
        return
    verbs = ("reverted", "would revert") if verb == "revert" else ("picked", "would pick")
    action = f"{verbs[merge_result.commit is None]} {commit} on {branch}"
    commit_note = "" if merge_result.commit is None else f"; commit {merge_result.commit.id}"
    is_preview = merge_result.commit is None
    show.confirmation(f"{action}: {describe_counts(merge_result)}{commit_note}", preview=is_preview)
    print_discarded_changes(merge_result, sides)
    print_lost_edges(merge_result, sides)


def _describe_no_change(merge_result: "MergeResult", verb: str, commit: str, branch: str) -> str:
    if merge_result.discarded:
        return f"the strategy keeps the values from {branch}"
    possession = "no longer has" if verb == "revert" else "already has"
    return f"{branch} {possession} the changes from {commit}"
