"""The inputs of a merge: both sides as captured, their best common ancestors, and the outcome.

This module owns the capture. Ancestry is determined over the whole commit graph, never from version
numbers. Changes made to a branch after the capture do not affect what is merged.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import InputError

from .branch_state import BranchState
from .commit import Commit
from .diff import snapshot_at
from .log import merge_bases, sort_newest_first
from .manifest import LoadedManifest
from .snapshot import Snapshot, manifest_snapshot

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged", "conflict"]


@dataclass(frozen=True, slots=True)
class MergeInputs:
    """Two captured sides: `source_snapshot` is merged into `target_snapshot`.

    `base_snapshots` are the best common ancestors, ordered by commit id; `incoming_commits` are
    reachable only from the source, oldest first.
    """

    source_branch: BranchState | None
    target_branch: BranchState
    target_manifest: LoadedManifest
    target_snapshot: Snapshot
    source_snapshot: Snapshot
    base_snapshots: tuple[Snapshot, ...]
    outcome: MergeOutcome
    incoming_commits: tuple[Commit, ...] = ()

    @property
    def base_snapshot(self) -> Snapshot:
        """Return the common ancestor, or the first one if there are several."""
        return self.base_snapshots[0]


def capture_merge_inputs(source_branch: BranchState, target_branch: BranchState) -> MergeInputs:
    """Capture both branches as they are now, along with their relationship."""
    source_snapshot = manifest_snapshot(source_branch.store, source_branch, source_branch.refresh())
    return _relate_sides(source_branch, target_branch, source_snapshot)


def recapture_target(merge_inputs: MergeInputs) -> MergeInputs:
    """Capture the target again at its newest state; the source stays as captured."""
    return _relate_sides(merge_inputs.source_branch, merge_inputs.target_branch, merge_inputs.source_snapshot)


def _relate_sides(
    source_branch: BranchState | None, target_branch: BranchState, source_snapshot: Snapshot
) -> MergeInputs:
    target_manifest = target_branch.refresh()
    target_snapshot = manifest_snapshot(target_branch.store, target_branch, target_manifest)
    base_ids, source_only_commits = find_merge_bases(target_snapshot, source_snapshot)
    if not base_ids:
        raise InputError(
            f"branches '{source_snapshot.branch}' and '{target_branch.name}' have no common history",
            reason="no common ancestor",
        )
    outcome: MergeOutcome = "merged"
    if base_ids == (source_snapshot.commit_id,):
        outcome = "already_up_to_date"
    elif base_ids == (target_snapshot.commit_id,):
        outcome = "fast_forward"
    base_snapshots = tuple(snapshot_at(target_snapshot, target_snapshot.log, base_id) for base_id in base_ids)
    incoming_commits = tuple(reversed(sort_newest_first(source_only_commits)))
    return MergeInputs(
        source_branch,
        target_branch,
        target_manifest,
        target_snapshot,
        source_snapshot,
        base_snapshots,
        outcome,
        incoming_commits,
    )


def find_common_base(first_snapshot: Snapshot, second_snapshot: Snapshot) -> Snapshot:
    """Return the best common ancestor of two snapshots, or the first one if there are several."""
    base_ids, _ = find_merge_bases(first_snapshot, second_snapshot)
    if not base_ids:
        raise InputError("the two snapshots have no common history", reason="no common ancestor")
    return snapshot_at(first_snapshot, first_snapshot.log, base_ids[0])


def find_merge_bases(target_snapshot: Snapshot, source_snapshot: Snapshot) -> tuple[tuple[str, ...], list[Commit]]:
    """Return the ids of the best common ancestors, and the commits that only the source reaches.

    Both histories are walked side by side until they meet. Below a common commit, nothing is read
    beyond the point that a walk has already reached, so the cost depends only on what is new on either
    side. The returned commits may therefore include a few that the target also reaches.
    """
    marks = _mark_reachable(target_snapshot, source_snapshot)
    base_ids = sorted(commit_id for commit_id, mark in marks.items() if mark == _FROM_BOTH)
    if len(base_ids) > 1:  # one may be an ancestor of another along a path that was not walked
        target_ancestors, source_ancestors = (
            snapshot.log.ancestors(snapshot.commit_id) for snapshot in (target_snapshot, source_snapshot)
        )
        base_ids = list(merge_bases(target_ancestors, source_ancestors))
    source_only_commits = [
        source_snapshot.log.get(commit_id) for commit_id, mark in marks.items() if mark == _FROM_SOURCE
    ]
    return tuple(base_ids), source_only_commits


_FROM_TARGET, _FROM_SOURCE, _BELOW_COMMON = 1, 2, 4
_FROM_BOTH = _FROM_TARGET | _FROM_SOURCE


def _mark_reachable(target_snapshot: Snapshot, source_snapshot: Snapshot) -> dict[str, int]:
    """Return which sides reach each commit, and whether it is below a commit that both reach."""
    marks = {target_snapshot.commit_id: _FROM_TARGET}
    marks[source_snapshot.commit_id] = marks.get(source_snapshot.commit_id, 0) | _FROM_SOURCE
    queue, queued = deque(marks), set(marks)
    uncommon_count = len(queued)  # queued commits that are not below a common one
    while uncommon_count:
        commit_id = queue.popleft()
        queued.discard(commit_id)
        mark = marks[commit_id]
        uncommon_count -= not mark & _BELOW_COMMON
        log = target_snapshot.log if mark & _FROM_TARGET else source_snapshot.log
        inherited_mark = mark | _BELOW_COMMON if mark & _FROM_BOTH == _FROM_BOTH else mark
        for parent in log.get(commit_id).parents:
            previous_mark = marks.get(parent, 0)
            if previous_mark | inherited_mark == previous_mark:
                continue
            marks[parent] = previous_mark | inherited_mark
            if parent in queued:
                uncommon_count -= not previous_mark & _BELOW_COMMON
            else:
                queue.append(parent)
                queued.add(parent)
            uncommon_count += not marks[parent] & _BELOW_COMMON
    return marks
