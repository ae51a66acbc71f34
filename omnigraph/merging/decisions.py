"""Decisions about conflicts, and how they affect an entity.

A decision chooses a side for the whole entity, chooses a side for individual properties, or provides a row that
replaces the rows of both sides. Properties without a decision are merged, so a decision never undoes an edit that is
not in conflict. This module does not read tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from omnigraph.values.table_key import TableKey

from .conflicts import EntityKey
from .table_merge import Choice, ContestedEntity, MergedRow, TableSides


@dataclass(frozen=True, slots=True)
class PropertyChoices:
    """The sides chosen for some of an entity's properties. The other properties are merged."""

    side_by_column: Mapping[str, Choice]

    def with_columns(self, columns: Iterable[str], side: Choice) -> "PropertyChoices":
        """Add `side` for the given columns, except for columns that already have a side."""
        return PropertyChoices({**dict.fromkeys(columns, side), **self.side_by_column})

    def without_columns(self, columns: Iterable[str]) -> "PropertyChoices | None":
        """Remove the choices for the given columns; return None if no choice remains."""
        remaining = {column: side for column, side in self.side_by_column.items() if column not in columns}
        return PropertyChoices(remaining) if remaining else None


Decision: TypeAlias = Choice | PropertyChoices | Any  # a side, sides by property, or a row that replaces both sides
Decisions: TypeAlias = Mapping[EntityKey, Decision]


class DecidedEntity(NamedTuple):
    """An entity with a decision: its row in the base, on each side and in the result, or None where it does not exist.

    `changes_target` is true if the result may differ from our row.
    """

    id: str
    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None
    result: pa.Table | None
    changes_target: bool


def decide_entities(table_sides: TableSides, choices: Mapping[str, Decision]) -> list[DecidedEntity]:
    """Return the decided entities in one table, ordered by id. The merged rows are computed in one batch."""
    side_by_column = {
        entity_id: decision.side_by_column
        for entity_id, decision in choices.items()
        if isinstance(decision, PropertyChoices)
    }
    merged_rows = table_sides.merged_rows(side_by_column)
    return [
        _decide_entity(table_sides, entity_id, choices[entity_id], merged_rows.get(entity_id))
        for entity_id in sorted(choices)
    ]


def _decide_entity(
    table_sides: TableSides, entity_id: str, decision: Decision, merged_row: MergedRow | None
) -> DecidedEntity:
    base_row, our_row, their_row = table_sides.versions_of(entity_id)
    if merged_row is not None:
        return DecidedEntity(entity_id, base_row, our_row, their_row, *merged_row)
    if isinstance(decision, pa.Table):
        return DecidedEntity(entity_id, base_row, our_row, their_row, decision, True)
    # An entity that neither side changed is identical on both sides.
    takes_theirs = decision == "theirs" and table_sides.is_changed(entity_id)
    result_row = their_row if decision == "theirs" else our_row
    return DecidedEntity(entity_id, base_row, our_row, their_row, result_row, takes_theirs)


def decisions_by_table(decisions: Decisions) -> dict[TableKey, dict[str, Decision]]:
    """Group the decisions by table and entity id."""
    choices_by_table: dict[TableKey, dict[str, Decision]] = {}
    for (table_key, entity_id), decision in decisions.items():
        choices_by_table.setdefault(table_key, {})[entity_id] = decision
    return choices_by_table


def is_resolved(entity: ContestedEntity, decision: Decision | None) -> bool:
    """Return whether a decision covers every conflicting property of an entity."""
    if isinstance(decision, PropertyChoices):
        return decision.side_by_column.keys() >= set(entity.differing_columns)
    return decision is not None


def extend_decision(
    table_sides: TableSides, entity_id: str, earlier: Decision | None, side: Choice, columns: tuple[str, ...]
) -> Decision:
    """Return the decision about an entity after a side is chosen for a conflict in the given columns.

    Earlier decisions are kept. The decision covers the whole entity if its properties cannot be merged one by one, or
    if the conflict is not about individual properties.
    """
    if isinstance(earlier, PropertyChoices):
        return earlier.with_columns(columns, side)
    if earlier is not None:
        return earlier
    by_property = columns and table_sides.merges_properties(entity_id)
    return PropertyChoices(dict.fromkeys(columns, side)) if by_property else side
