"""Load data with Spark: stage and check everything, then publish it atomically under one intent.

Tasks write fragments that no manifest references yet. The driver checks the rules that involve all records and passes
one plan to `publish`. If the driver crashes before the intent is confirmed, only unreferenced files remain, which a
cleanup removes. If it crashes afterward, the load is completed the next time the graph is opened for writing.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError, ReadSetConflict, VersionConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.ingest.disk_space import estimate_input, require_disk_space
from omnigraph.ingest.input_files import InputFile, total_bytes
from omnigraph.ingest.input_pieces import InputPiece, cut_into_pieces
from omnigraph.ingest.load import LoadEffects, LoadMode, LoadOutcome, LoadSummary, RequireRows
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.stage import stage_tables
from omnigraph.ingest.strict_rows import deleted_row_filters
from omnigraph.publish.idempotency import find_replayed_commit
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.requirements import Requirement, SameContent, SameSchema, check_requirements
from omnigraph.publish.unread_changes import RowFilter
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.endpoints import endpoint_columns
from omnigraph.spark.check_context import LoadCheckContext
from omnigraph.spark.check_load import SetViolations, find_set_violations
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.storage.table import StagedChange
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from . import step_progress
from .deletion import collect_named_rows, find_deletion
from .endpoint_lookup import remove_scratch_folders
from .nulled_values import sum_nulled_values
from .patch_writer import write_patches
from .patched_records import patched_row_filters
from .pinned_graph import pin_graph
from .rejected_records import RejectedRecords, collect_rejected
from .session import parallelism, translate_spark_errors
from .stage import LoadJob, make_frame_task, make_piece_task, table_key_of
from .staged_tables import stage_reported_tables
from .task_reports import (
    REPORT_DDL,
    FailureReport,
    RecordCountReport,
    ReportedTypeReport,
    StagedFragmentReport,
    TaskReport,
    collect_reports,
    select_reports,
)
from .versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.pinned_graph import PinnedVersion

    from .staged_fragments import StagedFragment

MAX_ATTEMPTS = 3
_MIN_PIECE_BYTES, _MAX_PIECE_BYTES = 4 << 20, 64 << 20  # number of bytes per piece
_NUMBERS_PER_FRAME = 1 << 16  # piece numbers reserved for the partitions of one DataFrame
_FRAME_TASKS_PER_CORE = 4  # tasks per DataFrame and core; a DataFrame with more partitions is coalesced
StepNameCallback = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """The options for a load, such as the input files or DataFrames, the mode, and whether it is a dry run.

    `piece_bytes` is the size of an input piece. `fragment_rows` and `fragment_bytes` limit the size of a fragment.
    `on_step` is called with the name of each step. For a patch or deletion, `require_rows` returns the requirement that
    the affected rows have not changed since the caller read them. If many records are rejected, tasks write them to
    files in the folder `rejects`.
    """

    mode: LoadMode
    input_files: Sequence[InputFile] = ()
    frames: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    limits: LoadLimits = field(default_factory=LoadLimits)
    piece_bytes: int | None = None
    fragment_rows: int = FRAGMENT_ROWS
    fragment_bytes: int = FRAGMENT_BYTES
    streams: Mapping[str, str] = field(default_factory=dict)
    on_step: StepNameCallback = lambda _: None
    progress: step_progress.StepProgressCallback | None = None
    require_rows: RequireRows | None = None
    rejects: str | None = None


def load_on_spark(
    spark: "SparkSession",
    branch_state: BranchState,
    bulk_load: BulkLoad,
    *,
    commit_metadata: CommitMetadata | None = None,
    requirements: Sequence[Requirement] = (),
) -> LoadOutcome:
    """Load data in bulk as one commit; the outcome lists any problems.

    If another writer published a conflicting change first, the load is staged again on the newer head. An overwrite is
    not retried.
    """
    check_versions(spark)
    commit_metadata = commit_metadata or CommitMetadata()
    replayed_commit = find_replayed_commit(branch_state.store, branch_state.refresh().state, commit_metadata)
    if replayed_commit is not None:
        return LoadOutcome(bulk_load.mode, replayed_commit)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        load_attempt = LoadAttempt(spark, branch_state, bulk_load, requirements)
        try:
            with translate_spark_errors(spark), load_attempt.step_tracker.report_progress():
                return load_attempt.load_report(load_attempt.publish(commit_metadata))
        except (VersionConflict, ReadSetConflict):
            if bulk_load.mode == "overwrite" or load_attempt.has_row_conflict or attempt == MAX_ATTEMPTS:
                raise
            check_requirements(
                requirements, _begin_transaction(branch_state)
            )  # do not retry if the caller's own requirements failed
        finally:
            load_attempt.remove_scratch()
    raise AssertionError  # unreachable, because the last attempt raises


def _begin_transaction(branch_state: BranchState) -> WriteTxn:
    return WriteTxn(
        branch_state.store,
        branch_state.name,
        branch_state.refresh(),
        clock_and_ids.new_ulid(),
        clock_and_ids.now_micros(),
    )


class LoadAttempt:
    """One attempt at a load."""

    def __init__(
        self, spark: "SparkSession", branch_state: BranchState, bulk_load: BulkLoad, requirements: Sequence[Requirement]
    ) -> None:
        self.spark, self.branch_state, self.bulk_load, self.requirements = (
            spark,
            branch_state,
            bulk_load,
            requirements,
        )
        self.rejected = RejectedRecords()
        self.record_counts: dict[TableKey, int] = {}
        self.effects = LoadEffects()
        self.has_row_conflict = False
        self.load_id = clock_and_ids.new_ulid()
        self.written_bytes = 0
        self.step_tracker = step_progress.StepTracker(spark, bulk_load.progress)

    def publish(self, commit_metadata: CommitMetadata) -> Commit | None:
        """Stage, check and publish the load; a dry run does not publish anything."""
        if self.bulk_load.dry_run:
            self.stage(_begin_transaction(self.branch_state))
            return None
        return publish_long_operation(self.branch_state, "load", self.stage, commit_metadata)

    def load_report(self, commit: Commit | None) -> LoadOutcome:
        """Return the outcome of the load."""
        self.step_tracker.end()
        summary = LoadSummary(self.step_tracker.seconds, self.written_bytes)
        if self.rejected.problems:
            return LoadOutcome(
                self.bulk_load.mode,
                problems=self.rejected.problems,
                left_out=self.rejected.left_out,
                reject_files=self.rejected.files,
                summary=summary,
            )
        counts = self.effects.deleted if self.bulk_load.mode == "delete" else self.record_counts
        node_counts, edge_counts = (
            {key.type_name: record_count for key, record_count in sorted(counts.items()) if key.kind == kind}
            for kind in ("node", "edge")
        )
        return LoadOutcome(
            self.bulk_load.mode,
            commit,
            node_counts,
            edge_counts,
            summary=summary,
            missing=self.effects.missing,
            nulled=self.effects.nulled,
        )

    def remove_scratch(self) -> None:
        """Remove the indexes that executors built for this attempt. Only edges need an index."""
        if not any(table_key.is_edge for table_key in self.record_counts):
            return
        with suppress(Exception):  # a stopped Spark session has already removed the indexes
            remove_scratch_folders(self.spark, self.load_id)

    def _begin_step(self, step_name: str, row_estimate: int = 0) -> None:
        self.step_tracker.begin(step_name, row_estimate)
        self.bulk_load.on_step(step_name)

    def stage(self, txn: WriteTxn) -> PublishPlan | None:
        """Do all the work that precedes publishing; return None if there is a problem or nothing to write."""
        check_requirements(self.requirements, txn)
        snapshot = manifest_snapshot(txn.store, self.branch_state, txn.base)
        load_job, estimate = self.make_job(snapshot), estimate_input(self.bulk_load.input_files)
        if load_job.writes_fragments:
            require_disk_space(txn.store, estimate.bytes)
        pieces = self.cut_pieces()
        self._begin_step("stage", estimate.rows)
        task_reports = self.run_tasks(load_job, pieces)
        try:
            return self._judge_reports(txn, snapshot, load_job, pieces, task_reports)
        finally:
            task_reports.unpersist()

    def _judge_reports(
        self,
        txn: WriteTxn,
        snapshot: Snapshot,
        load_job: LoadJob,
        pieces: Sequence[InputPiece],
        task_reports: "DataFrame",
    ) -> PublishPlan | None:
        collected = collect_reports(task_reports)
        for failure in select_reports(collected, FailureReport):
            raise failure.error
        input_keys = self._count_records(collected)
        self._begin_step("check", sum(self.record_counts.values()))
        if load_job.mode == "delete":
            return self._judge_deletion(txn, load_job, pieces, task_reports, collected)
        context = self._check_context(load_job, snapshot, task_reports, collected, input_keys)
        if load_job.mode == "patch":
            self._require_rows(txn, patched_row_filters(context))
        found = find_set_violations(context)
        self.rejected = collect_rejected(task_reports, pieces, collected, found, self.bulk_load.rejects)
        self.effects.nulled = sum_nulled_values(collected)
        if self.rejected.problems or self.bulk_load.dry_run:
            return None
        if load_job.mode == "patch":
            collected = write_patches(self.spark, load_job, task_reports, collected)
        elif (
            found.replaced_positions
        ):  # later records replace some records, so write again without the replaced records
            second_reports = self.run_tasks(replace(load_job, skipped_positions=found.replaced_positions), pieces)
            collected = collect_reports(second_reports)
            second_reports.unpersist()
        staged_tables, self.written_bytes = stage_reported_tables(txn, load_job, collected, input_keys)
        return self._make_plan(txn, load_job, staged_tables, input_keys) if staged_tables else None

    def _require_rows(self, txn: WriteTxn, row_filters: Mapping[TableKey, RowFilter | None]) -> None:
        """Check that the affected rows are unchanged since the caller read them; if not, the load is not retried."""
        if self.bulk_load.require_rows is None:
            return
        try:
            check_requirements((self.bulk_load.require_rows(row_filters),), txn)
        except VersionConflict:
            self.has_row_conflict = True
            raise

    def _judge_deletion(
        self,
        txn: WriteTxn,
        load_job: LoadJob,
        pieces: Sequence[InputPiece],
        task_reports: "DataFrame",
        collected: Sequence[TaskReport],
    ) -> PublishPlan | None:
        """Find the rows to delete and plan their removal on the driver, which must list the removed rows anyway."""
        named_rows = collect_named_rows(load_job, task_reports)
        self._require_rows(txn, deleted_row_filters(load_job.schema_ir.catalog, named_rows))
        delta, violations, self.effects = find_deletion(load_job, named_rows)
        found = SetViolations(others=violations)
        self.rejected = collect_rejected(task_reports, pieces, collected, found, self.bulk_load.rejects)
        if self.rejected.problems or self.bulk_load.dry_run or not delta.tables:
            return None
        return self._make_plan(txn, load_job, stage_tables(txn, delta), frozenset(self.record_counts))

    def _check_context(
        self,
        load_job: LoadJob,
        snapshot: Snapshot,
        task_reports: "DataFrame",
        collected: Sequence[TaskReport],
        input_keys: frozenset[TableKey],
    ) -> LoadCheckContext:
        type_reports = select_reports(collected, ReportedTypeReport)
        unwritten_keys = frozenset(report.table_key for report in type_reports if report.has_unwritten)
        staged_fragments: dict[TableKey, list[StagedFragment]] = {}
        for report in select_reports(collected, StagedFragmentReport):
            staged_fragments.setdefault(report.fragment.table_key, []).append(report.fragment)
        return LoadCheckContext(
            self.spark,
            self.load_id,
            load_job,
            snapshot,
            task_reports,
            collected,
            input_keys,
            staged_fragments,
            frozenset(report.table_key for report in type_reports),
            unwritten_keys,
        )

    def make_job(self, snapshot: Snapshot) -> LoadJob:
        """Build the description of the load that is sent to its tasks."""
        pinned_tables: dict[str, PinnedVersion] = {
            key: (table_entry.location, table_entry.lance_version) for key, table_entry in snapshot.tables.items()
        }
        return LoadJob(
            snapshot.schema.ir,
            pin_graph(snapshot.store, pinned_tables),
            tuple(sorted(snapshot.tables)),
            self.bulk_load.mode,
            frozenset(key for key, table_entry in snapshot.tables.items() if table_entry.row_count),
            not self.bulk_load.dry_run,
            self.bulk_load.limits,
            self.bulk_load.fragment_rows,
            self.bulk_load.fragment_bytes,
        )

    def cut_pieces(self) -> list[InputPiece]:
        """Split the input files into pieces for tasks."""
        return cut_into_pieces(self.bulk_load.input_files, self._piece_bytes())

    def _piece_bytes(self) -> int:
        if self.bulk_load.piece_bytes is not None:
            return self.bulk_load.piece_bytes
        task_share = total_bytes(self.bulk_load.input_files) // (2 * parallelism(self.spark))
        return min(max(task_share, _MIN_PIECE_BYTES), _MAX_PIECE_BYTES)

    def run_tasks(self, load_job: LoadJob, pieces: Sequence[InputPiece]) -> "DataFrame":
        """Run all tasks and return their reports, persisted so that no task runs and writes its data twice."""
        from pyspark import StorageLevel

        report_frames = []
        if pieces:
            piece_numbers = self.spark.range(0, len(pieces), 1, len(pieces))
            report_frames.append(piece_numbers.mapInArrow(make_piece_task(load_job, pieces), REPORT_DDL))
        first_number = len(pieces)
        for type_name, frame in self.bulk_load.frames.items():
            # A task takes about 0.1 s of CPU time and writes at least one fragment, however few rows it has.
            frame_tasks = frame.coalesce(_FRAME_TASKS_PER_CORE * parallelism(self.spark))
            report_frames.append(
                frame_tasks.mapInArrow(
                    make_frame_task(load_job, table_key_of(load_job.schema_ir, type_name), first_number), REPORT_DDL
                )
            )
            first_number += _NUMBERS_PER_FRAME
        if not report_frames:
            raise InputError("there is nothing to load", reason="no input")
        all_reports: DataFrame = reduce(lambda a, b: a.unionAll(b), report_frames)
        return all_reports.persist(StorageLevel.DISK_ONLY)

    def _count_records(self, collected: Sequence[TaskReport]) -> frozenset[TableKey]:
        """Count the records by type, and return the keys of the types in the input."""
        truncated_keys = set()
        for report in select_reports(collected, RecordCountReport):
            key = report.table_key
            self.record_counts[key] = self.record_counts.get(key, 0) + report.record_count
            if report.truncated:
                truncated_keys.add(key)
        for key in sorted(truncated_keys):
            if self.record_counts[key]:
                raise InputError(reason=f"the same input must not both truncate {key} and load records into it")
        return frozenset(self.record_counts)

    def _make_plan(
        self,
        txn: WriteTxn,
        load_job: LoadJob,
        staged_tables: Mapping[TableKey, StagedChange],
        input_keys: frozenset[TableKey],
    ) -> PublishPlan:
        read_keys = set(input_keys)
        for edge_type in load_job.schema_ir.catalog.edges:
            if TableKey.edge(edge_type.name) in input_keys:
                read_keys |= {key for _, _, key in endpoint_columns(edge_type)}
        if load_job.mode in ("overwrite", "delete"):
            read_keys |= {TableKey.edge(edge_type.name) for edge_type in load_job.schema_ir.catalog.edges}
        table_entries = txn.base.state.tables
        content_requirements = [
            SameContent(table_key, table_entries[table_key].content_id, table_entries[table_key].version)
            for table_key in sorted(read_keys)
        ]
        schema_requirement = SameSchema(txn.base.state.schema.hash)
        requirements = (schema_requirement, *self.requirements, *content_requirements)
        # Detect conflicts with a newer head here, before the intent is confirmed.
        check_requirements(requirements, replace(txn, base=self.branch_state.refresh()))
        self._begin_step("publish")
        epoch = txn.base.state.head.gc_epoch
        return PublishPlan("load", staged_tables, requirements, streams=self.bulk_load.streams, gc_epoch=epoch)
