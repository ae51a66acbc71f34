"""Load large files in this process: write rows while the input is read, then check all records and publish.

Several threads write the rows to fragments that no version references. If a record is invalid, or if the process stops,
the fragments remain unreferenced until a cleanup removes them. A merge that replaces stored rows or repeats an id
cannot be streamed, so `load` is used instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.errors import InputError, ReadSetConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.schemas import read_schema
from omnigraph.ingest.disk_space import estimate_input, require_disk_space
from omnigraph.ingest.input_files import InputFile
from omnigraph.ingest.input_pieces import InputFiles, cut_into_pieces, map_record_positions
from omnigraph.ingest.load import LoadMode, LoadOptions, LoadOutcome, LoadSummary, counts_by_type, delta_mode, load
from omnigraph.ingest.load_limits import check_limit
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.ingest.streamed_blobs import has_blobs
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.idempotency import find_replayed_commit
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import Requirement, SameSchema
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, TableDelta, build_table_delta
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.rules.unique import rule_columns
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_schema
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.fragments import stage_appended_fragments, stage_overwriting_fragments
from omnigraph.storage.sizes import FRAGMENT_ROWS
from omnigraph.storage.table import StagedChange
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from .piece_progress import ProgressCallback, piece_progress
from .piece_stager import NotStreamableError, StreamingJob, stage_piece
from .run_threads import run_in_threads, thread_count
from .staged_input import StagedInput, StagedPiece, StagedType, combine_pieces
from .written_edges import missing_endpoint_violations, written_edges

STREAMED_MODES = ("append", "merge", "overwrite")
PIECE_BYTES = 32 << 20  # number of bytes per piece, which is about one fragment of small records


@dataclass(frozen=True, slots=True)
class StreamedInput:
    """The input files of a streamed load, and the sizes of the pieces and fragments.

    `is_single_path` is set if the caller passed the path of one NDJSON file instead of a mapping or a list.
    `piece_bytes` is the size of the pieces that threads read, and `fragment_rows` limits the rows of a fragment.
    """

    input_files: Sequence[InputFile]
    is_single_path: bool = False
    piece_bytes: int = PIECE_BYTES
    fragment_rows: int = FRAGMENT_ROWS

    @property
    def type_names(self) -> frozenset[str] | None:
        """The names of the types in the input, or None if some records name their type themselves."""
        return InputFiles(self.input_files).type_names


@dataclass(slots=True)
class StepClock:
    """The duration of each step in a load, in seconds."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the duration of the block to a step."""
        start = clock_and_ids.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + clock_and_ids.monotonic() - start


class StreamedLoad:
    """One load: its input, its options and the data that it has staged so far."""

    def __init__(
        self,
        branch_state: BranchState,
        source: StreamedInput,
        mode: LoadMode,
        options: LoadOptions,
        progress: ProgressCallback | None,
    ) -> None:
        self.branch_state, self.source, self.mode, self.options = branch_state, source, mode, options
        self.progress, self.clock = progress, StepClock()
        self.problems = ProblemCollector()
        self.staged: StagedInput | None = None

    def run(self, metadata: CommitMetadata, conditions: Sequence[Requirement]) -> LoadOutcome:
        """Stage, check and publish the load."""
        self.staged = self.stage_input()
        start, seconds_before = clock_and_ids.monotonic(), sum(self.clock.seconds.values())
        commit = (
            None
            if self._stops_at_problems(self.staged)
            else publish(self.branch_state, self.prepare_plan, metadata, conditions)
        )
        other_seconds = clock_and_ids.monotonic() - start - (sum(self.clock.seconds.values()) - seconds_before)
        self.clock.seconds["publish"] = other_seconds
        return self._outcome(self.staged, commit)

    def stage_input(self) -> StagedInput:
        """Read the whole input and write its rows."""
        base = self.branch_state.refresh()
        schema = read_schema(self.branch_state.store, base.state.schema)
        txn = WriteTxn(
            self.branch_state.store, self.branch_state.name, base, clock_and_ids.new_ulid(), clock_and_ids.now_micros()
        )
        if not self.options.dry_run:
            require_disk_space(txn.store, estimate_input(self.source.input_files).bytes)
        filled_keys = frozenset(key for key, entry in base.state.tables.items() if entry.row_count)
        job = StreamingJob(
            schema.ir,
            txn,
            self.options.limits,
            allow_truncate=self.mode == "overwrite",
            writes_fragments=not self.options.dry_run,
            filled_merge_keys=filled_keys if self.mode == "merge" else frozenset(),
            fragment_rows=self.source.fragment_rows,
        )
        pieces = cut_into_pieces(self.source.input_files, self.source.piece_bytes)
        with self.clock.step("stage"):
            staged_pieces = run_in_threads(
                partial(stage_piece, job),
                pieces,
                _safe_thread_count(schema.ir),
                job.stop,
                self._stops_at_problems,
                piece_progress(pieces, self.progress),
            )
        staged = combine_pieces(pieces, staged_pieces, base)
        self._check_counts(staged)
        return staged

    def _stops_at_problems(self, staged: StagedInput | StagedPiece) -> bool:
        return self.options.on_error == "raise" and bool(staged.problems)

    def _check_counts(self, staged: StagedInput) -> None:
        for table_key, staged_type in staged.types.items():
            check_limit(f"entities for {table_key}", staged_type.record_count, self.options.limits.rows)
            if staged_type.truncated and staged_type.record_count:
                raise InputError(reason=f"the same input must not both truncate {table_key} and load records into it")

    def prepare_plan(self, txn: WriteTxn) -> PublishPlan | None:
        """Check all records against a transaction's base; return None if there is a problem or nothing to write."""
        if self.staged is None or not self.staged.is_usable_on(txn.base):
            self.staged = self.stage_input()
        staged, schema_hash = self.staged, txn.base.state.schema.hash
        if schema_hash != staged.base.state.schema.hash:
            raise ReadSetConflict(member="schema", expected=staged.base.state.schema.hash, actual=schema_hash)
        self.problems = ProblemCollector()
        for problem in staged.problems:
            self.problems.add_problem(problem)
        lookup = RecordingLookup(txn)
        with self.clock.step("check"):
            for violation in self._find_violations(txn, staged, lookup):
                self.problems.add_violation(violation)
        if self.problems.collected or self.options.dry_run:
            return None
        writes = _stage_tables(txn, staged, self.mode)
        requirements = (SameSchema(schema_hash), *lookup.requirements)
        epoch = staged.base.state.head.gc_epoch
        return PublishPlan("load", writes, requirements, gc_epoch=epoch) if writes else None

    def _find_violations(self, txn: WriteTxn, staged: StagedInput, lookup: RecordingLookup) -> list[Violation]:
        ir = read_schema(txn.store, txn.base.state.schema).ir
        tables = {key: _kept_delta(ir, key, staged_type, self.mode) for key, staged_type in staged.types.items()}
        delta, violations = check_delta(ir.catalog, Delta(tables), lookup, limit=None)
        if self.mode == "merge" and not violations:
            _require_only_new_rows(delta)
        edges = written_edges(txn, ir.catalog, delta, staged.types)
        return [*violations, *missing_endpoint_violations(edges, ir.catalog, delta, lookup)]

    def _outcome(self, staged: StagedInput, commit: Commit | None) -> LoadOutcome:
        summary = LoadSummary(self.clock.seconds, 0 if commit is None else staged.written_bytes)
        problems = self.problems.collected or staged.problems
        if problems:
            located = map_record_positions(staged.pieces, staged.line_counts).locate_problems(problems)
            return LoadOutcome(self.mode, problems=tuple(located), summary=summary)
        counts = {table_key: staged_type.record_count for table_key, staged_type in staged.types.items()}
        nodes, edges = (counts_by_type(counts, kind) for kind in ("node", "edge"))
        return LoadOutcome(self.mode, commit, nodes, edges, summary=summary)


