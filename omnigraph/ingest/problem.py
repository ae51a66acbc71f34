"""What is wrong with the input of a load, record by record.

Owns the record of a problem, the collection of them, and which broken rules only follow from bad
lines. A load that raises stops at the first in the order of the input, a load that reports collects
all; neither writes anything.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import ClientError
from omnigraph.rules.violation import Violation


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad record: where it stood, what it was meant to be, and the error.

    `words` are what it holds, `text` is the line if it could not be read at all: a node may stand
    there that an edge elsewhere needs.
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
        """The error in words."""
        return self.error.message

    def alone(self) -> ClientError:
        """The error for who sees nothing else: it names the file that the record stood in."""
        if self.file is None:
            return self.error
        told, facts = f"{self.file}: {self.reason}", self.error.details
        return type(self.error)(told, hint=self.error.hint, **{**facts, "file": self.file})


_TEXTS = 1000  # unreadable lines that are kept
_LONGEST = 1 << 14  # bytes of one of them

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
    if type(error)(**error.details).message != error.message:
        shown = "" if line is None else f"line {line}: "
        message = error.message.replace(prefix, shown, 1)
    made = type(error)(message, hint=error.hint, **facts)
    return Problem(line, one.type, one.id, made, file)


@dataclass(slots=True)
class Problems:
    """The problems found so far, and what the records hold that are missing because of them."""

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
        """Write one down; `holds` are the values of the record, `text` a line that is none."""
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
        """Write a broken rule down, unless it may be broken only because a bad line is missing."""
        if not self.explain(one):
            self.found.append(Problem(one.line, one.type_name, one.entity_id, one.error()))

    def explain(self, one: Violation) -> bool:
        """Whether a rule may be broken only because a bad line is missing."""
        needed = one.rests_on
        if needed is None:
            return False
        return needed in self.words or any(needed.encode() in text for text in self.texts)

    def in_order(self) -> list[Problem]:
        """All of them, in the order of the input."""
        return sorted(self.found, key=lambda one: (one.line is None, one.line or 0))

    def raise_first(self) -> None:
        """Raise the first in the order of the input, if there is one."""
        if self.found:
            raise self.in_order()[0].error
