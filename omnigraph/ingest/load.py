"""Load: records of many types become one commit, or none.

Owns the load modes. The input is read once, before any decision that depends on the branch head;
such decisions are repeated on every newer head, from the same rows.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import InputError, ReadSetConflict, UsageError
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.memory import Shown
from omnigraph.history.plan import (
    PublishPlan,
    Requirement,
    SameSchema,
    Signature,
    WriteTxn,
)
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.rules.check import check
from omnigraph.rules.delta import Delta, Mode, TableDelta, written
from omnigraph.rules.lookup import Committed

from .files import blocks_of
from .frames import is_text, take_records
from .intake import Intake, Shelf
from .limits import LoadLimits
from .ndjson import read_blocks
from .problem import Problem, Problems
from .stage import stage
from .unchanged import without_unchanged

LoadMode = Literal["append", "merge", "overwrite"]
OnError = Literal["raise", "report"]
MODES = ("append", "merge", "overwrite")


@dataclass(frozen=True, slots=True)
class Summary:
    """Cost of a load: seconds per step, and bytes written, where known."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of a load: its commit and record counts by type, or the problems that prevented it.

    `ids` are the ids of each type's records in input order, where known.
    """

    mode: LoadMode
    commit: Commit | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    ids: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)

    @property
    def total(self) -> int:
        """Number of all records."""
        return sum(self.nodes.values()) + sum(self.edges.values())


@dataclass(frozen=True, slots=True)
class Parsed:
    """The records of an input as table changes, and the schema they were read with."""

    mode: LoadMode
    schema_hash: str
    ir: SchemaIR
    delta: Delta
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load treats its input: error handling, size limits, and whether it only validates."""

    on_error: OnError = "raise"
    limits: LoadLimits = field(default_factory=LoadLimits)
    dry_run: bool = False


def load(
    line: Line,
    data: Any,
    mode: LoadMode,
    *,
    signature: Signature | None = None,
    conditions: Sequence[Requirement] | None = None,
    options: LoadOptions | None = None,
) -> Loaded:
    """Load NDJSON (a path, a file, bytes), records, or tables and frames by type, as one commit.

    An input without records makes no commit. `conditions` are the caller's requirements; without
    them, an overwrite requires its tables to stay as they are at the start. With `on_error`
    "report", all problems are collected and returned; if there is any, nothing is written.
    """
    if mode not in MODES:
        raise UsageError(reason=f"mode must be one of {', '.join(MODES)}, not '{mode}'")
    options = options or LoadOptions()
    report = options.on_error == "report"
    problems = Problems()
    parsed = parse(line, data, mode, problems, options)
    unreadable = tuple(problems.found)
    if conditions is None:
        conditions = strict(line, parsed) if mode == "overwrite" else ()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        problems.found = list(unreadable)
        return _prepare(txn, parsed, problems, report=report, writes=not options.dry_run)

    commit = publish(line, prepare, signature, conditions)
    if problems.found:
        return Loaded(mode, problems=_in_file(data, problems.in_order()))
    nodes, edges = _named(parsed.counts, "node"), _named(parsed.counts, "edge")
    ids = {one.partition(":")[2]: t.versions["id"] for one, t in parsed.delta.tables.items()}
    return Loaded(mode, commit, nodes, edges, ids=ids)


def _in_file(data: Any, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Add the file name to the problems, if the input is a file."""
    if not isinstance(data, str | os.PathLike):
        return tuple(problems)
    name = os.fspath(data)
    return tuple(replace(one, file=one.file or name) for one in problems)


def parse(
    line: Line,
    data: Any,
    mode: LoadMode,
    problems: Problems,
    options: LoadOptions,
) -> Parsed:
    """Read an input; raise the first problem, unless all are to be reported."""
    row = line.base().state.schema
    ir = read_schema(line.store, row).ir
    limits, report = options.limits, options.on_error == "report"
    intake = Intake(ir, problems, limits)
    truncating = mode == "overwrite"
    if hasattr(data, "take_into"):  # a source of several files
        data.take_into(intake, truncating=truncating, report=report)
    elif is_text(data):
        blocks = blocks_of(data, limits.line_bytes)
        for _ in read_blocks(intake, blocks, truncating=truncating, report=report):
            pass
    else:
        take_records(intake, data, truncating=truncating)
    intake.flush()
    if not report:
        problems.raise_first()
    tables = {key: _table_delta(key, one, mode) for key, one in sorted(intake.shelves.items())}
    counts = {key: one.count for key, one in sorted(intake.shelves.items())}
    return Parsed(mode, row.hash, ir, Delta(tables), counts)


def _table_delta(key: str, shelf: Shelf, mode: LoadMode) -> TableDelta:
    how: Mode = "replace" if mode == "overwrite" else "upsert" if mode == "merge" else "insert"
    if how != "replace" and shelf.made:
        how = "fresh"
    if shelf.truncated and shelf.count:
        raise InputError(reason=f"{key} is both truncated and loaded by the same input")
    made = written(key, shelf.rows(), how, lines=shelf.positions(), records=True)
    return replace(made, strict=mode == "append")


def strict(line: Line, parsed: Parsed) -> tuple[Requirement, ...]:
    """Require that the tables an overwrite replaces stay as they are now."""
    return (Shown(line.base().state.tables).strict(parsed.delta.tables),)


def _prepare(
    txn: WriteTxn, parsed: Parsed, problems: Problems, *, report: bool, writes: bool = True
) -> PublishPlan | None:
    schema = txn.base.state.schema.hash
    if schema != parsed.schema_hash:
        raise ReadSetConflict(member="schema", expected=parsed.schema_hash, actual=schema)
    lookup = Committed(txn)
    limit = None if report else 1
    delta, found = check(parsed.ir.catalog, parsed.delta, lookup, limit=limit)
    for one in found:
        problems.add_violation(one)
    if problems.found and not report:
        problems.raise_first()
    if problems.found or not writes:
        return None
    if parsed.mode == "merge":
        delta = without_unchanged(delta, lookup)
    needs = (SameSchema(schema), *lookup.requirements)
    return stage(txn, delta, "load", needs)


def _named(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    return {
        key.partition(":")[2]: count for key, count in counts.items() if key.startswith(f"{kind}:")
    }
