"""Recover the outcome of a write that was published earlier with the same idempotency key.

A commit does not store its counts and ids. They are derived from the difference between the commit and its first
parent, which contains exactly the changes of the write. This module never reads the current state of the branch.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from omnigraph.errors import HistoryReclaimed, NotFound
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.entities import TableChanges
from omnigraph.history.revisions import resolve_revision
from omnigraph.history.snapshot import manifest_snapshot
from omnigraph.records.frozen import record


@record
class RecordedChanges:
    """The number of entities that a commit changed, and the ids of those that it added, by type and in id order."""

    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    ids: Mapping[str, Sequence[str]]


def read_recorded_changes(branch_state: BranchState, commit: Commit) -> RecordedChanges | None:
    """Return what a commit changed, or None if a cleanup has removed the commit or its first parent."""
    from omnigraph.history.diff import diff_snapshots

    store, newest = branch_state.store, manifest_snapshot(branch_state.store, branch_state, branch_state.last_known())
    try:
        before = resolve_revision(store, branch_state, newest, commit.parents[0])
        after = resolve_revision(store, branch_state, newest, commit.id)
        return _count_changes(list(diff_snapshots(before, after)))
    except (HistoryReclaimed, NotFound):
        return None


def _count_changes(tables: Sequence[TableChanges]) -> RecordedChanges:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for changes in tables:
        counts[changes.key.kind][changes.key.type_name] = changes.total
    ids = {changes.key.type_name: changes.inserted["id"].to_pylist() for changes in tables if changes.inserted.num_rows}
    return RecordedChanges(counts["node"], counts["edge"], ids)
