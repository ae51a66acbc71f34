"""The records that a load rejected: the first of them for the caller, and all of them in reject files.

Tasks report rejected records along with their other reports, and Spark keeps these reports on disk. The driver collects
them all only if there are few. If there are many, it collects the first ones, and tasks write the reject files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.ingest.input_pieces import InputPiece, RecordPositions, map_record_positions
from omnigraph.ingest.problem import LoadProblem, ProblemCollector
from omnigraph.ingest.rejects import RejectFolder
from omnigraph.rules.violation import Violation

from .check_load import SetViolations
from .task_reports import (
    REJECT_KINDS,
    ExistingIdReport,
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
    found: SetViolations,
    rejects_folder: str | None,
) -> RejectedRecords:
    """Return the records that tasks rejected, and the records that break a rule involving all records.

    If there are many records and a rejects folder is given, write them to files in that folder. If there are only a
    few, the caller writes the files.
    """
    line_counts = {report.piece_number: report.line_count for report in select_reports(collected, LineCountReport)}
    positions = map_record_positions(pieces, line_counts)
    record_count = sum(report.problem_count for report in select_reports(collected, ProblemCountReport))
    if record_count <= MAX_COLLECTED:
        reports = read_reports(_select_rejects(task_reports, found).toArrow()) if record_count else []
        return RejectedRecords(tuple(positions.locate_problems(_to_problems(reports, found))))
    rejects = _select_rejects(task_reports, found)
    record_count = rejects.count() if found.replaced_positions else record_count
    first_reports = read_reports(rejects.orderBy("spot").limit(MAX_COLLECTED).toArrow())
    found = _without_explained(rejects, found)
    problems = positions.locate_problems(_to_problems(first_reports, found))[:MAX_COLLECTED]
    files: list[str] = []
    if rejects_folder is not None:
        rule_problems = positions.locate_problems(_to_problems([], found))
        files = _write_files(rejects, positions, rule_problems, RejectFolder.open(rejects_folder))
    left_out = record_count + len(found.repeated) + len(found.others) - len(problems)
    return RejectedRecords(tuple(problems), left_out, tuple(files))


def _select_rejects(task_reports: "DataFrame", found: SetViolations) -> "DataFrame":
    """Select the reports about rejected records. An existing id is not a problem if a later record has the same id."""
    rejects = task_reports.where(task_reports.kind.isin(list(REJECT_KINDS)))
    if found.replaced_positions:
        is_replaced = rejects.spot.isin(sorted(found.replaced_positions))
        rejects = rejects.where(~((rejects.kind == ExistingIdReport.kind) & is_replaced))
    return rejects.select("kind", "members", "payload", "spot")


def _to_problems(reports: Iterable[TaskReport], found: SetViolations) -> list[LoadProblem]:
    """Return a problem for each report, and for each violation that no unreadable record can have caused."""
    problems = ProblemCollector()
    reports = list(reports)
    for reject in select_reports(reports, RejectReport):
        problems.add_problem(reject.problem)
    row_violations = [report.violation for report in select_reports(reports, RowViolationReport)]
    existing_ids = [report.violation for report in select_reports(reports, ExistingIdReport)]
    for violation in (*row_violations, *found.repeated, *existing_ids, *found.others):
        problems.add_violation(violation)
    return problems.collected


def _without_explained(rejects: "DataFrame", found: SetViolations) -> SetViolations:
    """Leave out the violations that unreadable records may have caused.

    Tasks identify these violations, because the driver does not read all rejected records.
    """
    required = [violation for violation in found.others if violation.required_id is not None]
    if not required:
        return found
    explained = set(rejects.mapInArrow(partial(_find_explained, required), _ID_DDL).toArrow()["id"].to_pylist())
    return replace(found, others=[item for item in found.others if item.required_id not in explained])


def _find_explained(violations: Sequence[Violation], batches: Batches) -> Batches:
    for batch in batches:
        problems = ProblemCollector()
        for report in select_reports(read_reports(pa.Table.from_batches([batch])), RejectReport):
            problems.add_problem(report.problem)
        ids = {violation.required_id for violation in violations if problems.explains_violation(violation)}
        yield pa.RecordBatch.from_arrays([pa.array(sorted(filter(None, ids)), pa.string())], schema=_ID_SCHEMA)


def _write_files(
    rejects: "DataFrame", positions: RecordPositions, rule_problems: Sequence[LoadProblem], folder: RejectFolder
) -> list[str]:
    """Write one pair of files per task, and one on the driver; return the names, without their suffixes."""
    folder.remove_files()
    names = [_part_name(0)] if folder.write(_part_name(0), [rule_problems]) else []
    ordered_rejects = rejects.sortWithinPartitions("spot")
    written = ordered_rejects.mapInArrow(_make_write_task(positions, folder), _FILE_DDL).toArrow()
    return names + sorted(written["name"].to_pylist())


def _make_write_task(positions: RecordPositions, folder: RejectFolder) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        name = _part_name(1 + (context.partitionId() if context is not None else 0))
        problem_batches = (
            positions.locate_problems(_to_problems(read_reports(pa.Table.from_batches([rows])), SetViolations()))
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
