"""The records that a load rejected: the first of them for the caller, and all of them in reject files.

Tasks report rejected records next to their other reports, and Spark keeps these reports on disk. The driver collects
them all only if there are few. If there are many, it collects the first ones, and tasks write the reject files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.ingest.input_pieces import InputPiece, RecordPositions, map_record_positions
from omnigraph.ingest.problem import LoadProblem, ProblemCollector
from omnigraph.ingest.rejects import RejectFolder
from omnigraph.rules.violation import Violation

from .task_reports import (
    LineCountReport,
    ProblemCountReport,
    RejectReport,
    RowViolationReport,
    TaskReport,
    read_reports,
    select_reports,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_COLLECTED = 10_000  # rejected records on the driver
_BATCH_RECORDS = 4_096
_FILE_DDL, _ID_DDL = "name string, records bigint", "id string"
_FILE_SCHEMA = pa.schema([("name", pa.string()), ("records", pa.int64())])
_ID_SCHEMA = pa.schema([("id", pa.string())])
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RejectedRecords:
    """The rejected records in input order. `left_out` counts those that exist only in `files`, the reject files."""

    problems: tuple[LoadProblem, ...] = ()
    left_out: int = 0
    files: tuple[str, ...] = ()


def collect_rejected(
    task_reports: "DataFrame",
    pieces: Sequence[InputPiece],
    collected: Sequence[TaskReport],
    violations: Sequence[Violation],
    rejects_folder: str | None,
) -> RejectedRecords:
    """Return the records that tasks rejected, and those that break one of the given rules.

    If there are many, write them to files in the rejects folder, if there is one. Otherwise, the caller writes them.
    """
    line_counts = {report.piece_number: report.line_count for report in select_reports(collected, LineCountReport)}
    positions = map_record_positions(pieces, line_counts)
    record_count = sum(report.problem_count for report in select_reports(collected, ProblemCountReport))
    if record_count <= MAX_COLLECTED:
        first_reports = read_reports(_select_problems(task_reports).toArrow()) if record_count else []
        return RejectedRecords(tuple(positions.locate_problems(_to_problems(first_reports, violations))))
    reports = _select_problems(task_reports)
    first_reports = read_reports(reports.orderBy("spot").limit(MAX_COLLECTED).toArrow())
    violations = _without_explained(reports, violations)
    problems = positions.locate_problems(_to_problems(first_reports, violations))[:MAX_COLLECTED]
    files: list[str] = []
    if rejects_folder is not None:
        rule_problems = positions.locate_problems(_to_problems([], violations))
        files = _write_files(reports, positions, rule_problems, RejectFolder.open(rejects_folder))
    return RejectedRecords(tuple(problems), record_count + len(violations) - len(problems), tuple(files))


def _select_problems(task_reports: "DataFrame") -> "DataFrame":
    is_problem = task_reports.kind.isin(RejectReport.kind, RowViolationReport.kind)
    return task_reports.where(is_problem).select("kind", "members", "payload", "spot")


def _to_problems(reports: Iterable[TaskReport], violations: Iterable[Violation]) -> list[LoadProblem]:
    """Return a problem for each report, and for each violation that no unreadable record explains."""
    problems = ProblemCollector()
    row_violations: list[Violation] = []
    for report in reports:
        if isinstance(report, RejectReport):
            problems.add_problem(report.problem)
        elif isinstance(report, RowViolationReport):
            row_violations.append(report.violation)
    for violation in (*row_violations, *violations):
        problems.add_violation(violation)
    return problems.collected


def _without_explained(reports: "DataFrame", violations: Sequence[Violation]) -> list[Violation]:
    """Return the violations that no rejected record explains, as found by tasks, which read all rejected records."""
    required = [violation for violation in violations if violation.required_id is not None]
    if not required:
        return list(violations)
    find_explained = partial(_find_explained, required)
    explained = set(reports.mapInArrow(find_explained, _ID_DDL).toArrow()["id"].to_pylist())
    return [violation for violation in violations if violation.required_id not in explained]


def _find_explained(violations: Sequence[Violation], batches: Batches) -> Batches:
    for batch in batches:
        problems = ProblemCollector()
        for report in select_reports(read_reports(pa.Table.from_batches([batch])), RejectReport):
            problems.add_problem(report.problem)
        ids = {violation.required_id for violation in violations if problems.explains_violation(violation)}
        yield pa.RecordBatch.from_arrays([pa.array(sorted(filter(None, ids)), pa.string())], schema=_ID_SCHEMA)


def _write_files(
    reports: "DataFrame", positions: RecordPositions, rule_problems: Sequence[LoadProblem], folder: RejectFolder
) -> list[str]:
    """Write one pair of files per task, and one on the driver; return the names, without their suffixes."""
    folder.remove_files()
    names = [_part_name(0)] if folder.write(_part_name(0), [rule_problems]) else []
    ordered_reports = reports.sortWithinPartitions("spot")
    written = ordered_reports.mapInArrow(_make_write_task(positions, folder), _FILE_DDL).toArrow()
    return names + sorted(written["name"].to_pylist())


def _make_write_task(positions: RecordPositions, folder: RejectFolder) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        name = _part_name(1 + (context.partitionId() if context is not None else 0))
        problem_batches = (
            positions.locate_problems(_to_problems(read_reports(pa.Table.from_batches([rows])), ()))
            for batch in batches
            for rows in _slices(batch)
        )
        if record_count := folder.write(name, problem_batches):
            yield pa.RecordBatch.from_pylist([{"name": name, "records": record_count}], schema=_FILE_SCHEMA)

    return run


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(start, _BATCH_RECORDS) for start in range(0, batch.num_rows, _BATCH_RECORDS))


def _part_name(number: int) -> str:
    return f"rejects-{number:05}"
