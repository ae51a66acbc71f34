"""Loads: turn records of many types into one commit, or into no commit at all.

This module implements the load modes. The input is read once, before any decision that depends on the branch head. If
the head advances, such decisions are made again for the same rows.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from omnigraph.publish.unread_changes import RowFilter
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, DeltaMode, TableDelta, build_table_delta
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.rules.violation import Violation
from omnigraph.values.table_key import TableKey

from .delete_rows import find_deleted_rows
from .files import iter_blocks
from .frames import take_records
from .input_parts import is_text_source
from .load_limits import LoadLimits, load_limits
from .ndjson import read_blocks
from .partial_records import IdentityBuffer, PartialRows, PatchBuffer
from .patch_rows import apply_patches
from .problem import LoadProblem, ProblemCollector
from .record_intake import Intake, TypeBuffer
from .stage import stage, stage_patches
from .strict_rows import deleted_row_filters, patched_row_filters
from .unchanged_rows import count_nulled_values, without_unchanged

LoadMode = Literal["append", "merge", "overwrite", "patch", "delete"]
OnError = Literal["raise", "report"]
LOAD_MODES = ("append", "merge", "overwrite", "patch", "delete")
BUFFER_CLASSES: Mapping[str, type[TypeBuffer]] = {"patch": PatchBuffer, "delete": IdentityBuffer}
"""The buffer classes for the modes whose records are not whole rows."""

RequireRows = Callable[[Mapping[TableKey, RowFilter | None]], Requirement]
Stage = Callable[[Sequence[Requirement]], PublishPlan | None]


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """The cost of a load: the duration of each step in seconds, and the number of bytes written, if known."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """The result of a load: its commit and the record counts by type, or the problems that prevented it.

    `ids` are the ids of each type's records in input order, if known. For a deletion, the counts refer to deleted
    entities, and `missing` is the number of entities that did not exist. `nulled` is the number of values, by type and
    property, that a merge removed because the input does not contain the property. `left_out` is the number of problems
    that are not listed, because a load on Spark rejected too many records, and `reject_files` are the files that it
    wrote.
    """

    mode: LoadMode
    commit: Commit | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[LoadProblem, ...] = ()
    ids: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    summary: LoadSummary = field(default_factory=LoadSummary)
    missing: Mapping[str, int] = field(default_factory=dict)
    nulled: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    left_out: int = 0
    reject_files: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The total number of records."""
        return sum(self.nodes.values()) + sum(self.edges.values())


@dataclass(frozen=True, slots=True)
class ParsedLoad:
    """An input's records as table changes, and the schema that was used to read the records.

    `partial_rows` are the records in a patch or a deletion, and `absent_properties` lists, by type, the properties that
    do not occur in any record.
    """

    mode: LoadMode
    schema_hash: str
    ir: SchemaIR
    delta: Delta
    record_counts: Mapping[TableKey, int]
    partial_rows: Mapping[TableKey, PartialRows] = field(default_factory=dict)
    absent_properties: Mapping[TableKey, frozenset[str]] = field(default_factory=dict)

    def row_filters(self) -> dict[TableKey, RowFilter | None]:
        """Return filters for the stored rows that a patch or a deletion depends on."""
        if self.mode == "delete":
            return deleted_row_filters(self.ir.catalog, self.partial_rows)
        return patched_row_filters(self.partial_rows)


