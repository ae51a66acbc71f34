"""Replay commits: apply one commit to a branch (cherry-pick), or undo one commit or a range (revert).

Cherry-picks and reverts are three-way merges without a second parent. In a cherry-pick, the commit's parent is the
merge base and the commit is the source; in a revert, the two are swapped. A range is replayed as the difference between
its first and last state. Rows are converted to the branch's schema, which does not change, and are written again, so
that the new commit does not reference any old table version. Rule violations, and entities that changed after the
commit, are conflicts.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import ChangeSchemaBoundary, InputError, MergeConflict, PreconditionFailed
from omnigraph.evolve.apply import SCHEMA_APPLY_OPERATION
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.diff import diff_snapshots, snapshot_at
from omnigraph.history.manifest import LoadedManifest
from omnigraph.history.merge_inputs import MergeInputs
from omnigraph.history.schema_changes import compare_schemas
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.ingest.stage import stage_tables
from omnigraph.publish.publish import publish
from omnigraph.publish.repeated_requests import require_own_commit
from omnigraph.publish.requirements import ExpectedHead, SameLookupResult, SameSchema
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import TableDelta
from omnigraph.storage.find_rows import find
from omnigraph.values.table_key import TableKey

from .decisions import Decisions
from .merge import MergeReport, MergeRequest, merge_details
from .planner import MergePlanner
from .replayed_tables import align_replay
from .strategy import check_strategy, resolve_conflicts

ReplayKind = Literal["revert", "cherry_pick"]
_CONFLICT_HINTS: dict[ReplayKind, str] = {
    "revert": "entities have changed since this commit: inspect the conflicts with dry_run=True (--dry-run);"
    " strategy='theirs' (--strategy theirs) restores the values from before the commit, and 'ours' keeps the"
    " current values",
    "cherry_pick": "inspect the conflicts with dry_run=True (--dry-run); strategy='theirs' (--strategy theirs)"
    " takes the commit's values, and 'ours' keeps the branch's",
}


class _RewritePlanner(MergePlanner):
    """A planner that always rewrites rows, because a replay must never reference an old table version."""

    def _can_adopt(self, table_key: TableKey, decisions: Decisions) -> bool:
        return False


def replay(
    kind: ReplayKind,
    target_branch: BranchState,
    commit_snapshot: Snapshot,
    request: MergeRequest,
    mainline: int | None = None,
) -> MergeReport:
    """Apply a commit's changes to a branch, or undo them.

    `mainline` selects the parent that a merge commit is compared with, by default the first one. If the branch moves in
    the meantime, the replay is planned again. Raises `MergeConflict` with every conflict, except in a dry run.
    """
    sides = replayed_sides(kind, commit_snapshot, mainline)
    details = {"commit": commit_snapshot.commit_id, **({"mainline": mainline} if mainline else {})}
    return _replay_change(kind, target_branch, sides, request, details)


def replayed_sides(
    kind: ReplayKind, commit_snapshot: Snapshot, mainline: int | None = None
) -> tuple[Snapshot, Snapshot]:
    """Return the base and the source of the merge that applies a commit's changes, or undoes them."""
    parent_snapshot = _parent_snapshot(commit_snapshot, mainline)
    if kind == "cherry_pick":
        return parent_snapshot, replace(commit_snapshot, branch=commit_snapshot.commit_id)
    return commit_snapshot, replace(parent_snapshot, branch=f"before {commit_snapshot.commit_id}")


def revert_range(
    target_branch: BranchState, after_snapshot: Snapshot, last_snapshot: Snapshot, request: MergeRequest
) -> MergeReport:
    """Undo the net effect of the commits after `after_snapshot`, up to `last_snapshot`, in one commit.

    The result is the same as if a single commit that made all of these changes had been reverted.
    """
    details = {"after": after_snapshot.commit_id, "commit": last_snapshot.commit_id}
    return _replay_change("revert", target_branch, range_sides(after_snapshot, last_snapshot), request, details)


