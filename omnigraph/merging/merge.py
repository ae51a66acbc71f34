"""Merge one branch into another: take a snapshot of each, plan the merge, resolve conflicts, and publish the result.

This module defines the order of the merge steps. A repeated merge is detected before any data is read. A
fast-forward adopts the source's tables and reads no rows.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import (
    EntityConflict,
    HistoryReclaimed,
    InputError,
    InternalError,
    MergeConflict,
    PreconditionFailed,
    ReadSetConflict,
)
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.merge_inputs import MergeInputs, MergeOutcome, MergeSource, capture_merge_inputs
from omnigraph.history.schema_changes import SchemaChange, compare_schemas
from omnigraph.history.schemas import COPY_DATA_HINT
from omnigraph.lang.schema.migrate.types import all_steps
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.rules.delta import Delta
from omnigraph.storage.pending_blobs import PendingBlobs

from .conflicts import schema_conflict
from .decisions import Decisions
from .discarded_changes import DiscardedChange
from .lost_edges import LostEdge
from .merged_schema import combine_schemas
from .parallel_edges import ParallelEdgePair
from .planner import MergeOptions, MergePlan, MergePlanner
from .publish_merge import publish_merge
from .schema_alignment import AlignedTables
from .strategy import Strategy, answer_conflict, check_strategy, describe_strategy, resolve_conflicts

MAX_ATTEMPTS = 4  # number of attempts, so that concurrent maintenance on the target does not make a merge fail


@dataclass(frozen=True)
class MergeReport:
    """The result of a merge, or its expected result in a dry run."""

    merge_inputs: MergeInputs
    outcome: MergeOutcome
    commit: Commit | None = None
    plan: MergePlan | None = None
    resolved_count: int = 0
    blobs: PendingBlobs | None = None

    @property
    def conflicts(self) -> tuple[EntityConflict, ...]:
        """The unresolved conflicts."""
        return () if self.plan is None else tuple(detected.conflict for detected in self.plan.conflicts)

    @property
    def lost_edges(self) -> tuple[LostEdge, ...]:
        """The edges that stay deleted although the merge keeps the node that they were deleted with."""
        return () if self.plan is None else self.plan.lost_edges

    @property
    def discarded_changes(self) -> tuple[DiscardedChange, ...]:
        """The changes on either side that conflict resolutions discard."""
        return () if self.plan is None else self.plan.discarded_changes

    @property
    def parallel_edges(self) -> tuple[ParallelEdgePair, ...]:
        """The pairs of edges that both sides added with the same endpoints and properties."""
        return () if self.plan is None else self.plan.parallel_edges

    @property
    def schema_change(self) -> SchemaChange | None:
        """The schema changes that the merge makes to the target, or None if the schema stays the same."""
        target, source = self.merge_inputs.target_snapshot, self.merge_inputs.source_snapshot
        if self.outcome == "fast_forward":
            return compare_schemas(target, source)
        if self.outcome != "merged" or self.plan is None or self.plan.merged_schema is None:
            return None
        steps = tuple(all_steps(target.schema.ir, self.plan.merged_schema.ir, "soft", is_accepted=True))
        commit_id = source.commit_id if self.commit is None else self.commit.id
        return SchemaChange(commit_id, steps) if steps else None


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A caller's request for a merge: its options, strategy and commit metadata.

    The rows in a merge contain placeholders for large blobs. The content of these blobs is available from `blobs`.
    """

    options: MergeOptions = field(default_factory=MergeOptions)
    strategy: Strategy = None
    if_commit: str | None = None
    dry_run: bool = False
    commit_metadata: CommitMetadata = field(default_factory=CommitMetadata)
    blobs: PendingBlobs = field(default_factory=lambda: PendingBlobs((), {}))


def open_merge(source: MergeSource, target_branch: BranchState, if_commit: str | None = None) -> MergeInputs:
    """Take a snapshot of each side; raise an error if the two sides cannot be merged."""
    if isinstance(source, BranchState) and source.ulid == target_branch.ulid:
        hint = "specify two different branches as source and target (`into`)"
        raise InputError(f"'{source.name}' cannot be merged into itself", reason="same branch", hint=hint)
    merge_inputs = capture_merge_inputs(source, target_branch)
    if if_commit is not None and merge_inputs.target_snapshot.commit_id != if_commit:
        head_commit = merge_inputs.target_snapshot.commit_id
        raise PreconditionFailed(branch=target_branch.name, expected=if_commit, actual=head_commit)
    return merge_inputs


def merge(source: MergeSource, target_branch: BranchState, request: MergeRequest) -> MergeReport:
    """Merge a branch or another revision into a branch.

    Processes on the same machine take turns merging into a branch, because a merge that loses a race has to be planned
    again. Raises `MergeConflict` with every unresolved conflict, except in a dry run.
    """
    with nullcontext() if request.dry_run else target_branch.machine_queue.turn():
        return _merge_in_turn(source, target_branch, request)


