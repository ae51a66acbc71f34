"""The inputs to a merge: a snapshot of each branch, their best common ancestors, and the outcome.

A snapshot of each branch is taken first, so later changes to a branch do not affect what is merged. Ancestry is
determined from the whole commit graph, never from version numbers.
"""

from dataclasses import dataclass, replace
from typing import Literal

from omnigraph.errors import InputError
from omnigraph.history.merge_bases import find_merge_bases

from .branch_state import BranchState
from .commit import Commit
from .commit_log import sort_newest_first
from .diff import snapshot_at
from .manifest import LoadedManifest
from .snapshot import Snapshot, manifest_snapshot

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged", "conflict"]


@dataclass(frozen=True, slots=True)
class MergeInputs:
    """The two sides of a merge, as snapshots: `source_snapshot` is merged into `target_snapshot`.

    `base_snapshots` are the best common ancestors, ordered by commit id. `incoming_commits` are the commits that only
    the source reaches, oldest first.
    """

    source_branch: BranchState | None
    target_branch: BranchState
    target_manifest: LoadedManifest
    target_snapshot: Snapshot
    source_snapshot: Snapshot
    base_snapshots: tuple[Snapshot, ...]
    outcome: MergeOutcome
    incoming_commits: tuple[Commit, ...] = ()
    retained_by: BranchState | None = None  # if the source is a revision: the branch or tag whose log contains it

    @property
    def base_snapshot(self) -> Snapshot:
        """Return the common ancestor, or the first one if there are several."""
        return self.base_snapshots[0]


@dataclass(frozen=True, slots=True)
class RevisionSource:
    """A merge source that was specified as a revision instead of a branch.

    `name` is the revision as the caller wrote it, and `retained_by` is the branch or tag whose log contains the commit.
    """

    name: str
    snapshot: Snapshot
    retained_by: BranchState


MergeSource = BranchState | RevisionSource


def capture_merge_inputs(source: MergeSource, target_branch: BranchState) -> MergeInputs:
    """Take snapshots of both sides, and determine how their commits are related."""
    if isinstance(source, RevisionSource):
        named_snapshot = replace(source.snapshot, branch=source.name)
        return _relate_to_newest(None, target_branch, named_snapshot, source.retained_by)
    source_snapshot = manifest_snapshot(source.store, source, source.refresh())
    return _relate_to_newest(source, target_branch, source_snapshot)


def recapture_target(merge_inputs: MergeInputs) -> MergeInputs:
    """Take a new snapshot of the target, and reuse the snapshot of the source."""
    source = merge_inputs.source_branch, merge_inputs.target_branch, merge_inputs.source_snapshot
    return _relate_to_newest(*source, merge_inputs.retained_by)


def _relate_to_newest(
    source_branch: BranchState | None,
    target_branch: BranchState,
    source_snapshot: Snapshot,
    retained_by: BranchState | None = None,
) -> MergeInputs:
    return relate_sides(source_branch, target_branch, target_branch.refresh(), source_snapshot, retained_by)


def relate_sides(
    source_branch: BranchState | None,
    target_branch: BranchState,
    target_manifest: LoadedManifest,
    source_snapshot: Snapshot,
    retained_by: BranchState | None = None,
) -> MergeInputs:
    """Determine how the commits of the source and of the target, as loaded in `target_manifest`, are related."""
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
        retained_by,
    )
