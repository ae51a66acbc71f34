"""Find the changes that conflict resolutions discard.

A side's change is discarded if the entity that results from a decision does not contain it. Property changes are listed
one by one. An entity that a decision removes is listed as a whole, and so is a deletion that a decision undoes. A merge
without decisions discards nothing. This module does not read tables.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.storage.blob_placeholders import shown_value
from omnigraph.storage.value_equality import same_rows, same_values
from omnigraph.values.table_key import TableKey

from .conflicts import property_values
from .decisions import DecidedEntity
from .table_merge import Choice, TableSides

DiscardedPart = Literal["property", "entity", "deletion"]
# A property change contains the property and its value; other changes refer to the whole entity.
_Part: TypeAlias = tuple[DiscardedPart, str | None, Any]
_SIDES: tuple[Choice, Choice] = ("ours", "theirs")


@dataclass(frozen=True, slots=True)
class DiscardedChange:
    """A change that a merge dropped because a conflict was resolved for the other side or with new values.

    `part` is `property` if the side set `property_name` to `value`, `entity` if the side added or changed an entity
    that the merge removes (`value` holds its properties), or `deletion` if the side deleted an entity that the merge
    keeps. `side` is `ours` (the target) or `theirs` (the source).

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
    sides_of: Callable[[TableKey], TableSides], decided_entities: Mapping[TableKey, Sequence[DecidedEntity]]
) -> tuple[DiscardedChange, ...]:
    """Return the changes that decisions discard: nodes before edges, then ordered by type and id."""
    ordered_keys = sorted(decided_entities, key=lambda table_key: (table_key.is_edge, table_key))
    return tuple(
        DiscardedChange(table_key.kind, table_key.type_name, entity_id, side, *part)
        for table_key in ordered_keys
        for entity_id, side, part in _parts_of_table(sides_of(table_key), decided_entities[table_key])
    )


def _parts_of_table(
    table_sides: TableSides, decided_entities: Sequence[DecidedEntity]
) -> Iterator[tuple[str, Choice, _Part]]:
    property_parts = _property_parts(decided_entities)
    for entity in decided_entities:
        for side in _SIDES:
            whole_part = _whole_part(table_sides, entity, side)
            parts = [whole_part] if whole_part is not None else property_parts.get((entity.id, side), ())
            yield from ((entity.id, side, part) for part in parts)


def _whole_part(table_sides: TableSides, entity: DecidedEntity, side: Choice) -> _Part | None:
    """Return a side's deletion or entity if the decision discards it as a whole, or None otherwise."""
    side_row = _row_of(entity, side)
    if side_row is None:
        was_present = entity.base is not None or entity.id in table_sides.uncertain_ids
        return ("deletion", None, None) if was_present and entity.result is not None else None
    if entity.result is not None:
        return None
    is_changed = entity.base is None or not same_rows(entity.base, side_row)[0]
    return ("entity", None, property_values(side_row)) if is_changed else None


def _property_parts(decided_entities: Sequence[DecidedEntity]) -> dict[tuple[str, Choice], list[_Part]]:
    """Return the discarded property values by entity and side. Entities with a base row are compared in one batch."""
    parts: dict[tuple[str, Choice], list[_Part]] = {}
    for side, has_base in product(_SIDES, (True, False)):
        entities = [
            entity
            for entity in decided_entities
            if (entity.base is not None) == has_base and entity.result is not None and _row_of(entity, side) is not None
        ]
        for entity_id, part in _compare_properties(entities, side, has_base=has_base):
            parts.setdefault((entity_id, side), []).append(part)
    return parts


def _compare_properties(
    entities: Sequence[DecidedEntity], side: Choice, *, has_base: bool
) -> Iterator[tuple[str, _Part]]:
    """Yield the values that a side changed since the base and that are not in the result."""
    if not entities:
        return
    result_rows = _concat_rows(entity.result for entity in entities)
    side_rows = _concat_rows(_row_of(entity, side) for entity in entities)
    base_rows = _concat_rows(entity.base for entity in entities) if has_base else None
    for column in side_rows.column_names:
        is_discarded = ~same_values(side_rows[column], result_rows[column])
        if base_rows is not None:
            is_discarded &= ~same_values(base_rows[column], side_rows[column])
        for row_number in np.flatnonzero(is_discarded).tolist():
            yield entities[row_number].id, ("property", column, shown_value(side_rows[column][row_number].as_py()))


def _row_of(entity: DecidedEntity, side: Choice) -> pa.Table | None:
    return entity.ours if side == "ours" else entity.theirs


def _concat_rows(rows: Iterable[pa.Table | None]) -> pa.Table:
    return pa.concat_tables(row for row in rows if row is not None).combine_chunks()
