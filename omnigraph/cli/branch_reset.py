"""`omnigraph branch reset`: reset a branch to a past commit's state by adding a new commit."""

from typing import TYPE_CHECKING, Any

import click

from . import show
from .address import GraphAddress, actor_option, announce_target, graph_arguments, resolve_target
from .conflicts import describe_counts
from .opening import open_graph
from .options import idempotency_key_option, mark_as_write, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.api.merge_sessions import MergeResult


@click.command()
@click.option("--message", "-m", help="Commit message")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--dry-run", is_flag=True, help="Show the changes without applying them")
@idempotency_key_option
@graph_arguments(name="NAME", revision="TO")
@actor_option
@shared_options
def reset(name: str, revision: str, dry_run: bool, address: GraphAddress, actor: str | None, **options: Any) -> None:
    """Reset branch NAME to revision TO with a new commit. No data is copied.

    TO is a commit, a tag, a branch, a timestamp or another revision, such as HEAD~3, where HEAD is
    the newest commit on NAME. The old commits stay in the log, so resetting to HEAD~1 undoes a
    reset.
    """
    root = resolve_target(address)
    if not dry_run:
        announce_target("branch reset", root)
        mark_as_write()
    graph = open_graph(root, actor=actor, read_only=dry_run)
    result = graph.branches.reset(name, to=revision, dry_run=dry_run, **options)
    if settings().json:
        _print_document(result, name.strip(), revision, graph.actor)
        return
    if result.outcome == "already_up_to_date":
        show.confirmation(f"nothing to do: {name.strip()} already matches {revision}")
        return
    action, commit_note = "would reset", ""
    if result.commit is not None:
        action, commit_note = "reset", f"; commit {result.commit.id}"
    summary = f"{action} {name.strip()} to {revision}: {describe_counts(result)}{commit_note}"
    show.confirmation(summary, preview=dry_run)


def _print_document(result: "MergeResult", branch: str, revision: str, actor: str | None) -> None:
    from .commit import commit_document

    commit_json = commit_document(result.commit) if result.commit is not None else None
    members = {"branch": branch, "to": revision, "outcome": result.outcome, "actor_id": actor}
    ends = {"previous_commit_id": result.target, "restored_commit_id": result.source}
    show.document(members | ends | {"stats": result.stats, "commit": commit_json})
