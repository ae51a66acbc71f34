"""A broken rule: the rule, the entity, and the error to raise.

A mutation raises the first violation, a load reports all, a merge lists them as conflicts.
"""

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import (
    ClientError,
    ConstraintViolation,
    KeyConflict,
    PropertyValueError,
    UniqueViolation,
)

Rule = Literal[
    "@range", "@check", "enum", "required", "value", "@unique", "key", "endpoint", "@card"
]
_CONFLICTS = {
    "@unique": "unique_violation",
    "key": "divergent_insert",
    "endpoint": "orphan_edge",
    "@card": "cardinality_violation",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that an entity breaks. `input_line` is its line in the input, if there is one.

    `required_id` is the node or edge source whose rejected input lines may be the actual cause.
    `edge_text` shows both endpoints of an edge.
    """

    rule: Rule
    type_key: str
    entity_id: str | None = None
    column: str | tuple[str, ...] | None = None
    reason: str | None = None
    line: int | None = None
    value: Any = None
    other_id: str | None = None
    other_line: int | None = None
    rests_on: str | None = None
    edge: str | None = None
    hint: str | None = None

    @property
    def type_name(self) -> str:
        """Name of the type."""
        return self.type_key.partition(":")[2]

    @property
    def conflict_kind(self) -> str:
        """The conflict kind that a merge reports."""
        return _CONFLICTS.get(self.rule, "value_constraint_violation")

    def error(self) -> ClientError:
        """Return the error to raise."""
        if self.rule == "key":
            return KeyConflict(
                type_key=self.type_key,
                entity_id=self.entity_id,
                line=self.line,
                first_input_position=self.other_line,
                hint=None if self.other_line is None else "list each entity of an input only once",
            )
        if self.rule == "@unique":
            return self._unique()
        if self.rule == "value":
            return PropertyValueError(
                type_name=self.type_name,
                property=self.column,
                entity_id=self.entity_id,
                line=self.line,
                expected=self.reason,
                actual=self.value,
            )
        return ConstraintViolation(
            rule=self.rule,
            type_name=self.type_name,
            entity_id=self.entity_id,
            property=self.column,
            line=self.line,
            reason=self.reason,
            value=self.value,
            edge=self.edge,
            hint=self.hint,
        )

    def _unique(self) -> UniqueViolation:
        both = self.line is not None and self.other_line is not None
        return UniqueViolation(
            type_name=self.type_name,
            property=self.column,
            value=self.value,
            line=self.line,
            first_id=self.other_id,
            second_id=self.entity_id,
            first_input_position=self.other_line if both else None,
            second_input_position=self.line if both else None,
        )
