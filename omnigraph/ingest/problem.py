"""Problems with the input of a load, record by record.

Owns the problem type, its collector, and the rule for violations that merely follow from invalid
lines. A load raises the first problem in input order, or reports all of them; either way it writes
nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import ClientError
from omnigraph.rules.violation import Violation


@dataclass(frozen=True, slots=True)
class Problem:
    """One invalid record: its line, its intended type and id, and the error.

    `record_values` are the values of the record, `unreadable_line` is the raw line if it could not
    be parsed: it may contain a node that an edge elsewhere needs.
    """

    line: int | None
    type: str | None
    id: str | None
    error: ClientError
    file: str | None = None
    words: tuple[str, ...] = ()
    text: bytes | None = None

    @property
    def reason(self) -> str:
        """The message of the error."""
        return self.error.message

    def alone(self) -> ClientError:
        """Return the error for use on its own: it names the file of the record."""
        if self.file is None:
            return self.error
        told, facts = f"{self.file}: {self.reason}", self.error.details
        return type(self.error)(told, hint=self.error.hint, **{**facts, "file": self.file})


_TEXTS = 1000  # maximum unreadable lines kept
_LONGEST = 1 << 14  # bytes kept of each of them

# Error details that hold an input position.
_POSITIONS = ("line", "first_input_position", "second_input_position")


def located(one: Problem, line_of: Callable[[int], int | None], file: str | None) -> Problem:
    """Return the problem with line numbers of its file instead of positions in the whole input."""
    error, old = one.error, one.line
    facts = dict(error.details)
    for name in _POSITIONS:
        if isinstance(facts.get(name), int):
            facts[name] = line_of(facts[name])
    line = None if old is None else line_of(old)
    prefix = f"line {old}: "
    message = None
    if type(error)(**error.details).message != error.message:
        shown = "" if line is None else f"line {line}: "
        message = error.message.replace(prefix, shown, 1)
    made = type(error)(message, hint=error.hint, **facts)
    return Problem(line, one.type, one.id, made, file)


@dataclass(slots=True)
class Problems:
    """The problems collected so far, and the values of the records that are missing due to them."""

    found: list[Problem] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    texts: list[bytes] = field(default_factory=list)

    def add(
        self,
        error: ClientError,
        line: int | None,
        type: str | None = None,
        id: str | None = None,
        *,
        holds: Iterable[Any] = (),
        text: bytes | None = None,
    ) -> None:
        """Add a problem with the values of its record, or with the line that could not be read."""
        words = (id, *holds)
        told = tuple(str(one) for one in words if isinstance(one, str | int | float))
        kept = None if text is None else text[:_LONGEST]
        self.take(Problem(line, type, id, error, words=told, text=kept))

    def take(self, one: Problem) -> None:
        """Add a problem that was found elsewhere."""
        self.found.append(one)
        self.words.update(one.words)
        if one.text is not None and len(self.texts) < _TEXTS:
            self.texts.append(one.text)

    def add_violation(self, one: Violation) -> None:
        """Add a violation, unless it may be caused only by a missing invalid line."""
        if not self.explain(one):
            self.found.append(Problem(one.line, one.type_name, one.entity_id, one.error()))

    def explain(self, one: Violation) -> bool:
        """Return whether a violation may be caused only by a missing invalid line."""
        needed = one.rests_on
        if needed is None:
            return False
        return needed in self.words or any(needed.encode() in text for text in self.texts)

    def in_order(self) -> list[Problem]:
        """Return all problems in input order."""
        return sorted(self.found, key=lambda one: (one.line is None, one.line or 0))

    def raise_first(self) -> None:
        """Raise the first problem in input order, if any."""
        if self.found:
            raise self.in_order()[0].error
