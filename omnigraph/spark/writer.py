"""Write with `df.write.format("omnigraph")`: tasks write fragments, and the driver checks keys and publishes once.

Rows are never collected in one process. A task returns the metadata of its fragments and the values that rules
involving all rows need: ids, edge endpoints and unique values. No data is visible before `commit`, and nothing is
published if any row breaks a rule.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as api

from omnigraph.errors import ClientError, KeyConflict, ReadSetConflict
from omnigraph.history.branches import open_branch
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.frames import take_table
from omnigraph.ingest.load import BUFFER_CLASSES, LoadMode
from omnigraph.ingest.load_limits import load_limits
from omnigraph.ingest.partial_records import PartialRows
from omnigraph.ingest.patch_rows import resolve_patch
from omnigraph.ingest.problem import LoadProblem, ProblemCollector, relocate_problem
from omnigraph.ingest.record_intake import Intake, TypeBuffer
from omnigraph.ingest.unchanged_rows import without_unchanged
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import Requirement, SameContent, SameSchema
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, DeltaMode, TableDelta, build_table_delta
from omnigraph.rules.existing_rows import resolve_existing
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.unique import rule_columns
from omnigraph.storage.fragments import (
    stage_appended_fragments,
    stage_changed_fragments,
    stage_overwriting_fragments,
    write_fragment,
)
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.storage.table import StagedChange
from omnigraph.values.table_key import TableKey

from .arrow_bytes import pack_table, unpack_table
from .pinned_graph import PinnedGraph, PinnedRowLookup, pin_graph
from .stage import restore_unsigned

MAX_ROWS, MAX_BYTES = FRAGMENT_ROWS, FRAGMENT_BYTES  # limits on the size of a fragment
_MAX_PROBLEMS = 1000  # maximum number of problems that a task returns; only the first is raised
_DELTA_MODES: dict[str, DeltaMode] = {"append": "insert", "merge": "upsert", "overwrite": "replace", "patch": "upsert"}


@dataclass(frozen=True, slots=True)
class TypeWrite:
    """A description of a write to one type, based on one pinned version; all tasks and the final commit share it."""

    schema_ir: SchemaIR
    schema_hash: str
    pinned_graph: PinnedGraph
    table_key: TableKey
    branch_name: str
    mode: LoadMode
    content_id: str
    version: int
    has_rows: bool
    gc_epoch: int

    @property
    def entity_type(self) -> NodeType | EdgeType:
        """The type that rows are written to."""
        return type_for_key(self.schema_ir.catalog, self.table_key)


def prepare_type_write(
    snapshot: Snapshot, table_key: TableKey, branch_name: str, mode: LoadMode, gc_epoch: int
) -> TypeWrite:
    """Prepare a write that is based on a snapshot."""
    table_entry = snapshot.tables[table_key]
    pinned_graph = pin_graph(snapshot.store, {table_key: (table_entry.location, table_entry.lance_version)})
    return TypeWrite(
        snapshot.schema.ir,
        snapshot.schema_row.hash,
        pinned_graph,
        table_key,
        branch_name,
        mode,
        table_entry.content_id,
        table_entry.version,
        table_entry.row_count > 0,
        gc_epoch,
    )


@dataclass(slots=True)
class WriteTaskReport(api.WriterCommitMessage):
    """The result of a task: its fragments, the rows that they replace, its keys and its problems."""

    fragments: list[dict[str, Any]] = field(default_factory=list)
    removed_addresses: list[Any] = field(default_factory=list)
    packed_keys: list[bytes] = field(default_factory=list)
    problems: list[LoadProblem] = field(default_factory=list)
    ids_generated: bool = True


class GraphWriter(api.DataSourceArrowWriter):
    """Writes one DataFrame to one type, as one commit."""

    def __init__(self, type_write: TypeWrite) -> None:
        self.type_write = type_write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriteTaskReport:
        """Stage a task's rows; invalid rows are reported and do not fail the task."""
        task_report = WriteTaskReport()
        tables = (restore_unsigned(pa.Table.from_batches([batch]), self.type_write.entity_type) for batch in iterator)
        try:
            for rows in _gather_fragment_rows(self.type_write, task_report, tables):
                _stage_rows(self.type_write, task_report, rows)
        except ClientError as error:
            task_report.problems.append(LoadProblem(None, self.type_write.entity_type.name, None, error))
        del task_report.problems[_MAX_PROBLEMS:]
        return task_report

    def commit(self, messages: list[Any]) -> None:
        """Check the data that all tasks wrote, and publish it."""
        task_reports = [item for item in messages if item is not None]
        for problem in (item for task_report in task_reports for item in task_report.problems):
            raise problem.error
        publish_task_reports(self.type_write, task_reports)

    def abort(self, messages: list[Any]) -> None:
        """Do nothing, because no data is visible and a cleanup removes the files that a failed write leaves behind."""


