"""Decisions about conflicts, and what an entity becomes under one.

A decision is a side for the whole entity, sides for single properties, or the row that replaces both
sides. Properties without a decision are merged, so a decision never undoes an edit that is not in
conflict. This module reads no tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.storage.value_equality import same_rows

from .conflicts import EntityKey
from .table_merge import Choice, ContestedEntity, TableSides


@dataclass(frozen=True, slots=True)
class PropertyChoices:
    """The sides chosen for single properties of an entity; its other properties are merged."""

    side_by_column: Mapping[str, Choice]

    def with_columns(self, columns: Iterable[str], side: Choice) -> "PropertyChoices":
        """Return choices that also cover more columns; columns that have a side keep it."""
        return PropertyChoices({**dict.fromkeys(columns, side), **self.side_by_column})

    def without_columns(self, columns: Iterable[str]) -> "PropertyChoices | None":
        """Return choices that leave some columns open, or None if no choice remains."""
        remaining = {column: side for column, side in self.side_by_column.items() if column not in columns}
        return PropertyChoices(remaining) if remaining else None


Decision: TypeAlias = Choice | PropertyChoices | Any  # a side, sides by property, or the row that replaces both
Decisions: TypeAlias = Mapping[EntityKey, Decision]


def decided_row(table_sides: TableSides, entity_id: str, decision: Decision) -> pa.Table | None:
    """Return an entity's row under a decision, or None if the decision removes the entity."""
    if isinstance(decision, pa.Table):
        return decision
    if isinstance(decision, PropertyChoices):
        return table_sides.merged_row(entity_id, decision.side_by_column)
    return table_sides.row_on(decision, entity_id)


def changes_target(table_sides: TableSides, entity_id: str, decision: Decision) -> bool:
    """Return whether a decision changes the target; an entity that neither side changed is identical on both."""
    if isinstance(decision, PropertyChoices):
        row, our_row = decided_row(table_sides, entity_id, decision), table_sides.row_on("ours", entity_id)
        return row is None or our_row is None or not same_rows(row, our_row)[0]
    return isinstance(decision, pa.Table) or (decision == "theirs" and table_sides.is_changed(entity_id))


def is_resolved(entity: ContestedEntity, decision: Decision | None) -> bool:
    """Return whether a decision covers every conflicting property of an entity."""
    if isinstance(decision, PropertyChoices):
        return decision.side_by_column.keys() >= set(entity.differing_columns)
    return decision is not None


def extend_decision(
    table_sides: TableSides, entity_id: str, earlier: Decision | None, side: Choice, columns: tuple[str, ...]
) -> Decision:
    """Return the decision about an entity after a side is chosen for a conflict about some columns.

    Earlier decisions are kept. The whole entity is decided where its properties cannot be merged one
    by one, or where the conflict is not about single properties.
    """
    if isinstance(earlier, PropertyChoices):
        return earlier.with_columns(columns, side)
    if earlier is not None:
        return earlier
    by_property = columns and table_sides.merges_properties(entity_id)
    return PropertyChoices(dict.fromkeys(columns, side)) if by_property else side
