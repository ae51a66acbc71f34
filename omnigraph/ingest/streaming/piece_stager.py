"""Read one piece of the input in a thread: parse it, check the row rules, write fragments and keep the rule columns.

The rows of a piece are written as soon as a fragment is full, so the memory of a thread does not depend on the size of
its piece. Once any thread has found an invalid record, nothing can be published, so rows are no longer written.
"""

from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pyarrow as pa

from omnigraph.ingest.input_pieces import InputPiece, first_position, read_piece
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.position_runs import pack_positions
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.ingest.record_intake import Intake, TypeBuffer
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import Positions
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.unique import rule_columns
from omnigraph.storage.fragments import write_fragment
from omnigraph.storage.sizes import FRAGMENT_BYTES, FRAGMENT_ROWS
from omnigraph.values.table_key import TableKey

from .staged_input import StagedPiece, StagedType, WrittenFragment


class NotStreamableError(Exception):
    """Raised for an input whose rows cannot be written until the whole input has been read."""


@dataclass(frozen=True, slots=True)
class StreamingJob:
    """The state that the threads of a load share.

    `txn` pins the tables into which fragments are written. A merge must not stream into the tables in
    `filled_merge_keys`, because it may replace rows in these tables. `is_invalid` is set when a problem is found, and
    `stop` ends all threads.
    """

    ir: SchemaIR
    txn: WriteTxn
    limits: LoadLimits
    allow_truncate: bool
    writes_fragments: bool
    filled_merge_keys: frozenset[TableKey]
    is_invalid: Event = field(default_factory=Event)
    stop: Event = field(default_factory=Event)
    fragment_rows: int = FRAGMENT_ROWS
    fragment_bytes: int = FRAGMENT_BYTES


@dataclass(slots=True)
class PendingRows:
    """The rows of one type that have not been written yet."""

    tables: list[pa.Table] = field(default_factory=list)
    position_arrays: list[Positions] = field(default_factory=list)
    row_count: int = 0
    byte_count: int = 0

    def add(self, rows: pa.Table, positions: Positions) -> None:
        """Append rows."""
        self.tables.append(rows)
        self.position_arrays.append(positions)
        self.row_count += rows.num_rows
        self.byte_count += rows.nbytes


def stage_piece(job: StreamingJob, piece: InputPiece) -> StagedPiece:
    """Read a piece and write its rows."""
    stager = PieceStager(job)
    start_position = end_position = first_position(piece.number)
    for block_end in read_piece(stager.intake, piece, allow_truncate=job.allow_truncate, report_all=True):
        end_position = block_end
        stager.drain()
        if job.stop.is_set():
            break
    stager.finish()
    stager.staged.line_count = end_position - start_position
    return stager.staged


class PieceStager:
    """The state of one piece while it is read."""

    def __init__(self, job: StreamingJob) -> None:
        self.job = job
        self.problems = ProblemCollector()
        self.intake = Intake(job.ir, self.problems, job.limits)
        self.pending: dict[TableKey, PendingRows] = {}
        self.staged = StagedPiece()

    def drain(self) -> None:
        """Check the records parsed so far, and write the fragments that are full."""
        self.intake.flush()
        for table_key, type_buffer in self.intake.buffers.items():
            rows, positions = type_buffer.drain()
            if rows.num_rows:
                self._take_rows(table_key, type_buffer, rows, positions)
        if self.problems.collected:
            self.job.is_invalid.set()
        for table_key, pending in list(self.pending.items()):
            if pending.row_count >= self.job.fragment_rows or pending.byte_count >= self.job.fragment_bytes:
                self._write_pending(table_key)

    def finish(self) -> None:
        """Write the remaining rows, and count the records."""
        self.drain()
        for table_key in list(self.pending):
            self._write_pending(table_key)
        for table_key, type_buffer in self.intake.buffers.items():
            staged_type = self._staged_type(table_key)
            staged_type.record_count, staged_type.truncated = type_buffer.record_count, type_buffer.truncated
            staged_type.ids_generated = type_buffer.all_ids_generated
        self.staged.problems = self.problems.collected

    def _staged_type(self, table_key: TableKey) -> StagedType:
        return self.staged.types.setdefault(table_key, StagedType())

    def _take_rows(self, table_key: TableKey, type_buffer: TypeBuffer, rows: pa.Table, positions: Positions) -> None:
        if table_key in self.job.filled_merge_keys:
            raise NotStreamableError
        for violation in row_violations(type_buffer.entity_type, rows, positions):
            self.problems.add_violation(violation)
        self.pending.setdefault(table_key, PendingRows()).add(rows, positions)

    def _write_pending(self, table_key: TableKey) -> None:
        pending = self.pending.pop(table_key)
        entity_type = type_for_key(self.job.ir.catalog, table_key)
        if self.job.stop.is_set():
            return
        rows, positions = pa.concat_tables(pending.tables), np.concatenate(pending.position_arrays)
        writes_rows = self.job.writes_fragments and not self.job.is_invalid.is_set()
        ids_generated = self.intake.buffers[table_key].all_ids_generated
        is_kept = not writes_rows or not only_endpoints_checked(entity_type, ids_generated=ids_generated)
        staged_type = self._staged_type(table_key)
        if writes_rows:
            description = write_fragment(self.job.txn.store, self.job.txn.table(table_key), rows)
            staged_type.fragments.append(WrittenFragment(description, pack_positions(positions), is_kept))
        if is_kept:
            staged_type.keep(rows.select(rule_columns(entity_type)), positions)


def only_endpoints_checked(entity_type: NodeType | EdgeType, *, ids_generated: bool) -> bool:
    """Return whether all rules of an edge type check one edge at a time; if so, its edges can be read back later."""
    return (
        isinstance(entity_type, EdgeType)
        and ids_generated
        and rule_columns(entity_type) == ["id", "src", "dst"]
        and not entity_type.min_cardinality
        and entity_type.max_cardinality is None
    )
