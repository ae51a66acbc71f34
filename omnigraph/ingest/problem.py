"""Problems with individual records in a load's input.

This module defines the problem type and its collector, and determines which violations are only consequences of invalid
lines. A load raises the first problem in input order, or reports all of them. In both cases, it writes nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import ClientError
from omnigraph.rules.violation import Violation


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """An invalid record: its line, its intended type and id, and the error.

    `record_values` are the record's values. `unreadable_line` is the raw line if it could not be parsed. It is kept
    because it may contain a node that an edge on another line needs.
    """

    line: int | None
    type: str | None
    id: str | None
    error: ClientError
    file: str | None = None
    record_values: tuple[str, ...] = ()
    unreadable_line: bytes | None = None

    @property
    def reason(self) -> str:
        """The error's message."""
        return self.error.message

    def standalone_error(self) -> ClientError:
        """Return the error with the record's file name added, so that it can be raised on its own."""
        if self.file is None:
            return self.error
        message, details = f"{self.file}: {self.reason}", self.error.details
        return type(self.error)(message, hint=self.error.hint, **{**details, "file": self.file})


_MAX_INTEGER_BITS = 128
_MAX_UNREADABLE_LINES = 1000  # maximum number of unreadable lines to keep
_MAX_KEPT_BYTES = 1 << 14  # maximum number of bytes to keep from an unreadable line

# Error details that contain an input position.
_POSITION_DETAILS = ("line", "first_input_position", "second_input_position")


def relocate_problem(
    problem: LoadProblem, line_number_of: Callable[[int], int | None], file_name: str | None
) -> LoadProblem:
    """Return the problem with line numbers in its file instead of positions in the whole input."""
    error, input_position = problem.error, problem.line
    details = dict(error.details)
    for detail_name in _POSITION_DETAILS:
        if isinstance(details.get(detail_name), int):
            details[detail_name] = line_number_of(details[detail_name])
    line_number = None if input_position is None else line_number_of(input_position)
    old_prefix = f"line {input_position}: "
    message = None
    if error.has_given_message and type(error)(**error.details).message != error.message:
        new_prefix = "" if line_number is None else f"line {line_number}: "
        message = error.message.replace(old_prefix, new_prefix, 1)
    located_error = type(error)(message, hint=error.hint, **details)
    return LoadProblem(line_number, problem.type, problem.id, located_error, file_name)


def _write_value(value: str | int | float) -> str:
    """Return a value as text, or an empty string for an integer that is too large for any property type."""
    return "" if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS else str(value)


@dataclass(slots=True)
class ProblemCollector:
    """The problems found so far, and the values of the invalid records, which the load leaves out."""

    collected: list[LoadProblem] = field(default_factory=list)
    missing_values: set[str] = field(default_factory=set)
    unreadable_lines: list[bytes] = field(default_factory=list)

    def add(
        self,
        error: ClientError,
        line_number: int | None,
        type_name: str | None = None,
        entity_id: str | None = None,
        *,
        record_values: Iterable[Any] = (),
        unreadable_line: bytes | None = None,
    ) -> None:
        """Add a problem with its record's values, or with the line that could not be read."""
        raw_values = (entity_id, *record_values)
        value_texts = tuple(
            _write_value(raw_value) for raw_value in raw_values if isinstance(raw_value, str | int | float)
        )
        line_start = None if unreadable_line is None else unreadable_line[:_MAX_KEPT_BYTES]
        self.add_problem(
            LoadProblem(line_number, type_name, entity_id, error, record_values=value_texts, unreadable_line=line_start)
        )

    def add_problem(self, problem: LoadProblem) -> None:
        """Add an existing `LoadProblem`, for example one that another task found."""
        self.collected.append(problem)
        self.missing_values.update(problem.record_values)
        if problem.unreadable_line is not None and len(self.unreadable_lines) < _MAX_UNREADABLE_LINES:
            self.unreadable_lines.append(problem.unreadable_line)

    def add_violation(self, violation: Violation) -> None:
        """Add a violation, unless it may merely be a consequence of leaving out an invalid line."""
        if not self.explains_violation(violation):
            self.collected.append(
                LoadProblem(violation.input_line, violation.type_name, violation.entity_id, violation.to_error())
            )

    def explains_violation(self, violation: Violation) -> bool:
        """Return whether a violation may merely be a consequence of leaving out an invalid line."""
        needed_value = violation.required_id
        if needed_value is None:
            return False
        return needed_value in self.missing_values or any(
            needed_value.encode() in unreadable_line for unreadable_line in self.unreadable_lines
        )

    def in_input_order(self) -> list[LoadProblem]:
        """Return all problems in the order of the input."""
        return sorted(self.collected, key=lambda problem: (problem.line is None, problem.line or 0))

    def raise_first(self) -> None:
        """Raise the first problem in input order, if any."""
        if self.collected:
            raise self.in_input_order()[0].error
