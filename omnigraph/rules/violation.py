"""Violations, each of which records the violated rule, the entity, and the error to raise.

A mutation raises its first violation as an error, a load reports all violations, and a merge lists them as conflicts.
"""

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import (
    ClientError,
    ConstraintViolation,
    EntityNotFound,
    InputError,
    KeyConflict,
    PropertyValueError,
    UniqueViolation,
)
from omnigraph.errors.single_line import single_line
from omnigraph.values.table_key import TableKey

Rule = Literal[
    "@range", "@check", "enum", "required", "value", "@unique", "key", "endpoint", "@card", "missing", "ambiguous"
]
_CONFLICT_KINDS = {
    "@unique": "unique_violation",
    "key": "divergent_insert",
    "endpoint": "orphan_edge",
    "@card": "cardinality_violation",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule by one entity. `input_line` is the line of the entity in the input, if it is known.

    `required_id` is the id of a missing node, or of a source with too few edges. If input lines with this id were
    rejected, their rejection is the real cause of the violation. `edge_text` describes both endpoints of an edge.
    """

    rule: Rule
    type_key: TableKey
    entity_id: str | None = None
    column: str | tuple[str, ...] | None = None
    reason: str | None = None
    input_line: int | None = None
    value: Any = None
    conflicting_id: str | None = None
    conflicting_line: int | None = None
    required_id: str | None = None
    edge_text: str | None = None
    hint: str | None = None

    @property
    def type_name(self) -> str:
        """The name of the entity's type."""
        return self.type_key.type_name

    @property
    def conflict_kind(self) -> str:
        """The kind of conflict that a merge reports for this violation."""
        return _CONFLICT_KINDS.get(self.rule, "value_constraint_violation")

    def to_error(self) -> ClientError:
        """Return the error to raise."""
        if self.rule == "key":
            return KeyConflict(
                type_key=self.type_key,
                entity_id=self.entity_id,
                line=self.input_line,
                first_input_position=self.conflicting_line,
                hint=None if self.conflicting_line is None else "include each entity only once in the input",
            )
        if self.rule == "@unique":
            return self._unique_error()
        if self.rule == "missing":
            return EntityNotFound(
                entity_kind=self.type_key.kind,
                type_name=self.type_name,
                entity_id=self.entity_id,
                line=self.input_line,
                hint=self.hint,
            )
        if self.rule == "ambiguous":
            return InputError(line=self.input_line, type_name=self.type_name, **self._texts())
        if self.rule == "value":
            return PropertyValueError(
                type_name=self.type_name,
                property=self.column,
                entity_id=self.entity_id,
                line=self.input_line,
                expected=self.reason,
                actual=self.value,
            )
        return ConstraintViolation(
            rule=self.rule,
            type_name=self.type_name,
            entity_id=self.entity_id,
            property=self.column,
            line=self.input_line,
            value=self.value,
            **self._texts(),
        )

    def _texts(self) -> dict[str, Any]:
        """Return the parts of the message that contain values from the data, each on a single line."""
        texts = {"reason": self.reason, "edge": self.edge_text, "hint": self.hint}
        return {name: single_line(text) if text is not None else None for name, text in texts.items()}

    def _unique_error(self) -> UniqueViolation:
        both_in_input = self.input_line is not None and self.conflicting_line is not None
        return UniqueViolation(
            type_name=self.type_name,
            property=self.column,
            value=self.value,
            line=self.input_line,
            first_id=self.conflicting_id,
            second_id=self.entity_id,
            first_input_position=self.conflicting_line if both_in_input else None,
            second_input_position=self.input_line if both_in_input else None,
        )
