"""What is wrong with the input of a load, record by record.

Owns the record of a problem and the collection of them. A load that raises stops at the first in
the order of the input, a load that reports collects all; neither writes anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.errors import ClientError
from omnigraph.errors.root import fill
from omnigraph.rules.violation import Violation


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad record: where it stood, what it was meant to be, and the error."""

    line: int | None
    type: str | None
    id: str | None
    error: ClientError
    file: str | None = None

    @property
    def reason(self) -> str:
        """The error in words."""
        return self.error.message


# Facts that say where a record stood.
_POSITIONS = ("line", "first_input_position", "second_input_position")


def located(one: Problem, line_of: Callable[[int], int | None], file: str | None) -> Problem:
    """The same problem with the lines of its file in place of positions in the whole input."""
    error, old = one.error, one.line
    facts = dict(error.details)
    for name in _POSITIONS:
        if isinstance(facts.get(name), int):
            facts[name] = line_of(facts[name])
    line = None if old is None else line_of(old)
    prefix = f"line {old}: "
    message = None
    if fill(type(error).sentence, error.details) != error.message:
        shown = "" if line is None else f"line {line}: "
        message = error.message.replace(prefix, shown, 1)
    return Problem(line, one.type, one.id, type(error)(message, hint=error.hint, **facts), file)


@dataclass(slots=True)
class Problems:
    """The problems found so far."""

    found: list[Problem] = field(default_factory=list)

    def add(
        self, error: ClientError, line: int | None, type: str | None = None, id: str | None = None
    ) -> None:
        """Write one down."""
        self.found.append(Problem(line, type, id, error))

    def add_violation(self, one: Violation) -> None:
        """Write a broken rule down."""
        self.found.append(Problem(one.line, one.type_name, one.entity_id, one.error()))

    def in_order(self) -> list[Problem]:
        """All of them, in the order of the input."""
        return sorted(self.found, key=lambda one: (one.line is None, one.line or 0))

    def raise_first(self) -> None:
        """Raise the first in the order of the input, if there is one."""
        if self.found:
            raise self.in_order()[0].error
