"""Load tasks, which parse and convert records, check row rules, write fragments, and report to the driver.

The tasks run on executors and use the same parser, rules and storage code as a load in one process. A task makes
nothing visible and does not depend on other tasks. The driver uses the reports to check rules that involve all records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.errors import ClientError
from omnigraph.ingest.frames import take_table
from omnigraph.ingest.input_pieces import InputPiece, first_position, read_piece
from omnigraph.ingest.load import BUFFER_CLASSES, LoadMode
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.partial_records import PartialRows
from omnigraph.ingest.patch_rows import broken_row_rules, held_values, resolve_patch
from omnigraph.ingest.position_runs import pack_positions
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.ingest.record_intake import Intake, TypeBuffer
from omnigraph.ingest.streamed_blobs import has_blobs
from omnigraph.ingest.unchanged_rows import count_nulled_values, without_unchanged
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import resolve_type, type_for_key
from omnigraph.rules.delta import Delta, Positions, TableDelta, build_table_delta
from omnigraph.rules.existing_rows import resolve_existing
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.unique import rule_columns, unique_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.fragments import write_fragment
from omnigraph.storage.pending_blobs import pending_blobs
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.values import ScalarType
from omnigraph.values.table_key import TableKey

from .patch_writer import report_patched_rows
from .pinned_graph import PinnedGraph, PinnedRowLookup
from .report_rows import KEY_ROWS, REPLACED_EDGE_ROWS, TUPLE_ROWS
from .rule_inputs import key_batches, tuple_batches
from .staged_fragments import StagedFragment
from .task_reports import (
    ExistingIdReport,
    FailureReport,
    HeldValueReport,
    LineCountReport,
    NulledValuesReport,
    ProblemCountReport,
    RecordCountReport,
    RejectReport,
    RemovedRowsReport,
    ReportedTypeReport,
    RowViolationReport,
    StagedFragmentReport,
)

ReportBatches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class LoadJob:
    """The description of a load that is sent to its tasks.

    `filled_keys` are the keys of tables that have stored rows. Records at `skipped_positions` are not written.
    """

    schema_ir: SchemaIR
    pinned_graph: PinnedGraph
    table_keys: tuple[TableKey, ...]
    mode: LoadMode
    filled_keys: frozenset[TableKey] = frozenset()
    writes_fragments: bool = True
    limits: LoadLimits = field(default_factory=LoadLimits)
    fragment_rows: int = FRAGMENT_ROWS
    fragment_bytes: int = FRAGMENT_BYTES
    skipped_positions: frozenset[int] = frozenset()


def make_piece_task(load_job: LoadJob, pieces: Sequence[InputPiece]) -> Callable[[ReportBatches], ReportBatches]:
    """Return a Spark function that loads input pieces by number."""

    def run(batches: ReportBatches) -> ReportBatches:
        for batch in batches:
            for piece_number in batch.column(0).to_pylist():
                yield from _report_failures(piece_number, partial(_load_piece, load_job, pieces[piece_number]))

    return run


def make_frame_task(
    load_job: LoadJob, table_key: TableKey, first_number: int
) -> Callable[[ReportBatches], ReportBatches]:
    """Return a Spark function that loads a DataFrame of one type.

    The function numbers its pieces from `first_number`.
    """

    def run(batches: ReportBatches) -> ReportBatches:
        from pyspark import TaskContext

        context = TaskContext.get()
        piece_number = first_number + (context.partitionId() if context is not None else 0)
        tables = (
            restore_unsigned(pa.Table.from_batches([batch]), type_for_key(load_job.schema_ir.catalog, table_key))
            for batch in batches
        )
        yield from _report_failures(piece_number, partial(_load_tables, load_job, piece_number, table_key, tables))

    return run


def restore_unsigned(table: pa.Table, entity_type: NodeType | EdgeType) -> pa.Table:
    """Cast U64 columns, which Spark represents as decimals, back to unsigned integers."""
    unsigned_columns = {prop.name for prop in entity_type.properties if prop.type.scalar is ScalarType.U64}
    for column_index, column in enumerate(table.column_names):
        if column in unsigned_columns and pa.types.is_decimal(table.schema.field(column).type):
            table = table.set_column(column_index, column, table[column].cast(pa.uint64()))
    return table


def _report_failures(piece_number: int, load_piece: Callable[[], ReportBatches]) -> ReportBatches:
    """Yield the reports for a piece; input errors are reported and do not fail the task."""
    try:
        yield from load_piece()
    except ClientError as error:
        yield FailureReport(first_position(piece_number), error).to_batch()


def _load_piece(load_job: LoadJob, piece: InputPiece) -> ReportBatches:
    # Other tasks write patched rows, so these rows cannot contain blobs that are in files of this task.
    streams_blobs = load_job.mode != "patch" and has_blobs(load_job.schema_ir.catalog)
    with pending_blobs(None, {}) if streams_blobs else nullcontext():
        yield from _load_records(load_job, piece)


def _load_records(load_job: LoadJob, piece: InputPiece) -> ReportBatches:
    loader = PieceLoader(load_job)
    start_position = end_position = first_position(piece.number)
    truncating = load_job.mode == "overwrite"
    for block_end in read_piece(loader.intake, piece, allow_truncate=truncating, report_all=True):
        end_position = block_end
        yield from loader.drain()
    yield from loader.finish()
    yield LineCountReport(piece.number, end_position - start_position).to_batch()


def _load_tables(
    load_job: LoadJob, piece_number: int, table_key: TableKey, tables: Iterator[pa.Table]
) -> ReportBatches:
    loader, entity_type = PieceLoader(load_job), type_for_key(load_job.schema_ir.catalog, table_key)
    row_count, start_position = 0, first_position(piece_number)
    for table in tables:
        take_table(loader.intake, entity_type, table, start_position + row_count)
        row_count += table.num_rows
        yield from loader.drain()
    yield from loader.finish()
    yield LineCountReport(piece_number, row_count).to_batch()


def table_key_of(schema_ir: SchemaIR, type_name: str) -> TableKey:
    """Return the table key for a type.

    If a node type and an edge type have this name, the node type takes precedence.
    """
    entity_type = resolve_type(schema_ir.catalog, type_name, ignore_case=True)
    return TableKey.of(entity_type.kind, entity_type.name)


@dataclass(slots=True)
class RowBuffer:
    """The rows of one type that are waiting to be written."""

    tables: list[pa.Table] = field(default_factory=list)
    position_arrays: list[Positions] = field(default_factory=list)
    row_count: int = 0
    byte_count: int = 0
    ids_generated: bool = True

    def add(self, rows: pa.Table, positions: Positions, *, ids_generated: bool) -> None:
        """Append rows."""
        self.tables.append(rows)
        self.position_arrays.append(positions)
        self.row_count += rows.num_rows
        self.byte_count += rows.nbytes
        self.ids_generated = self.ids_generated and ids_generated


class PieceLoader:
    """Loads one input piece."""

    def __init__(self, load_job: LoadJob) -> None:
        self.load_job = load_job
        self.problems = ProblemCollector()
        buffer_class = BUFFER_CLASSES.get(load_job.mode, TypeBuffer)
        self.intake = Intake(load_job.schema_ir, self.problems, load_job.limits, buffer_class)
        self.lookup = PinnedRowLookup(load_job.pinned_graph)
        self.buffers: dict[TableKey, RowBuffer] = {}
        self.problem_count = 0
        self.is_valid = True  # once a rule is broken, nothing will be published, so stop writing

    def drain(self) -> ReportBatches:
        """Check the records parsed so far, and write the fragments that are full."""
        self.intake.flush()
        for table_key, type_buffer in self.intake.buffers.items():
            rows, positions = type_buffer.drain()
            if rows.num_rows:
                yield from self._check_rows(table_key, type_buffer, rows, positions)
        yield from self._report_unreadable()
        for table_key, buffer in list(self.buffers.items()):
            if buffer.row_count >= self.load_job.fragment_rows or buffer.byte_count >= self.load_job.fragment_bytes:
                yield from self._write_buffer(table_key)

    def finish(self) -> ReportBatches:
        """Write the remaining rows, and report the number of records by type."""
        for table_key in list(self.buffers):
            yield from self._write_buffer(table_key)
        if self.problem_count:
            yield ProblemCountReport(self.problem_count).to_batch()
        for table_key, type_buffer in self.intake.buffers.items():
            yield RecordCountReport(
                table_key,
                type_buffer.record_count,
                bool(type_buffer.truncated),
                tuple(sorted(type_buffer.given_names)),
            ).to_batch()

    def _type_number(self, table_key: TableKey) -> int:
        return self.load_job.table_keys.index(table_key)

    def _report_unreadable(self) -> ReportBatches:
        new_problems, self.problems.collected = self.problems.collected, []
        for problem in new_problems:
            self.is_valid, self.problem_count = False, self.problem_count + 1
            yield RejectReport(problem).to_batch()

    def _check_rows(
        self, table_key: TableKey, type_buffer: TypeBuffer, rows: pa.Table, positions: Positions
    ) -> ReportBatches:
        if self.load_job.skipped_positions:
            kept_mask = ~np.isin(positions, np.fromiter(self.load_job.skipped_positions, np.int64))
            rows, positions = rows.filter(pa.array(kept_mask)), positions[kept_mask]
        if self.load_job.mode not in BUFFER_CLASSES:
            yield from self._report_invalid(row_violations(type_buffer.entity_type, rows, positions))
        self.buffers.setdefault(table_key, RowBuffer()).add(
            rows, positions, ids_generated=type_buffer.all_ids_generated
        )

    def _report_invalid(self, violations: Iterable[Violation]) -> ReportBatches:
        for violation in violations:
            self.is_valid, self.problem_count = False, self.problem_count + 1
            yield RowViolationReport(violation).to_batch()

    def _report_patch(self, table_key: TableKey, partial_rows: PartialRows) -> ReportBatches:
        """Report the rows that patches change. These rows are written only after all records have been checked."""
        entity_type = partial_rows.entity_type
        patched, is_changed, violations = resolve_patch(partial_rows, self.lookup, rule_columns(entity_type))
        yield from self._report_invalid([*violations, *broken_row_rules(patched)])
        for violation in held_values(patched, self.lookup):
            yield HeldValueReport(violation).to_batch()
        yield from self._report_unwritten(table_key, patched.rows, patched.input_lines, ids_generated=False)
        if self.load_job.writes_fragments and self.is_valid:
            yield from report_patched_rows(self._type_number(table_key), patched.filter(is_changed))

    def _write_buffer(self, table_key: TableKey) -> ReportBatches:
        buffer, type_number, entity_type = (
            self.buffers.pop(table_key),
            self._type_number(table_key),
            type_for_key(self.load_job.schema_ir.catalog, table_key),
        )
        buffered_rows = pa.concat_tables(buffer.tables, promote_options="default")
        positions = np.concatenate(buffer.position_arrays)
        if self.load_job.mode == "delete":
            yield KEY_ROWS.to_report(named_rows(type_number, buffered_rows, positions))
            return
        if self.load_job.mode == "patch":
            yield from self._report_patch(table_key, PartialRows(entity_type, buffered_rows, positions))
            return
        delta = replace(
            build_table_delta(
                table_key,
                buffered_rows,
                "fresh" if buffer.ids_generated else "upsert",
                input_lines=positions,
                from_records=True,
            ),
            rejects_existing=self.load_job.mode == "append",
        )
        if self.load_job.mode != "overwrite" and table_key in self.load_job.filled_keys:
            resolved_delta, key_violations = resolve_existing(Delta({table_key: delta}), self.lookup)
            delta = resolved_delta.tables[table_key]
            for violation in key_violations:
                self.problem_count += 1
                yield ExistingIdReport(violation).to_batch()
            for unique_violation in unique_violations(entity_type, delta, self.lookup):
                yield HeldValueReport(unique_violation).to_batch()
            yield from _replaced_edge_reports(entity_type, type_number, delta)
            if self.load_job.mode == "merge":
                nulled: dict[str, int] = {}
                delta = without_unchanged(
                    Delta({table_key: delta}),
                    self.lookup,
                    lambda _key, stored_rows, new_rows: nulled.update(count_nulled_values(stored_rows, new_rows)),
                ).tables[table_key]
                if nulled:
                    yield NulledValuesReport(table_key, nulled).to_batch()
            self.is_valid = self.is_valid and not key_violations
        unwritten_mask = np.ones(len(positions), bool)
        if self.load_job.writes_fragments and self.is_valid:
            yield from self._write_fragments(table_key, delta, ids_generated=buffer.ids_generated)
            written_positions = delta_positions(delta)
            unwritten_mask = (
                ~np.isin(positions, written_positions)
                if len(written_positions) < len(positions)
                else unwritten_mask[:0]
            )
        if unwritten_mask.any():
            yield from self._report_unwritten(
                table_key,
                buffered_rows.filter(pa.array(unwritten_mask)),
                positions[unwritten_mask],
                ids_generated=buffer.ids_generated,
            )

    def _report_unwritten(
        self, table_key: TableKey, rows: pa.Table, positions: Positions, *, ids_generated: bool
    ) -> ReportBatches:
        """Report records that were not written to a fragment."""
        entity_type, type_number = (
            type_for_key(self.load_job.schema_ir.catalog, table_key),
            self._type_number(table_key),
        )
        for key_batch in key_batches(entity_type, type_number, rows, positions, ids_generated=ids_generated):
            yield KEY_ROWS.to_report(key_batch)
        for tuple_batch in tuple_batches(entity_type, type_number, rows, positions):
            yield TUPLE_ROWS.to_report(tuple_batch)
        is_written = self.load_job.writes_fragments and self.is_valid
        yield ReportedTypeReport(table_key, not is_written).to_batch()

    def _write_fragments(self, table_key: TableKey, delta: TableDelta, *, ids_generated: bool) -> ReportBatches:
        pinned_table, store = (self.load_job.pinned_graph.table(table_key), self.load_job.pinned_graph.store())
        replaces_stored, positions = delta.row_ids >= 0, delta_positions(delta)
        is_new = ~replaces_stored
        if is_new.any():
            fragment_rows = delta.rows if is_new.all() else delta.rows.filter(pa.array(is_new))
            fragment_metadata = write_fragment(store, pinned_table, fragment_rows)
            fragment = StagedFragment(
                table_key, fragment_metadata, pack_positions(positions[is_new]), fragment_rows.num_rows, ids_generated
            )
            yield StagedFragmentReport(fragment).to_batch()
        if replaces_stored.any():
            fragment_rows = delta.rows.filter(pa.array(replaces_stored))
            fragment_metadata = write_fragment(
                store, pinned_table, fragment_rows, delta.row_ids[replaces_stored].tolist()
            )
            fragment = StagedFragment(
                table_key,
                fragment_metadata,
                pack_positions(positions[replaces_stored]),
                fragment_rows.num_rows,
                ids_generated,
            )
            yield StagedFragmentReport(fragment).to_batch()
            yield RemovedRowsReport(table_key, delta.addresses[replaces_stored]).to_batch()


def named_rows(type_number: int, rows: pa.Table, positions: Positions) -> pa.RecordBatch:
    """Return the ids and endpoints in a deletion's records, as `KEY_ROWS`."""
    endpoints = {name: rows[name] for name in ("src", "dst") if name in rows.column_names}
    return KEY_ROWS.batch(rows.num_rows, type=type_number, id=rows["id"], spot=positions, **endpoints)


def delta_positions(delta: TableDelta) -> Positions:
    """Return the input positions of the rows that a delta stores."""
    assert delta.input_lines is not None  # noqa: S101 - records of a load have positions
    return delta.input_lines[delta.latest_positions]


def _replaced_edge_reports(entity_type: NodeType | EdgeType, type_number: int, delta: TableDelta) -> ReportBatches:
    has_bounds = isinstance(entity_type, EdgeType) and (
        entity_type.min_cardinality or entity_type.max_cardinality is not None
    )
    if has_bounds and delta.replaced_edges is not None and delta.replaced_edges.num_rows:
        previous_edges = delta.replaced_edges
        replaced_rows = REPLACED_EDGE_ROWS.batch(
            previous_edges.num_rows, type=type_number, id=previous_edges["id"], src=previous_edges["src"]
        )
        yield REPLACED_EDGE_ROWS.to_report(replaced_rows)