def _gather_fragment_rows(
    type_write: TypeWrite, task_report: WriteTaskReport, tables: Iterable[pa.Table]
) -> Iterator[pa.Table]:
    """Yield tables of rows in stored form, each large enough for one fragment, except possibly the last."""
    problems = ProblemCollector()
    buffer_class = BUFFER_CLASSES.get(type_write.mode, TypeBuffer)
    intake = Intake(type_write.schema_ir, problems, load_limits(), buffer_class)
    pending_tables: list[pa.Table] = []
    rows_read = pending_rows = pending_bytes = 0
    for spark_table in tables:
        take_table(intake, type_write.entity_type, spark_table, rows_read + 1)
        intake.flush()
        type_buffer = intake.buffers[type_write.table_key]
        parsed_rows, _ = type_buffer.drain()
        task_report.ids_generated = task_report.ids_generated and type_buffer.all_ids_generated
        _report_problems(task_report, problems.collected)
        problems.collected.clear()
        pending_tables.append(parsed_rows)
        rows_read += spark_table.num_rows
        pending_rows += parsed_rows.num_rows
        pending_bytes += parsed_rows.nbytes
        if pending_rows >= MAX_ROWS or pending_bytes >= MAX_BYTES:
            yield pa.concat_tables(pending_tables, promote_options="default")
            pending_tables, pending_rows, pending_bytes = [], 0, 0
    if pending_rows:
        yield pa.concat_tables(pending_tables, promote_options="default")


def _report_problems(task_report: WriteTaskReport, problems: Iterable[LoadProblem]) -> None:
    """Report problems without line numbers, because DataFrame rows do not have line numbers."""
    task_report.problems += [relocate_problem(problem, lambda _: None, None) for problem in problems]


def _complete_rows(type_write: TypeWrite, task_report: WriteTaskReport, rows: pa.Table) -> pa.Table:
    """Return the complete rows that result from patches; patches that match no stored row are reported."""
    partial_rows = PartialRows(type_write.entity_type, rows, np.zeros(rows.num_rows, np.int64))
    pinned_table = type_write.pinned_graph.table(type_write.table_key)
    patched, _, violations = resolve_patch(
        partial_rows, PinnedRowLookup(type_write.pinned_graph), pinned_table.schema.names
    )
    for violation in violations:
        error = replace(violation, input_line=None).to_error()
        task_report.problems.append(LoadProblem(None, violation.type_name, violation.entity_id, error))
    return patched.rows.select(pinned_table.schema.names)


def _stage_rows(type_write: TypeWrite, task_report: WriteTaskReport, rows: pa.Table) -> None:
    if type_write.mode == "patch":
        rows = _complete_rows(type_write, task_report, rows)
    for violation in row_violations(type_write.entity_type, rows, None):
        task_report.problems.append(LoadProblem(None, violation.type_name, violation.entity_id, violation.to_error()))
    task_report.packed_keys.append(pack_table(rows.select(rule_columns(type_write.entity_type))))
    if task_report.problems:  # nothing will be published, so do not write
        return
    # Treat every row as distinct here. Repeated ids are rejected later, when all keys are known.
    delta = build_table_delta(type_write.table_key, rows, "fresh")
    if type_write.mode in ("merge", "patch") and type_write.has_rows and not task_report.ids_generated:
        lookup = PinnedRowLookup(type_write.pinned_graph)
        upsert_delta = Delta({type_write.table_key: build_table_delta(type_write.table_key, rows, "upsert")})
        delta = without_unchanged(resolve_existing(upsert_delta, lookup)[0], lookup).tables[type_write.table_key]
    _write_delta(type_write, task_report, delta)


