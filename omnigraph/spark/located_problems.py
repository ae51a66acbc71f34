"""Problems in a Spark load, in input order, each with its line number in the input file."""

from collections.abc import Iterable, Sequence

from omnigraph.ingest.input_pieces import InputPiece, map_record_positions
from omnigraph.ingest.problem import LoadProblem, ProblemCollector
from omnigraph.rules.violation import Violation

from .task_reports import LineCountReport, RejectReport, TaskReport, select_reports


def locate_problems(
    pieces: Sequence[InputPiece], collected: Sequence[TaskReport], violations: Iterable[Violation]
) -> list[LoadProblem]:
    """Return a problem for each record that could not be read and for each violation not caused by such a record."""
    line_counts = {report.piece_number: report.line_count for report in select_reports(collected, LineCountReport)}
    problems = ProblemCollector()
    for report in select_reports(collected, RejectReport):
        problems.add_problem(report.problem)
    for violation in violations:
        problems.add_violation(violation)
    return map_record_positions(pieces, line_counts).locate_problems(problems.collected)
