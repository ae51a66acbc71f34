"""The outcome of a schema merge: the merged schema, the conflicts, and the decisions about them.

This module defines the records that `merge_schemas` returns, and the log that collects conflicts during a merge. It
never resolves conflicts itself: the caller's `decide` function does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast, get_args

from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.records.frozen import record

Side = Literal["ours", "theirs"]
Winner = Literal["ours", "theirs", "base"]  # "base" means that neither change is made
ConflictKind = Literal[
    "renamed_differently",
    "changed_differently",
    "dropped_and_changed",
    "added_differently",
    "name_taken",
    "constraint_changed_differently",
    "constraint_added_differently",
    "constraint_dropped_and_changed",
    "unresolvable",
]


class SourcedSchema(Protocol):
    """Protocol for a schema with its source text. `StoredSchema` is one implementation."""

    @property
    def source(self) -> str:
        """The `.pg` text."""

    @property
    def ir(self) -> SchemaIR:
        """The accepted schema with its identity ids."""


@record
class SchemaVersion:
    """A schema and its source text, for callers that do not have a stored schema."""

    source: str
    ir: SchemaIR


@record
class SchemaConflict:
    """A pair of changes that cannot be combined.

    `subject` is the label of the type or property on our side, or on their side if our side dropped it. `base`, `ours`
    and `theirs` describe the three states in schema syntax. None means that the item does not exist in that state.
    `reason` is set if the kind alone does not explain the conflict.
    """

    kind: ConflictKind
    subject: str
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.kind == "unresolvable":
            return f"{self.subject}: {self.reason}"
        states = (("base", self.base), ("ours", self.ours), ("theirs", self.theirs))
        shown_states = ", ".join(f"{label}: {state or 'absent'}" for label, state in states)
        return f"{self.subject}: {self.kind.replace('_', ' ')} ({shown_states})"


Decide = Callable[[SchemaConflict], str | None]


@record
class DroppedEdit:
    """Values that one side wrote to a type or property that the other side has dropped since the base.

    `side` changed values in `entity_count` entities. `property_id` is None if the whole type was dropped.
    """

    side: Side
    type_id: int
    property_id: int | None
    entity_count: int


@record
class SchemaMerge:
    """A merged schema.

    `ir` and `source` are final only if `conflicts` is empty. Otherwise, they contain a provisional result. In an open
    conflict, the provisional winner is the side that dropped something. If neither side dropped anything, our side
    wins. If the provisional result would not be a valid schema, `ir` and `source` contain our schema instead.

    `ir` keeps the ids of our schema. `their_ir` is their schema with its additions renumbered, so equal ids in `ir` and
    `their_ir` identify the same type or property. `their_numbers` contains an (original id, new id) pair for each
    addition that was renumbered.
    """

    source: str
    ir: SchemaIR
    their_ir: SchemaIR
    conflicts: tuple[SchemaConflict, ...] = ()
    resolved: tuple[tuple[SchemaConflict, Winner], ...] = ()
    their_numbers: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class ConflictLog:
    """Collects the conflicts in a merge. Each distinct conflict is passed to `decide` once."""

    decide: Decide | None = None
    _decisions: dict[SchemaConflict, Winner | None] = field(default_factory=dict)
    _structural: list[SchemaConflict] = field(default_factory=list)
    _slots: list[SchemaConflict] = field(default_factory=list)
    _unresolvable: list[SchemaConflict] = field(default_factory=list)

    def start_pass(self) -> None:
        """Discard the conflicts between slots, because the slots are about to be merged again."""
        self._slots.clear()

    def choose(self, conflict: SchemaConflict, *, structural: bool = False, provisional: Side = "ours") -> Winner:
        """Record a conflict and return the winner. If there is no decision, the `provisional` side wins."""
        recorded = self._structural if structural else self._slots
        if conflict not in recorded:
            recorded.append(conflict)
        if conflict not in self._decisions:
            self._decisions[conflict] = self._ask(conflict)
        return self._decisions[conflict] or provisional

    def has_open_structural(self) -> bool:
        """Return whether a structural conflict is still open. If so, later results are provisional."""
        return any(self._decisions[conflict] is None for conflict in self._structural)

    def has_open_rename(self) -> bool:
        """Return whether a conflict between two renames is still open. If so, the name is provisional."""
        renames = (conflict for conflict in self._slots if conflict.kind == "renamed_differently")
        return any(self._decisions[conflict] is None for conflict in renames)

    def add_unresolvable(self, conflict: SchemaConflict) -> None:
        """Record a conflict that cannot be resolved in favor of either side."""
        self._unresolvable.append(conflict)

    def open_conflicts(self) -> tuple[SchemaConflict, ...]:
        """Return the undecided conflicts.

        Errors from the checker are included only if all conflicts have been decided, because a provisional decision may
        cause them.
        """
        undecided = [conflict for conflict in self._all_conflicts() if self._decisions[conflict] is None]
        return tuple(undecided or dict.fromkeys(self._unresolvable))

    def decided_conflicts(self) -> tuple[tuple[SchemaConflict, Winner], ...]:
        """Return the decided conflicts, each with its winner."""
        decisions = ((conflict, self._decisions[conflict]) for conflict in self._all_conflicts())
        return tuple((conflict, side) for conflict, side in decisions if side is not None)

    def _all_conflicts(self) -> list[SchemaConflict]:
        conflicts = dict.fromkeys((*self._structural, *self._slots))
        return sorted(conflicts, key=lambda conflict: (conflict.subject, conflict.kind))

    def _ask(self, conflict: SchemaConflict) -> Winner | None:
        answer = self.decide(conflict) if self.decide is not None else None
        if answer is None or answer in get_args(Winner):
            return cast("Winner | None", answer)
        expected = ", ".join(map(repr, get_args(Winner)))
        raise ValueError(f"unknown decision {answer!r} for {conflict.subject}; expected {expected} or None")
