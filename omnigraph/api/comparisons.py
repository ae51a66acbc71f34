"""Commit logs and differences between two revisions. The functions in this module never change a graph."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from omnigraph.api.handle import Handle
from omnigraph.api.results.commit_log import CommitLog
from omnigraph.errors import BranchNotFound, InputError
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import sort_newest_first
from omnigraph.history.revisions import resolve_revision
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.history.tags import list_tags
from omnigraph.records.frozen import record
from omnigraph.values.describe_value import describe
from omnigraph.values.name_rules import require_text
from omnigraph.values.option_text import check_option_text

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.results.diff import Diff, DiffFilterNames

State = str | int | datetime | timedelta | Snapshot | None


@record
class LogFilter:
    """The criteria that select the commits in a log."""

    since: datetime | None = None
    actor: str | None = None
    type_name: str | None = None

    def accepts(self, commit: Commit) -> bool:
        """Return whether a commit is included in the log."""
        if self.actor is not None and commit.actor != self.actor:
            return False
        if self.since is not None and commit.published < self.since:
            return False
        names = {key.type_name for key in commit.tables}
        return self.type_name is None or self.type_name in names


def log(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    branch: str | None = None,
    *,
    limit: int | None = None,
    since: datetime | None = None,
    actor: str | None = None,
    type: str | None = None,
    all: bool = False,
) -> CommitLog:
    """Return the commits in this graph's history, newest first.

    `branch` selects another branch, and `all` selects all branches.

    A notebook renders the log as a picture. `print(graph.log().draw())` prints it as text.
    """
    handle.require_open()
    type_name = None if type is None else require_text(type, "type")
    check_log_options(since, actor, limit)
    log_filter = LogFilter(since, actor, type_name)
    return read_log(handle, branch, log_filter, limit=limit, all_branches=all)


def check_log_options(since: object, actor: object, limit: object) -> None:
    """Raise `InputError` if `since`, `actor` or `limit` has the wrong type or an invalid value."""
    check_option_text(actor, "actor")
    if since is not None and not isinstance(since, datetime):
        raise InputError(f"`since` must be a datetime, got {describe(since)}", reason="not a timestamp")
    if since is not None and since.tzinfo is None:
        raise InputError(f"`since` has no time zone: {since.isoformat()}", reason="specify an offset or UTC")
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InputError(f"limit must be a non-negative integer, got {describe(limit)}", reason="not a count")


def diff(
    handle: Handle,
    a: "State | Graph",
    b: "State | Graph" = None,
    *,
    types: "DiffFilterNames" = None,
    kinds: "DiffFilterNames" = None,
    ops: "DiffFilterNames" = None,
) -> "Diff":
    """Return the changes from `a` to `b`, entity by entity. `b` defaults to this graph's current state.

    `a` and `b` can each be a graph, a branch, a commit id, a manifest version, a point in time or another revision,
    such as `HEAD~3`. `main..dev` specifies both revisions in one argument, and `main...dev` means the changes on `dev`
    since it diverged from `main`.

    Values from `a` are converted to the schema at `b`. The result's `schema_change` describes how the schemas differ.

    Raises `ChangeSchemaBoundary` if a value does not fit the schema at `b`, and `HistoryReclaimed` if a cleanup has
    removed one of the states.
    """
    from omnigraph.api.results.diff import compare_snapshots

    handle.require_open()
    old_snapshot, new_snapshot = _find_pair(handle, a, b)
    return compare_snapshots(old_snapshot, new_snapshot, types, kinds, ops)


def read_log(
    handle: Handle, branch: str | None, log_filter: LogFilter, *, limit: int | None, all_branches: bool
) -> CommitLog:
    """Return the commits in the history of one branch or all branches, newest first."""
    commits = _commits_of_all(handle) if all_branches else _commits_below(handle, branch)
    accepted = islice(filter(log_filter.accepts, commits), limit)
    return CommitLog(accepted, lambda: _names_by_commit(handle))


def _find_pair(handle: Handle, old: "State | Graph", new: "State | Graph") -> tuple[Snapshot, Snapshot]:
    if isinstance(old, str) and ".." in old and new is None:
        from omnigraph.history.merge_bases import find_common_base

        first, dots, second = old.partition("..." if "..." in old else "..")
        old_snapshot, new_snapshot = (find_state(handle, first or None), find_state(handle, second or None))
        return (
            (find_common_base(new_snapshot, old_snapshot), new_snapshot)
            if dots == "..."
            else (old_snapshot, new_snapshot)
        )
    return find_state(handle, old), find_state(handle, new)


def find_state(handle: Handle, state: "State | Graph") -> Snapshot:
    """Return the snapshot of a graph or a revision, or the handle's newest snapshot if `state` is None.

    A revision is resolved relative to the handle's newest snapshot.
    """
    from omnigraph.api.graph import Graph

    if state is None:
        return handle.latest_snapshot()
    if isinstance(state, Snapshot):
        return state
    if isinstance(state, Graph):
        return state._handle.latest_snapshot()
    return resolve_revision(handle.store, handle.branch_state, handle.latest_snapshot(), state)


def _commits_below(handle: Handle, branch: str | None) -> Iterator[Commit]:
    snapshot = handle.snapshot
    if branch is not None:
        branch_state = open_branch(handle.store, branch)
        snapshot = manifest_snapshot(handle.store, branch_state, branch_state.last_known())
    return snapshot.log.iter_ancestors(snapshot.commit_id)


def _commits_of_all(handle: Handle) -> Iterator[Commit]:
    commits: dict[str, Commit] = {}
    for snapshot in _heads_by_branch(handle).values():
        commits |= snapshot.log.ancestors(snapshot.commit_id)
    return iter(sort_newest_first(commits.values()))


def _heads_by_branch(handle: Handle) -> dict[str, Snapshot]:
    heads = {}
    for name in list_branches(handle.store):
        with suppress(BranchNotFound):  # the branch was deleted after it was listed
            branch_state = open_branch(handle.store, name)
            heads[name] = manifest_snapshot(handle.store, branch_state, branch_state.last_known())
    return heads


def _names_by_commit(handle: Handle) -> dict[str, tuple[str, ...]]:
    """Return the names of branches and tags, grouped by the commit that they point to."""
    names: dict[str, tuple[str, ...]] = {}
    labels = [(head.commit_id, name) for name, head in _heads_by_branch(handle).items()]
    labels += [(tag.commit_id, f"tag: {tag.name}") for tag in list_tags(handle.store)]
    for commit_id, label in labels:
        names[commit_id] = (*names.get(commit_id, ()), label)
    return names