def _write_delta(type_write: TypeWrite, task_report: WriteTaskReport, delta: TableDelta) -> None:
    pinned_table = type_write.pinned_graph.table(type_write.table_key)
    store = type_write.pinned_graph.store()
    replaces_stored = delta.row_ids >= 0
    new_rows = delta.rows.filter(pa.array(~replaces_stored)) if replaces_stored.any() else delta.rows
    if new_rows.num_rows:
        task_report.fragments.append(write_fragment(store, pinned_table, new_rows))
    if replaces_stored.any():
        replacing_rows = delta.rows.filter(pa.array(replaces_stored))
        row_ids = delta.row_ids[replaces_stored].tolist()
        task_report.fragments.append(write_fragment(store, pinned_table, replacing_rows, row_ids))
        task_report.removed_addresses.append(delta.addresses[replaces_stored])


def publish_task_reports(type_write: TypeWrite, task_reports: list[WriteTaskReport]) -> None:
    """Publish the staged data, or raise an error if it breaks a rule that involves all rows.

    If there are no rows, only an overwrite is published.
    """
    packed_keys = [key_bytes for task_report in task_reports for key_bytes in task_report.packed_keys]
    if not packed_keys and type_write.mode != "overwrite":
        return
    key_delta = _combine_keys(type_write, task_reports, packed_keys)
    branch_state = open_branch(type_write.pinned_graph.store(), type_write.branch_name)

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        if txn.base.state.head.gc_epoch != type_write.gc_epoch:  # a cleanup may have removed our files
            raise ReadSetConflict(member="tables")
        lookup = RecordingLookup(txn)
        _, violations = check_delta(
            type_write.schema_ir.catalog, Delta({type_write.table_key: key_delta}), lookup, limit=1
        )
        if violations:
            raise violations[0].to_error()
        staged = _stage_write(type_write, task_reports, txn)
        if staged is None:
            return None
        return PublishPlan(
            "load", {type_write.table_key: staged}, tuple(lookup.requirements), gc_epoch=type_write.gc_epoch
        )

    publish(branch_state, prepare, None, _publish_requirements(type_write))


def _combine_keys(type_write: TypeWrite, task_reports: list[WriteTaskReport], packed_keys: list[bytes]) -> TableDelta:
    """Combine all keys into a delta without the other columns; the tasks have already checked the row rules."""
    key_tables = [unpack_table(item) for item in packed_keys]
    if not key_tables:
        key_tables = [
            type_write.pinned_graph.table(type_write.table_key)
            .schema.empty_table()
            .select(rule_columns(type_write.entity_type))
        ]
    key_rows = pa.concat_tables(key_tables)
    ids_generated = all(item.ids_generated for item in task_reports) and type_write.mode != "overwrite"
    delta = build_table_delta(
        type_write.table_key, key_rows, "fresh" if ids_generated else _DELTA_MODES[type_write.mode], from_records=True
    )
    if type_write.mode in ("merge", "patch") and len(delta.latest_positions) < key_rows.num_rows:
        hint = "keep only one row per id, because rows in a DataFrame have no order"
        raise KeyConflict(_repeated_id_message(type_write, key_rows), type_key=type_write.table_key, hint=hint)
    return replace(delta, rejects_existing=type_write.mode == "append", row_rules_checked=True)


def _repeated_id_message(type_write: TypeWrite, key_rows: pa.Table) -> str:
    id_counts = key_rows.group_by("id").aggregate([([], "count_all")])
    repeated_ids = id_counts.filter(pc.greater(id_counts["count_all"], 1))
    first_id = repeated_ids["id"][0].as_py()
    return f"several {type_write.entity_type.name} rows have the id '{first_id}'"


def _publish_requirements(type_write: TypeWrite) -> tuple[Requirement, ...]:
    """Return the requirements for publishing: unless rows are only appended, the table must be unchanged."""
    schema_requirement = SameSchema(type_write.schema_hash)
    if type_write.mode == "append":
        return (schema_requirement,)
    return (schema_requirement, SameContent(type_write.table_key, type_write.content_id, type_write.version))


def _stage_write(type_write: TypeWrite, task_reports: list[WriteTaskReport], txn: WriteTxn) -> StagedChange | None:
    table = txn.table(type_write.table_key)
    fragments = [item for task_report in task_reports for item in task_report.fragments]
    removed_addresses = [item for task_report in task_reports for item in task_report.removed_addresses]
    if type_write.mode == "overwrite":
        return stage_overwriting_fragments(table, fragments) if fragments or type_write.has_rows else None
    if removed_addresses:
        return stage_changed_fragments(txn.store, table, fragments, np.concatenate(removed_addresses))
    return stage_appended_fragments(table, fragments) if fragments else None
