"""Loads: records of many types become one commit, or no commit at all.

This module implements the load modes. The input is read once, before any decision that depends on
the branch head; such decisions are repeated on every newer head, from the same rows.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import InputError, ReadSetConflict, UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.publish.publish import publish
from omnigraph.publish.read_set import ReadSet
from omnigraph.publish.requirements import Requirement, SameSchema
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, DeltaMode, TableDelta, build_table_delta
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.values.table_key import TableKey

from .files import iter_blocks
from .frames import is_text_source, take_records
from .load_limits import LoadLimits
from .ndjson import read_blocks
from .problem import LoadProblem, ProblemCollector
from .record_intake import Intake, TypeBuffer
from .stage import stage
from .unchanged_rows import without_unchanged

LoadMode = Literal["append", "merge", "overwrite"]
OnError = Literal["raise", "report"]
LOAD_MODES = ("append", "merge", "overwrite")


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """The cost of a load: the duration of each step in seconds, and the number of bytes written, if known."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """The result of a load: its commit and record counts by type, or the problems that prevented it.

    `ids` are the ids of each type's records in input order, if known.
    """

    mode: LoadMode
    commit: Commit | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[LoadProblem, ...] = ()
    ids: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    summary: LoadSummary = field(default_factory=LoadSummary)

    @property
    def total(self) -> int:
        """The total number of records."""
        return sum(self.nodes.values()) + sum(self.edges.values())


@dataclass(frozen=True, slots=True)
class ParsedLoad:
    """The records of an input as table changes, and the schema with which they were read."""

    mode: LoadMode
    schema_hash: str
    ir: SchemaIR
    delta: Delta
    record_counts: Mapping[TableKey, int]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Settings for a load: error handling, size limits, and whether the input is only validated."""

    on_error: OnError = "raise"
    limits: LoadLimits = field(default_factory=LoadLimits)
    dry_run: bool = False


def load(
    branch_state: BranchState,
    data: Any,
    mode: LoadMode,
    *,
    metadata: CommitMetadata | None = None,
    conditions: Sequence[Requirement] | None = None,
    options: LoadOptions | None = None,
) -> LoadOutcome:
    """Load NDJSON (a path, a file, bytes), records, or tables and frames by type, as one commit.

    An input without records makes no commit. `conditions` are the caller's requirements; without
    them, an overwrite requires its tables to be unchanged since the load started. With `on_error` "report", all
    problems are collected and returned; if there are any, nothing is written.
    """
    if mode not in LOAD_MODES:
        raise UsageError(reason=f"mode must be one of {', '.join(LOAD_MODES)}, not '{mode}'")
    options = options or LoadOptions()
    report_all = options.on_error == "report"
    problems = ProblemCollector()
    parsed_load = parse_input(branch_state, data, mode, problems, options)
    input_problems = tuple(problems.collected)
    if conditions is None:
        conditions = overwrite_conditions(branch_state, parsed_load) if mode == "overwrite" else ()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        problems.collected = list(input_problems)
        return _prepare_plan(txn, parsed_load, problems, report_all=report_all, stage_files=not options.dry_run)

    commit = publish(branch_state, prepare, metadata, conditions)
    if problems.collected:
        return LoadOutcome(mode, problems=_with_file_name(data, problems.in_input_order()))
    node_counts = _counts_by_type(parsed_load.record_counts, "node")
    edge_counts = _counts_by_type(parsed_load.record_counts, "edge")
    ids = {
        table_key.type_name: table_delta.row_versions["id"]
        for table_key, table_delta in parsed_load.delta.tables.items()
    }
    return LoadOutcome(mode, commit, node_counts, edge_counts, ids=ids)


def _with_file_name(data: Any, problems: Iterable[LoadProblem]) -> tuple[LoadProblem, ...]:
    """Add the file name to the problems if the input is a file."""
    if not isinstance(data, str | os.PathLike):
        return tuple(problems)
    file_name = os.fspath(data)
    return tuple(replace(problem, file=problem.file or file_name) for problem in problems)


def parse_input(
    branch_state: BranchState, data: Any, mode: LoadMode, problems: ProblemCollector, options: LoadOptions
) -> ParsedLoad:
    """Read an input; raise the first problem unless all problems are to be reported."""
    schema_row = branch_state.last_known().state.schema
    ir = read_schema(branch_state.store, schema_row).ir
    limits, report_all = options.limits, options.on_error == "report"
    intake = Intake(ir, problems, limits)
    allow_truncate = mode == "overwrite"
    if hasattr(data, "take_into"):  # a source of several files
        data.take_into(intake, truncating=allow_truncate, report=report_all)
    elif is_text_source(data):
        blocks = iter_blocks(data, limits.line_bytes)
        for _ in read_blocks(intake, blocks, allow_truncate=allow_truncate, report_all=report_all):
            pass
    else:
        take_records(intake, data, allow_truncate=allow_truncate)
    intake.flush()
    if not report_all:
        problems.raise_first()
    table_deltas = {
        table_key: _table_delta(table_key, buffer, mode) for table_key, buffer in sorted(intake.buffers.items())
    }
    record_counts = {table_key: buffer.record_count for table_key, buffer in sorted(intake.buffers.items())}
    return ParsedLoad(mode, schema_row.hash, ir, Delta(table_deltas), record_counts)


def _table_delta(table_key: TableKey, buffer: TypeBuffer, load_mode: LoadMode) -> TableDelta:
    write_mode: DeltaMode = "replace" if load_mode == "overwrite" else "upsert" if load_mode == "merge" else "insert"
    if write_mode != "replace" and buffer.all_ids_generated:
        write_mode = "fresh"
    if buffer.truncated and buffer.record_count:
        raise InputError(reason=f"{table_key} is both truncated and loaded by the same input")
    table_delta = build_table_delta(
        table_key, buffer.all_rows(), write_mode, input_lines=buffer.line_positions(), from_records=True
    )
    return replace(table_delta, rejects_existing=load_mode == "append")


def overwrite_conditions(branch_state: BranchState, parsed_load: ParsedLoad) -> tuple[Requirement, ...]:
    """Require the tables that an overwrite replaces to stay unchanged from now on."""
    read_set = ReadSet(branch_state.last_known().state.tables)
    return (read_set.require_unchanged(parsed_load.delta.tables),)


def _prepare_plan(
    txn: WriteTxn, parsed_load: ParsedLoad, problems: ProblemCollector, *, report_all: bool, stage_files: bool = True
) -> PublishPlan | None:
    schema_hash = txn.base.state.schema.hash
    if schema_hash != parsed_load.schema_hash:
        raise ReadSetConflict(member="schema", expected=parsed_load.schema_hash, actual=schema_hash)
    lookup = RecordingLookup(txn)
    violation_limit = None if report_all else 1
    delta, violations = check_delta(parsed_load.ir.catalog, parsed_load.delta, lookup, limit=violation_limit)
    for violation in violations:
        problems.add_violation(violation)
    if problems.collected and not report_all:
        problems.raise_first()
    if problems.collected or not stage_files:
        return None
    if parsed_load.mode == "merge":
        delta = without_unchanged(delta, lookup)
    requirements = (SameSchema(schema_hash), *lookup.requirements)
    return stage(txn, delta, "load", requirements)


def _counts_by_type(record_counts: Mapping[TableKey, int], entity_kind: str) -> dict[str, int]:
    return {table_key.type_name: count for table_key, count in record_counts.items() if table_key.kind == entity_kind}
