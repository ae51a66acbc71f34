"""Merge results (`MergeResult`), and merge sessions (`MergeSession`) for resolving conflicts one at a time.

A result or session refers to two snapshots: one of the source, and one of the target before the merge. A session
changes nothing until you call `commit`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from omnigraph.api.error_boundary import Guarded
from omnigraph.api.merge_changes import iter_merge_changes
from omnigraph.api.results.diff import Diff, LazyTableChanges, sum_change_counts
from omnigraph.errors import (
    EntityConflict,
    HistoryReclaimed,
    InputError,
    MergeConflict,
    OmnigraphError,
    ReadSetConflict,
)
from omnigraph.errors.conflict_card import conflict_card
from omnigraph.errors.counts import format_count
from omnigraph.errors.merge_conflict import conflict_table
from omnigraph.history.commit import Commit
from omnigraph.history.merge_inputs import MergeInputs, MergeOutcome, recapture_target
from omnigraph.history.schema_changes import SchemaChange
from omnigraph.merging import conflicts as found_conflicts
from omnigraph.merging.discarded_changes import DiscardedChange
from omnigraph.merging.lost_edges import LostEdge
from omnigraph.merging.merge import (
    MAX_ATTEMPTS,
    MergeReport,
    MergeRequest,
    merge_captured,
    only_maintained,
    open_planner,
    plan_schema_conflicts,
)
from omnigraph.merging.merged_schema import SCHEMA_CONFLICT
from omnigraph.merging.parallel_edges import ParallelEdgePair
from omnigraph.merging.planner import MergePlan, MergePlanner
from omnigraph.merging.strategy import (
    ConflictAnswer,
    check_schema_answer,
    record_answers,
    resolve_conflicts,
    withdraw_answer,
)
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.records.cached_property import cached_property
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.merging.decisions import Decision


@dataclass(frozen=True, repr=False)
class MergeResult(Guarded):
    """The actual or previewed effect of a merge. It is truthy unless `outcome` is `conflict`.

    `outcome` is `already_up_to_date`, `fast_forward` or `merged`, or `conflict` for a dry run with conflicts. `base` is
    the merge base, and `source` and `target` are the commits that were merged. `discarded` lists the changes that were
    dropped when conflicts were resolved. Each entry is a property value, a whole entity or a deletion, together with
    the side that made the change. `lost_edges` are edges that one side deleted together with a node that the merge
    keeps. These edges are not restored. `replayed` is true if the commit was published by an earlier request with the
    same idempotency key.
    """

    outcome: MergeOutcome
    commit: Commit | None
    conflicts: tuple[EntityConflict, ...] = ()
    parallel_edges: tuple[ParallelEdgePair, ...] = ()
    base: str = ""
    source: str = ""
    target: str = ""
    branch_deleted: bool = False
    branch_delete_error: str | None = None
    lost_edges: tuple[LostEdge, ...] = ()
    discarded: tuple[DiscardedChange, ...] = ()
    replayed: bool = field(default=False, compare=False)
    merged: MergeReport | None = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return self.outcome != "conflict"

    def __repr__(self) -> str:
        conflict_text = f", {format_count(len(self.conflicts), 'conflict')}" if self.conflicts else ""
        commit_text = f", commit {self.commit.id}" if self.commit is not None else ""
        summary = f"{self.outcome}{conflict_text}{self._describe_losses()}{commit_text}"
        return f"<Merge of {self.source} into {self.target}: {summary}>"

    def _describe_losses(self) -> str:
        """Return the numbers of discarded changes and of lost edges as text, or an empty string if there are none."""
        discarded, lost = (self._count_losses(name) for name in ("discarded", "lost_edges"))
        discarded_text = f", {format_count(discarded, 'change')} discarded" if discarded else ""
        return discarded_text + (f", {format_count(lost, 'edge')} lost" if lost else "")

    def _count_losses(self, name: Literal["discarded", "lost_edges"]) -> int:
        """Count discarded changes or lost edges. For a repeated request, only the recorded number is known."""
        recorded = 0 if self.commit is None else self.commit.details.get(name, 0)
        return len(getattr(self, name)) or recorded

    @cached_property
    def delta(self) -> Diff:
        """The actual or previewed changes to the target, computed on first use."""
        if self.merged is None and self.commit is not None:
            raise HistoryReclaimed(f"the rows that commit {self.commit.id} merged have been removed by a cleanup")
        if self.merged is None or self.outcome == "already_up_to_date":
            return Diff(LazyTableChanges(lambda: iter(())), self.target, self.target)
        new_commit_id = self.commit.id if self.commit is not None else self.source
        merge_report = self.merged
        return Diff(LazyTableChanges(lambda: iter_merge_changes(merge_report)), self.target, new_commit_id)

    @cached_property
    def schema_change(self) -> SchemaChange | None:
        """The actual or previewed schema changes on the target, or None if its schema stays the same."""
        return None if self.merged is None else self.merged.schema_change

    @cached_property
    def stats(self) -> dict[str, Any]:
        """Counts of changes, conflicts, resolutions and combined properties."""
        if self.merged is None and self.commit is not None:
            return self._recorded_counts(self.commit)
        merge_plan = self.merged.plan if self.merged is not None else None
        return {
            **self._count_changes(),
            "conflicts": len(self.conflicts),
            "resolved": self.merged.resolved_count if self.merged is not None else 0,
            "merged_properties": merge_plan.merged_properties if merge_plan is not None else 0,
            "parallel_edges": len(self.parallel_edges),
            "lost_edges": len(self.lost_edges),
            "discarded": len(self.discarded),
        }

    def _recorded_counts(self, commit: Commit) -> dict[str, Any]:
        """Return the counts that a merge commit records.

        Changes are not included, because counting them requires the rows.
        """
        recorded = {name: commit.details.get(name, 0) for name in ("resolved", "lost_edges", "discarded")}
        return {"conflicts": 0, **recorded}

    def _count_changes(self) -> dict[str, Any]:
        """Count the changes without reading rows from tables that were compared on Spark."""
        merge_plan = self.merged.plan if self.merged is not None else None
        if self.merged is None or merge_plan is None or not merge_plan.offloaded_tables:
            return self.delta.summary()
        merge_report, offloaded_deltas = self.merged, merge_plan.offloaded_tables
        local_diff = Diff(
            LazyTableChanges(lambda: iter_merge_changes(merge_report, set(offloaded_deltas))), self.target, self.target
        )
        offloaded_counts = {
            table_key: table_delta.count_changes() for table_key, table_delta in offloaded_deltas.items()
        }
        return sum_change_counts(
            {
                **local_diff.counts(),
                **{
                    offloaded_key: op_counts
                    for offloaded_key, op_counts in offloaded_counts.items()
                    if any(op_counts.values())
                },
            }
        )

    def to_arrow(self) -> pa.Table:
        """Return the conflicts as an Arrow table."""
        arrow_table: pa.Table = conflict_table(self.conflicts, pa)
        return arrow_table

    def _repr_html_(self) -> str:
        if self.conflicts:
            return conflict_card(self.conflicts, f"{self.source} into {self.target}{self._describe_losses()}")
        from omnigraph.api.results.notebook_cards import diff_card

        caption = f"{repr(self.delta)[1:-1]}{self._describe_losses()}"
        return diff_card(self.delta, caption, self.delta.summary())


def build_merge_result(merge_report: MergeReport) -> MergeResult:
    """Return the public result for a merge report."""
    merge_inputs = merge_report.merge_inputs
    return MergeResult(
        merge_report.outcome,
        merge_report.commit,
        merge_report.conflicts,
        merge_report.parallel_edges,
        merge_inputs.base_snapshot.commit_id,
        merge_inputs.source_snapshot.commit_id,
        merge_inputs.target_snapshot.commit_id,
        lost_edges=merge_report.lost_edges,
        discarded=merge_report.discarded_changes,
        merged=merge_report,
    )


class MergeSession(Guarded):
    """A merge session. Resolve conflicts one at a time with `resolve`, then publish the merge with `commit`.

    A conflict's number never changes. Resolving a conflict may reveal new conflicts, which are appended to the list.
    Rows are compared once all schema conflicts are resolved. A new decision about a schema conflict discards all
    decisions about rows, and the row conflicts are then listed again.
    """

    def __init__(
        self, merge_inputs: MergeInputs, request: MergeRequest, on_merged: Callable[[MergeReport], MergeResult]
    ) -> None:
        self._merge_inputs = merge_inputs
        self._request = request
        self._on_merged = on_merged
        self._schema_decisions: dict[EntityConflict, str] = {}
        self._planner = self._open_planner()
        self._decisions: dict[found_conflicts.EntityKey, Decision] = {}
        self._detected_conflicts: list[found_conflicts.DetectedConflict] = []
        self._merge_plan: MergePlan | None = None

    def _guarded_store(self) -> Store:
        return self._merge_inputs.target_branch.store

    @property
    def conflicts(self) -> tuple[EntityConflict, ...]:
        """All conflicts found so far, whether resolved or not."""
        self._update_plan()
        return tuple(detected_conflict.conflict for detected_conflict in self._detected_conflicts)

    @property
    def open(self) -> tuple[EntityConflict, ...]:
        """The unresolved conflicts."""
        merge_plan = self._update_plan()
        return (
            ()
            if merge_plan is None
            else tuple(detected_conflict.conflict for detected_conflict in merge_plan.conflicts)
        )

    def __len__(self) -> int:
        return len(self.open)

    def __repr__(self) -> str:
        source = self._merge_inputs.source_snapshot.branch
        target = self._merge_inputs.target_snapshot.branch
        progress = f"{len(self.open)} of {len(self.conflicts)} left"
        return f"<MergeSession of {source!r} into {target!r}: {progress}>"

    def resolve(self, which: int | EntityConflict, choice: ConflictAnswer) -> "MergeSession":
        """Resolve one conflict with `ours`, `theirs`, or a dict of property values.

        Choosing a side decides only the properties in conflict, unless the session compares whole entities. A schema
        conflict can be resolved only by choosing a side. Raises `SchemaUnsupported` if the target's data cannot be
        converted to the chosen side's schema.
        """
        all_conflicts = self.conflicts
        try:
            conflict_index = (
                all_conflicts.index(which) if isinstance(which, EntityConflict) else range(len(all_conflicts))[which]
            )
        except (IndexError, ValueError):
            count = len(all_conflicts)
            message = f"unknown conflict {which}; the merge has {count} conflict{'s'[: count != 1]}"
            raise InputError(message, reason="unknown conflict") from None
        self._decide([self._detected_conflicts[conflict_index]], choice)
        return self

    def resolve_all(
        self, choice: ConflictAnswer, *, type: str | None = None, kind: str | None = None
    ) -> "MergeSession":
        """Resolve all open conflicts, or only those of one type or kind, starting with schema conflicts."""

        def select_open() -> list[found_conflicts.DetectedConflict]:
            merge_plan = self._update_plan()
            return [
                detected_conflict
                for detected_conflict in (merge_plan.conflicts if merge_plan is not None else ())
                if (type is None or detected_conflict.conflict.type_name == type)
                and (kind is None or detected_conflict.conflict.kind == kind)
                and detected_conflict.conflict not in self._schema_decisions
            ]

        selected_conflicts = select_open()
        while any(map(_is_schema_conflict, selected_conflicts)):  # a decision may reveal the next conflict
            self._decide(selected_conflicts, choice)
            selected_conflicts = select_open()
        self._decide(selected_conflicts, choice)
        return self

    def preview(self) -> MergeResult:
        """Return a preview of the merge and the remaining conflicts."""
        return build_merge_result(self._run_merge(replace(self._request, dry_run=True)))

    def commit(self, *, message: str | None = None, actor: str | None = None) -> MergeResult:
        """Publish the merge, even if maintenance has changed the target in the meantime.

        Raises `MergeConflict` if a conflict remains, and `ReadSetConflict` if the target's data
        or schema has changed.
        """
        open_conflicts = self.open
        if open_conflicts:
            raise MergeConflict(conflicts=open_conflicts)
        previous_metadata = self._request.commit_metadata
        commit_metadata = CommitMetadata(
            actor or previous_metadata.actor, message if message is not None else previous_metadata.message
        )
        return self._on_merged(self._publish_merge(replace(self._request, commit_metadata=commit_metadata)))

    def to_arrow(self) -> pa.Table:
        """Return all conflicts as an Arrow table, to view in a notebook or save to a file."""
        arrow_table: pa.Table = conflict_table(self.conflicts, pa)
        return arrow_table

    def _repr_html_(self) -> str:
        return conflict_card(self.open, repr(self)[1:-1])

    def _publish_merge(self, request: MergeRequest) -> MergeReport:
        """Publish the merge, planning it again if only maintenance has changed the target in the meantime."""
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return self._run_merge(request)
            except ReadSetConflict:
                if not only_maintained(self._merge_inputs):
                    raise
                self._merge_inputs = recapture_target(self._merge_inputs)
                self._planner = self._open_planner()
                self._merge_plan = None
        return self._run_merge(request)

    def _open_planner(self) -> MergePlanner:
        """Return a planner for the decisions about schema conflicts."""
        with self._request.blobs.activate():
            return open_planner(self._merge_inputs, replace(self._request, strategy=self._schema_decisions.get))

    def _run_merge(self, request: MergeRequest) -> MergeReport:
        resolved_count = len(self.conflicts) - len(self.open)
        if not self._planner.open_schema_conflicts:  # the merge itself counts the decided schema conflicts
            resolved_count -= self._planner.decided_schema_conflicts
        return merge_captured(self._merge_inputs, request, self._planner, self._decisions, resolved_count)

    def _decide(self, selected_conflicts: list[found_conflicts.DetectedConflict], choice: ConflictAnswer) -> None:
        schema_conflicts = list(filter(_is_schema_conflict, selected_conflicts))
        if schema_conflicts:
            self._decide_schema(schema_conflicts, choice)
        else:
            self._decide_rows(selected_conflicts, choice)

    def _decide_schema(self, schema_conflicts: list[found_conflicts.DetectedConflict], choice: ConflictAnswer) -> None:
        """Record the side chosen for schema conflicts and merge the schemas again. A rejected choice has no effect."""
        earlier_decisions = self._schema_decisions
        side = check_schema_answer(choice)
        self._schema_decisions = earlier_decisions | {detected.conflict: side for detected in schema_conflicts}
        try:
            self._planner = self._open_planner()
        except OmnigraphError:
            self._schema_decisions = earlier_decisions
            raise
        self._decisions.clear()
        self._detected_conflicts = list(filter(_is_schema_conflict, self._detected_conflicts))
        self._merge_plan = None

    def _decide_rows(self, selected_conflicts: list[found_conflicts.DetectedConflict], choice: ConflictAnswer) -> None:
        for detected_conflict in selected_conflicts:  # a second decision replaces the first
            withdraw_answer(self._decisions, detected_conflict)
        answers = [(detected_conflict, choice) for detected_conflict in selected_conflicts]
        with self._request.blobs.activate():
            record_answers(self._planner, self._decisions, answers)
        self._merge_plan = None

    def _update_plan(self) -> MergePlan | None:
        if self._merge_inputs.outcome != "merged":
            return None
        if self._merge_plan is None:
            self._merge_plan = self._make_plan()
            known_orders = {detected_conflict.sort_key for detected_conflict in self._detected_conflicts}
            self._detected_conflicts += [
                detected_conflict
                for detected_conflict in self._merge_plan.conflicts
                if detected_conflict.sort_key not in known_orders
            ]
        return self._merge_plan

    def _make_plan(self) -> MergePlan:
        open_schema_conflicts = self._planner.open_schema_conflicts
        if open_schema_conflicts:
            return plan_schema_conflicts(open_schema_conflicts)
        with self._request.blobs.activate():
            return resolve_conflicts(self._planner, None, self._decisions)[0]


def _is_schema_conflict(detected_conflict: found_conflicts.DetectedConflict) -> bool:
    return detected_conflict.conflict.kind == SCHEMA_CONFLICT