def range_sides(after_snapshot: Snapshot, last_snapshot: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Return the base and the source of the merge that undoes a range of commits."""
    return last_snapshot, replace(after_snapshot, branch=f"at {after_snapshot.commit_id}")


def _replay_change(
    kind: ReplayKind,
    target_branch: BranchState,
    base_and_changed: tuple[Snapshot, Snapshot],
    request: MergeRequest,
    replay_details: Mapping[str, Any],
) -> MergeReport:
    """Apply the difference between two snapshots to a branch, or only plan it in a dry run."""
    with request.blobs.activate():
        report = _replay_with_blobs(kind, target_branch, base_and_changed, request, replay_details)
    return replace(report, blobs=request.blobs)


def _replay_with_blobs(
    kind: ReplayKind,
    target_branch: BranchState,
    base_and_changed: tuple[Snapshot, Snapshot],
    request: MergeRequest,
    replay_details: Mapping[str, Any],
) -> MergeReport:
    if request.dry_run:
        return plan_replay(kind, target_branch, target_branch.refresh(), base_and_changed, request)
    latest_report: list[MergeReport] = []
    own_id: str | None = None

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal own_id
        own_id = txn.commit_id
        report = plan_replay(kind, target_branch, txn.base, base_and_changed, request)
        latest_report[:] = [report]
        return _make_publish_plan(kind, report, txn, {**replay_details, **merge_details(request, report)})

    requirements = () if request.if_commit is None else (ExpectedHead(request.if_commit),)
    commit = publish(target_branch, prepare, request.commit_metadata, requirements)
    if commit is not None:
        require_own_commit(commit, own_id, commit.parents[0])
    return replace(latest_report[0], commit=commit)


def plan_replay(
    kind: ReplayKind,
    target_branch: BranchState,
    manifest: LoadedManifest,
    base_and_changed: tuple[Snapshot, Snapshot],
    request: MergeRequest,
) -> MergeReport:
    """Plan how the difference between two snapshots applies to one version of the branch."""
    base_snapshot, changed_snapshot = base_and_changed
    target_snapshot = manifest_snapshot(target_branch.store, target_branch, manifest)
    if request.if_commit is not None and target_snapshot.commit_id != request.if_commit:
        expected, actual = request.if_commit, target_snapshot.commit_id
        raise PreconditionFailed(branch=target_branch.name, expected=expected, actual=actual)
    check_strategy(request.strategy, [key.type_name for key in target_snapshot.tables])
    merge_inputs = MergeInputs(
        None, target_branch, manifest, target_snapshot, changed_snapshot, (base_snapshot,), "merged"
    )
    planner = _RewritePlanner(merge_inputs, request.options, align_replay(merge_inputs))
    plan, resolved_count = resolve_conflicts(planner, request.strategy)
    report = MergeReport(merge_inputs, "merged", plan=plan, resolved_count=resolved_count)
    if plan.conflicts:
        return replace(report, outcome="conflict")
    if not all(table_delta.is_empty for table_delta in plan.delta.tables.values()):
        return report
    older, newer = reversed(base_and_changed) if kind == "revert" else base_and_changed
    if _changes_only_schema(older, newer):
        raise _schema_change_error(older, newer)
    return replace(report, outcome="already_up_to_date")


def _changes_only_schema(older_snapshot: Snapshot, newer_snapshot: Snapshot) -> bool:
    """Return whether two snapshots differ in their schemas but in no entity."""
    if compare_schemas(older_snapshot, newer_snapshot) is None:
        return False
    try:
        return next(diff_snapshots(older_snapshot, newer_snapshot), None) is None
    except ChangeSchemaBoundary:
        return False


def _make_publish_plan(
    kind: ReplayKind, report: MergeReport, txn: WriteTxn, commit_details: Mapping[str, Any]
) -> PublishPlan | None:
    """Return a plan that requires the compared rows to be unchanged, or None if there is nothing to publish."""
    if report.outcome == "conflict":
        raise MergeConflict(conflicts=report.conflicts, hint=_CONFLICT_HINTS[kind])
    if report.outcome == "already_up_to_date" or report.plan is None:
        return None
    delta, read_requirements = report.plan.delta, report.plan.requirements
    row_requirements = tuple(_require_compared_rows(txn, table_delta) for table_delta in delta.tables.values())
    schema_requirement = SameSchema(txn.base.state.schema.hash)
    requirements = (schema_requirement, *read_requirements, *row_requirements)
    return PublishPlan(kind, stage_tables(txn, delta), requirements, details=commit_details)


def _require_compared_rows(txn: WriteTxn, table_delta: TableDelta) -> SameLookupResult:
    """Return the requirement that the compared rows on the branch have not changed."""
    table = txn.table(table_delta.table_key)
    table_entry = txn.base.state.tables[table_delta.table_key]
    ids = pa.concat_arrays([table_delta.ids, table_delta.removed_ids])
    rows = find(table, {"id": ids}, table.schema.names)
    return SameLookupResult(table_delta.table_key, table_entry.content_id, (("id", ids),), rows)


def _parent_snapshot(commit_snapshot: Snapshot, mainline: int | None) -> Snapshot:
    """Return the parent snapshot that a commit is compared with."""
    commit = commit_snapshot.commit
    parent_snapshot = snapshot_at(commit_snapshot, commit_snapshot.log, _parent_id(commit, mainline))
    if commit.operation == SCHEMA_APPLY_OPERATION:
        raise _schema_change_error(parent_snapshot, commit_snapshot)
    return parent_snapshot


def _schema_change_error(older_snapshot: Snapshot, newer_snapshot: Snapshot) -> InputError:
    """Return the error for a commit or range of commits that changed the schema but no entities."""
    schema_change = compare_schemas(older_snapshot, newer_snapshot)
    steps = "" if schema_change is None else f" ({'; '.join(schema_change.descriptions)})"
    return InputError(
        f"commit {newer_snapshot.commit_id} cannot be reverted or cherry-picked, because it changed only the"
        f" schema{steps}",
        reason="schema commit",
        hint="apply the desired schema with `omnigraph schema apply`; to show the earlier schema, run `omnigraph"
        f" schema show --snapshot {older_snapshot.commit_id}`; this snapshot also contains dropped data",
    )


def _parent_id(commit: Commit, mainline: int | None) -> str:
    if not commit.parents:
        message = f"commit {commit.id} cannot be reverted or cherry-picked, because it created the graph"
        raise InputError(message, reason="the first commit has no parent")
    if mainline is None:
        return commit.parents[0]
    if not 1 <= mainline <= len(commit.parents):
        raise InputError(
            f"commit {commit.id} has no parent number {mainline}",
            reason=f"expected a number from 1 to {len(commit.parents)}",
        )
    return commit.parents[mainline - 1]