def load_streamed(  # noqa: PLR0913 - all but the first three are keywords
    branch_state: BranchState,
    source: StreamedInput,
    mode: LoadMode,
    *,
    metadata: CommitMetadata,
    conditions: Sequence[Requirement],
    options: LoadOptions | None = None,
    progress: ProgressCallback | None = None,
) -> LoadOutcome:
    """Load files as one commit. Only the columns needed for rules that involve all records are kept in memory.

    If the input cannot be streamed, all rows are kept in memory. With `on_error` "raise", reading stops at the first
    piece with a problem, and the outcome lists the problems found.
    """
    replayed_commit = find_replayed_commit(branch_state.store, branch_state.refresh().state, metadata)
    if replayed_commit is not None:
        return LoadOutcome(mode, replayed_commit)
    options = options or LoadOptions()
    try:
        return StreamedLoad(branch_state, source, mode, options, progress).run(metadata, conditions)
    except NotStreamableError:
        return load_in_memory(branch_state, source, mode, metadata, conditions, options)


def load_in_memory(
    branch_state: BranchState,
    source: StreamedInput,
    mode: LoadMode,
    metadata: CommitMetadata,
    conditions: Sequence[Requirement],
    options: LoadOptions,
) -> LoadOutcome:
    """Load the input files with all rows in memory."""
    input_files = InputFiles(source.input_files)
    loaded = load(
        branch_state,
        input_files,
        mode,
        metadata=metadata,
        conditions=conditions,
        options=replace(options, on_error="report"),
    )
    return replace(loaded, problems=tuple(input_files.positions.locate_problems(loaded.problems)))


def _kept_delta(ir: SchemaIR, table_key: TableKey, staged_type: StagedType, mode: LoadMode) -> TableDelta:
    entity_type = type_for_key(ir.catalog, table_key)
    columns = rule_columns(entity_type)
    empty_rows = pa.schema([row_schema(table_schema(ir, entity_type)).field(name) for name in columns]).empty_table()
    table_delta = build_table_delta(
        table_key,
        pa.concat_tables([empty_rows, *staged_type.kept_rows]),
        delta_mode(mode, ids_generated=staged_type.ids_generated),
        input_lines=staged_type.all_kept_positions(),
        from_records=True,
    )
    return replace(table_delta, rejects_existing=mode == "append", row_rules_checked=True)


def _require_only_new_rows(delta: Delta) -> None:
    for table_delta in delta.tables.values():
        has_replaced = len(table_delta.latest_positions) < table_delta.row_versions.num_rows
        if has_replaced or bool(np.any(table_delta.row_ids >= 0)):
            raise NotStreamableError


def _stage_tables(txn: WriteTxn, staged: StagedInput, mode: LoadMode) -> Mapping[TableKey, StagedChange]:
    writes: dict[TableKey, StagedChange] = {}
    for table_key, staged_type in staged.types.items():
        descriptions = [fragment.description for fragment in staged_type.fragments]
        if mode == "overwrite" and (descriptions or txn.base.state.tables[table_key].row_count):
            writes[table_key] = stage_overwriting_fragments(txn.table(table_key), descriptions)
        elif mode != "overwrite" and descriptions:
            writes[table_key] = stage_appended_fragments(txn.table(table_key), descriptions)
    return writes


def _safe_thread_count(ir: SchemaIR) -> int:
    """Return the number of threads: one if the schema has blobs, because a write must accept blobs one at a time."""
    return 1 if has_blobs(ir.catalog) else thread_count()