def _merge_in_turn(source: MergeSource, target_branch: BranchState, request: MergeRequest) -> MergeReport:
    """Merge a revision into a branch; try again if only maintenance has advanced the target."""
    for attempt in range(MAX_ATTEMPTS):
        merge_inputs = open_merge(source, target_branch, request.if_commit)
        check_strategy(request.strategy, _type_names(merge_inputs))
        try:
            return merge_captured(merge_inputs, request)
        except ReadSetConflict:
            if attempt + 1 == MAX_ATTEMPTS or not only_maintained(merge_inputs):
                raise
        except HistoryReclaimed as error:  # a cleanup removed data from the merge base or from one of the branches
            error.hint = COPY_DATA_HINT.format(source=source.name, target=target_branch.name)
            raise
    raise InternalError("unreachable")


def only_maintained(merge_inputs: MergeInputs) -> bool:
    """Return whether the target has advanced without any change to its content."""
    current_state = merge_inputs.target_branch.refresh().state
    captured = merge_inputs.target_snapshot
    content_ids = {key: table_entry.content_id for key, table_entry in current_state.tables.items()}
    head_moved = current_state.head.commit_id != captured.commit_id and not current_state.head.closed
    content_unchanged = content_ids == {key: table_entry.content_id for key, table_entry in captured.tables.items()}
    return head_moved and content_unchanged and current_state.schema == captured.schema_row


def merge_captured(
    merge_inputs: MergeInputs,
    request: MergeRequest,
    planner: MergePlanner | None = None,
    decisions: Decisions | None = None,
    resolved_count: int = 0,
) -> MergeReport:
    """Merge the snapshots in `merge_inputs`, optionally reusing a planner and earlier decisions."""
    with request.blobs.activate():
        report = _merge_captured(merge_inputs, request, planner, decisions, resolved_count)
    return replace(report, blobs=request.blobs)


def _merge_captured(
    merge_inputs: MergeInputs,
    request: MergeRequest,
    planner: MergePlanner | None,
    decisions: Decisions | None,
    resolved_count: int,
) -> MergeReport:
    if merge_inputs.outcome == "already_up_to_date":
        return MergeReport(merge_inputs, merge_inputs.outcome)
    planner = planner or open_planner(merge_inputs, request)
    if merge_inputs.outcome == "fast_forward":
        # The result is identical to the source, which was validated when it was written.
        plan = MergePlan((), Delta(), planner.fast_forward_tables())
    elif planner.open_schema_conflicts:
        plan = plan_schema_conflicts(planner.open_schema_conflicts)
    else:
        plan, decided_count = resolve_conflicts(planner, request.strategy, decisions)
        resolved_count += decided_count + planner.decided_schema_conflicts
    report = MergeReport(merge_inputs, merge_inputs.outcome, plan=plan, resolved_count=resolved_count)
    if plan.conflicts:
        if request.dry_run:
            return replace(report, outcome="conflict")
        raise MergeConflict(conflicts=report.conflicts)
    if request.dry_run:
        return report
    commit_details = merge_details(request, report)
    commit = publish_merge(merge_inputs, plan, request.commit_metadata, commit_details)
    return replace(report, commit=commit)


def plan_schema_conflicts(conflicts: Iterable[EntityConflict]) -> MergePlan:
    """Return a plan with only the schema conflicts, because rows cannot be compared until these are resolved."""
    return MergePlan(tuple(map(schema_conflict, conflicts)), Delta(), {})


def open_planner(merge_inputs: MergeInputs, request: MergeRequest) -> MergePlanner:
    """Return the planner for a merge. If the two sides have different schemas, the planner uses the merged schema."""
    if merge_inputs.outcome != "merged":
        return MergePlanner(merge_inputs, request.options)

    def decide(conflict: EntityConflict) -> str | None:
        answer = answer_conflict(request.strategy, conflict)
        return answer if isinstance(answer, str) else None

    merged = combine_schemas(merge_inputs, decide)
    return MergePlanner(merge_inputs, request.options, None if merged is None else AlignedTables(merge_inputs, merged))


def merge_details(request: MergeRequest, report: MergeReport) -> dict[str, Any]:
    """Return the merge details that are recorded in the commit.

    If the details contain no granularity, the merge either compared whole entities or was a fast-forward, which
    compares nothing.
    """
    commit_details: dict[str, Any] = {}
    if request.options.granularity != "entity" and report.outcome != "fast_forward":
        commit_details["granularity"] = request.options.granularity
    if request.options.collapse_edges:
        commit_details["collapse_edges"] = True
    if request.strategy is not None:
        commit_details["strategy"] = describe_strategy(request.strategy)
    counts = {
        "resolved": report.resolved_count,
        "discarded": len(report.discarded_changes),
        "lost_edges": len(report.lost_edges),
    }
    return commit_details | {count_name: count for count_name, count in counts.items() if count}


def _type_names(merge_inputs: MergeInputs) -> list[str]:
    catalog = merge_inputs.target_snapshot.schema.ir.catalog
    return [*(entity_type.name for entity_type in catalog.nodes), *(entity_type.name for entity_type in catalog.edges)]
