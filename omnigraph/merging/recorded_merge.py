"""Recover the report of a published merge, revert, cherry-pick or reset from its commit.

The commit names the states that were compared, and a repeated request has the same options. The operation is therefore
planned again on these states, as a dry run. Nothing is published, and the current state of the branch is not read.
"""

from dataclasses import replace

from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import LoadedManifest
from omnigraph.history.merge_inputs import MergeInputs, relate_sides
from omnigraph.history.revisions import resolve_revision
from omnigraph.history.snapshot import Snapshot, manifest_snapshot

from .merge import MergeReport, MergeRequest, merge_captured
from .merge_limits import MergeLimits
from .replay import ReplayKind, plan_replay, range_sides, replayed_sides
from .reset import RESET_OPERATION, plan_reset

_UNLIMITED = MergeLimits(delta_bytes=None, rows=None)  # the operation has already been applied under its own limits


def rebuild_report(branch: BranchState, commit: Commit, request: MergeRequest) -> MergeReport:
    """Return the report of a published operation.

    Raises `HistoryReclaimed` or `NotFound` if a cleanup has removed the states that were compared.
    """
    options = replace(request.options, limits=_UNLIMITED)
    preview = replace(request, options=options, dry_run=True, if_commit=None)
    if commit.operation == "merge":
        inputs = recorded_inputs(branch, commit)
        report = replace(merge_captured(inputs, preview), outcome=inputs.outcome)
    elif commit.operation == RESET_OPERATION:
        report = plan_reset(branch, _manifest_before(branch, commit), _find_state(branch, commit, "commit"), preview)
    else:
        report = replace(_rebuild_replay(branch, commit, preview), outcome="merged")
    # A function that resolved conflicts may answer differently now, but the published commit has no open conflicts.
    plan = None if report.plan is None else replace(report.plan, conflicts=())
    return replace(report, commit=commit, plan=plan)


def recorded_inputs(branch: BranchState, commit: Commit) -> MergeInputs:
    """Return the inputs of a published merge, without reading any rows."""
    manifest = _manifest_before(branch, commit)
    return relate_sides(None, branch, manifest, _state_at(branch, manifest, commit.parents[1]))


def _rebuild_replay(branch: BranchState, commit: Commit, preview: MergeRequest) -> MergeReport:
    kind: ReplayKind = "cherry_pick" if commit.operation == "cherry_pick" else "revert"
    replayed = _find_state(branch, commit, "commit")
    if "after" in commit.details:
        sides = range_sides(_find_state(branch, commit, "after"), replayed)
    else:
        sides = replayed_sides(kind, replayed, commit.details.get("mainline"))
    manifest = _manifest_before(branch, commit)
    with preview.blobs.activate():
        report = plan_replay(kind, branch, manifest, sides, preview)
    return replace(report, blobs=preview.blobs)


def _manifest_before(branch: BranchState, commit: Commit) -> LoadedManifest:
    """Return the branch's manifest as it was before a commit, but with the newest log known to this process."""
    newest = branch.last_known()
    tables, schema = HistoryLog(branch.store, newest.state).tables_and_schema_at(commit.parents[0])
    head = replace(newest.state.head, commit_id=commit.parents[0])
    return replace(newest, state=replace(newest.state, head=head, tables=tables, schema=schema))


def _find_state(branch: BranchState, commit: Commit, detail: str) -> Snapshot:
    """Return the state at a commit named in an operation's details, even if the commit is on another branch."""
    return _state_at(branch, branch.last_known(), commit.details[detail])


def _state_at(branch: BranchState, manifest: LoadedManifest, commit_id: str) -> Snapshot:
    return resolve_revision(branch.store, branch, manifest_snapshot(branch.store, branch, manifest), commit_id)