@dataclass(slots=True)
class LoadEffects:
    """How a load's last attempt affects stored rows, apart from the records that it writes."""

    deleted: dict[TableKey, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    nulled: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Settings for a load: error handling, size limits, and whether the input is only validated.

    `require_rows` returns the requirement that the rows affected by a patch or a deletion have not changed since the
    caller read them; by default, they must not have changed since this process last read them.
    """

    on_error: OnError = "raise"
    limits: LoadLimits = field(default_factory=load_limits)
    dry_run: bool = False
    require_rows: RequireRows | None = None


def check_load_mode(mode: str) -> None:
    """Raise `UsageError` for an unknown load mode."""
    if mode not in LOAD_MODES:
        raise UsageError(reason=f"mode must be one of {', '.join(LOAD_MODES)}, not '{mode}'")


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

    An input without records creates no commit. `conditions` are the caller's requirements; without them, an overwrite
    requires that its tables have not changed since the load started. A patch or a deletion always requires that its
    rows have not changed. If `on_error` is "report", all problems are collected and returned. If there are any
    problems, nothing is written.
    """
    check_load_mode(mode)
    options = options or LoadOptions()
    report_all = options.on_error == "report"
    problems = ProblemCollector()
    parsed_load = parse_input(branch_state, data, mode, problems, options)
    input_problems = tuple(problems.collected)
    if conditions is None:
        conditions = overwrite_conditions(branch_state, parsed_load) if mode == "overwrite" else ()
    if parsed_load.partial_rows:
        require_rows = options.require_rows or ReadSet(branch_state.last_known().state.tables).require_unchanged
        conditions = (*conditions, require_rows(parsed_load.row_filters()))
    effects = LoadEffects()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        nonlocal effects
        problems.collected, effects = list(input_problems), LoadEffects()
        return _prepare_plan(
            txn, parsed_load, problems, effects, report_all=report_all, stage_files=not options.dry_run
        )

    commit = publish(branch_state, prepare, metadata, conditions)
    if problems.collected:
        return LoadOutcome(mode, problems=_with_file_name(data, problems.in_input_order()))
    return _outcome(parsed_load, commit, effects)


def _outcome(parsed_load: ParsedLoad, commit: Commit | None, effects: LoadEffects) -> LoadOutcome:
    counts = effects.deleted if parsed_load.mode == "delete" else parsed_load.record_counts
    ids = {
        table_key.type_name: table_delta.row_versions["id"]
        for table_key, table_delta in parsed_load.delta.tables.items()
    }
    return LoadOutcome(
        parsed_load.mode,
        commit,
        counts_by_type(counts, "node"),
        counts_by_type(counts, "edge"),
        ids=ids,
        missing=effects.missing,
        nulled=effects.nulled,
    )


def _with_file_name(data: Any, problems: Iterable[LoadProblem]) -> tuple[LoadProblem, ...]:
    """If the input is a file, add its name to the problems."""
    if not isinstance(data, str | os.PathLike):
        return tuple(problems)
    file_name = os.fspath(data)
    return tuple(replace(problem, file=problem.file or file_name) for problem in problems)


def parse_input(
    branch_state: BranchState, data: Any, mode: LoadMode, problems: ProblemCollector, options: LoadOptions
) -> ParsedLoad:
    """Read an input; unless all problems are to be reported, raise the first one."""
    schema_row = branch_state.last_known().state.schema
    ir = read_schema(branch_state.store, schema_row).ir
    limits, report_all = options.limits, options.on_error == "report"
    intake = Intake(ir, problems, limits, BUFFER_CLASSES.get(mode, TypeBuffer))
    allow_truncate = mode == "overwrite"
    if hasattr(data, "take_into"):  # the source consists of several files
        data.take_into(intake, truncating=allow_truncate, report=report_all)
    elif is_text_source(data):
        blocks = iter_blocks(data, limits.line_bytes, filter_pieces=intake.stream_blobs)
        for _ in read_blocks(intake, blocks, allow_truncate=allow_truncate, report_all=report_all):
            pass
    else:
        take_records(intake, data, allow_truncate=allow_truncate)
    intake.flush()
    if not report_all:
        problems.raise_first()
    buffers = dict(sorted(intake.buffers.items()))
    record_counts = {table_key: buffer.record_count for table_key, buffer in buffers.items()}
    if mode in BUFFER_CLASSES:
        partial_rows = {
            table_key: buffer.partial_rows() for table_key, buffer in buffers.items() if isinstance(buffer, PatchBuffer)
        }
        return ParsedLoad(mode, schema_row.hash, ir, Delta(), record_counts, partial_rows)
    table_deltas = {table_key: _table_delta(table_key, buffer, mode) for table_key, buffer in buffers.items()}
    absent_properties = {table_key: buffer.absent_properties for table_key, buffer in buffers.items()}
    return ParsedLoad(
        mode, schema_row.hash, ir, Delta(table_deltas), record_counts, absent_properties=absent_properties
    )


def _table_delta(table_key: TableKey, buffer: TypeBuffer, load_mode: LoadMode) -> TableDelta:
    write_mode = delta_mode(load_mode, ids_generated=buffer.all_ids_generated)
    if buffer.truncated and buffer.record_count:
        raise InputError(reason=f"the same input must not both truncate {table_key} and load records into it")
    table_delta = build_table_delta(
        table_key, buffer.all_rows(), write_mode, input_lines=buffer.line_positions(), from_records=True
    )
    return replace(table_delta, rejects_existing=load_mode == "append")


def delta_mode(load_mode: LoadMode, *, ids_generated: bool) -> DeltaMode:
    """Return the delta mode for a load; rows with generated ids are known to be new, except in an overwrite."""
    if load_mode == "overwrite":
        return "replace"
    if ids_generated:
        return "fresh"
    return "upsert" if load_mode == "merge" else "insert"


def overwrite_conditions(branch_state: BranchState, parsed_load: ParsedLoad) -> tuple[Requirement, ...]:
    """Return the requirement that the tables replaced by an overwrite do not change from now on."""
    read_set = ReadSet(branch_state.last_known().state.tables)
    return (read_set.require_unchanged(parsed_load.delta.tables),)


def _prepare_plan(
    txn: WriteTxn,
    parsed_load: ParsedLoad,
    problems: ProblemCollector,
    effects: LoadEffects,
    *,
    report_all: bool,
    stage_files: bool = True,
) -> PublishPlan | None:
    schema_hash = txn.base.state.schema.hash
    if schema_hash != parsed_load.schema_hash:
        raise ReadSetConflict(member="schema", expected=parsed_load.schema_hash, actual=schema_hash)
    lookup = RecordingLookup(txn)
    resolve = {"patch": _resolve_patch, "delete": _resolve_deletion}.get(parsed_load.mode, _resolve_rows)
    violations, stage_change = resolve(txn, parsed_load, lookup, effects, None if report_all else 1)
    for violation in violations:
        problems.add_violation(violation)
    if problems.collected and not report_all:
        problems.raise_first()
    if problems.collected or not stage_files:
        return None
    return stage_change((SameSchema(schema_hash), *lookup.requirements))


def _resolve_rows(
    txn: WriteTxn, parsed_load: ParsedLoad, lookup: RecordingLookup, effects: LoadEffects, limit: int | None
) -> tuple[list[Violation], Stage]:
    """Check whole rows, and find the rows that a merge does not change."""
    delta, violations = check_delta(parsed_load.ir.catalog, parsed_load.delta, lookup, limit=limit)

    def count_nulled(table_key: TableKey, stored_rows: pa.Table, new_rows: pa.Table) -> None:
        absent_names = sorted(parsed_load.absent_properties.get(table_key, ()))
        counts = count_nulled_values(stored_rows, new_rows.select(absent_names))
        if counts:
            effects.nulled[table_key.type_name] = counts

    if parsed_load.mode == "merge" and not violations:
        delta = without_unchanged(delta, lookup, count_nulled)
    return violations, lambda requirements: stage(txn, delta, "load", requirements)


def _resolve_patch(
    txn: WriteTxn, parsed_load: ParsedLoad, lookup: RecordingLookup, _effects: LoadEffects, limit: int | None
) -> tuple[list[Violation], Stage]:
    """Apply the patches to the stored rows."""
    patched_tables, violations = apply_patches(parsed_load.partial_rows, lookup, limit=limit)
    return violations, lambda requirements: stage_patches(txn, patched_tables, "load", requirements)


def _resolve_deletion(
    txn: WriteTxn, parsed_load: ParsedLoad, lookup: RecordingLookup, effects: LoadEffects, limit: int | None
) -> tuple[list[Violation], Stage]:
    """Find the rows to delete, and check the rules that deleting them may break."""
    catalog = parsed_load.ir.catalog
    deletion, violations = find_deleted_rows(catalog, parsed_load.partial_rows, lookup)
    delta, broken_rules = check_delta(catalog, deletion.to_delta(parsed_load.ir), lookup, limit=limit)
    effects.missing = deletion.missing
    effects.deleted = {table_key: len(table_delta.removed_ids) for table_key, table_delta in delta.tables.items()}
    return [*violations, *broken_rules], lambda requirements: stage(txn, delta, "load", requirements)


def counts_by_type(record_counts: Mapping[TableKey, int], entity_kind: str) -> dict[str, int]:
    """Return the record counts of either the node types or the edge types, keyed by type name."""
    return {table_key.type_name: count for table_key, count in record_counts.items() if table_key.kind == entity_kind}
