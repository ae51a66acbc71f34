"""The changes that decisions about conflicts discard.

A side's change is discarded if the decided entity does not have it. Changes to properties are listed
one by one; an entity that a decision removes, and a deletion that a decision undoes, are listed as a
whole. Merges without decisions discard nothing. This module reads no tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from omnigraph.storage.value_equality import same_values
from omnigraph.values.table_key import TableKey

from .conflicts import property_values
from .decisions import Decision, Decisions, decided_row
from .table_merge import Choice, TableSides

DiscardedPart = Literal["property", "entity", "deletion"]
_SIDES: tuple[Choice, Choice] = ("ours", "theirs")


@dataclass(frozen=True, slots=True)
class DiscardedChange:
    """A change of one side that a merge did not keep, because a conflict was decided otherwise.

    `part` is `property` (then `property_name` and `value` are what the side had set), `entity` (the
    side added or changed an entity that the merge removes; `value` holds its properties) or `deletion`
    (the side deleted an entity that the merge keeps). `side` is `ours` (the target) or `theirs` (the source).

    >>> change = DiscardedChange("node", "Item", "cup", "ours", "property", "price", 4.0)
    >>> str(change)
    "Item 'cup': price 4.0"
    """

    entity_kind: str
    type_name: str
    entity_id: str
    side: Choice
    part: DiscardedPart
    property_name: str | None = None
    value: Any = field(default=None, hash=False)

    def __str__(self) -> str:
        parts = {"entity": "the whole entity", "deletion": "its deletion"}
        part_text = parts.get(self.part) or f"{self.property_name} {self.value!r}"
        return f"{self.type_name} '{self.entity_id}': {part_text}"


def find_discarded_changes(
    sides_of: Callable[[TableKey], TableSides], decisions: Decisions
) -> tuple[DiscardedChange, ...]:
    """Return the changes that decisions discard: nodes before edges, then by type and id."""
    ordered_keys = sorted(decisions, key=lambda entity_key: (entity_key[0].is_edge, *entity_key))
    return tuple(
        change
        for table_key, entity_id in ordered_keys
        for change in _changes_of_entity(sides_of(table_key), entity_id, decisions[table_key, entity_id])
    )


def _changes_of_entity(table_sides: TableSides, entity_id: str, decision: Decision) -> Iterator[DiscardedChange]:
    if not table_sides.is_changed(entity_id):
        return
    base_row, result_row = table_sides.base_row(entity_id), decided_row(table_sides, entity_id, decision)
    for side in _SIDES:
        side_row = table_sides.row_on(side, entity_id)
        for part, column, value in _discarded_parts(table_sides, entity_id, base_row, side_row, result_row):
            kind, type_name = table_sides.table_key.kind, table_sides.table_key.type_name
            yield DiscardedChange(kind, type_name, entity_id, side, part, column, value)


def _discarded_parts(
    table_sides: TableSides,
    entity_id: str,
    base_row: pa.Table | None,
    side_row: pa.Table | None,
    result_row: pa.Table | None,
) -> Iterator[tuple[DiscardedPart, str | None, Any]]:
    """Yield the changes of one side that the result does not have."""
    if side_row is None:
        was_present = base_row is not None or entity_id in table_sides.uncertain_ids
        if was_present and result_row is not None:
            yield "deletion", None, None
        return
    changed_columns = _changed_columns(base_row, side_row)
    if result_row is None:
        if changed_columns:
            yield "entity", None, property_values(side_row)
        return
    for column in changed_columns:
        if not same_values(side_row[column], result_row[column])[0]:
            yield "property", column, side_row[column][0].as_py()


def _changed_columns(base_row: pa.Table | None, side_row: pa.Table) -> list[str]:
    """Return the columns that a side changed since the base; all columns if the side added the entity."""
    if base_row is None:
        return list(side_row.column_names)
    return [column for column in side_row.column_names if not same_values(base_row[column], side_row[column])[0]]
