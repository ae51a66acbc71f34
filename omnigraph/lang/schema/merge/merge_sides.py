"""The three schemas in a merge, with common ids, and functions that look up names in them."""

from dataclasses import replace

from omnigraph.records.frozen import record

from .conflicts import Side
from .edit_slots import EntityReference
from .slots import ColumnReference, SchemaSlots


@record
class MergeSides:
    """The three schemas in a merge, with common ids."""

    base: SchemaSlots
    ours: SchemaSlots
    theirs: SchemaSlots

    def of(self, side: Side) -> SchemaSlots:
        """Return one side's schema."""
        return self.ours if side == "ours" else self.theirs

    def with_side(self, side: Side, schema: SchemaSlots) -> "MergeSides":
        """Return the merge sides with one side's schema replaced."""
        return replace(self, ours=schema) if side == "ours" else replace(self, theirs=schema)


SIDES: tuple[Side, Side] = ("ours", "theirs")


def other_side(side: Side) -> Side:
    """Return the other side of the merge."""
    return "theirs" if side == "ours" else "ours"


def merged_column_name(sides: MergeSides, merged: SchemaSlots, type_id: int, column: ColumnReference) -> str | None:
    """Return the name of a column in the merged schema, or None if the column does not exist there."""
    if isinstance(column, str):
        return column
    merged_type = merged[type_id]
    if column in merged_type.properties:
        return merged_type.properties[column].name
    for side_schema in (sides.ours, sides.theirs):
        owner = side_schema.get(type_id)
        for satisfied_id in () if owner is None else owner.satisfied_ids.get(column, ()):
            for interface_id in merged_type.implements:
                interface = merged.get(interface_id)
                if interface is not None and satisfied_id in interface.properties:
                    return interface.properties[satisfied_id].name
    return None


def has_entity(schema: SchemaSlots, entity: EntityReference) -> bool:
    """Return whether a schema declares a type or property."""
    owner = schema.get(entity.type_id)
    return owner is not None and (entity.property_id is None or entity.property_id in owner.properties)


def entity_name(schema: SchemaSlots, entity: EntityReference) -> str | None:
    """Return the name of a type or property in a schema, or None if the schema does not declare it."""
    if not has_entity(schema, entity):
        return None
    owner = schema[entity.type_id]
    return owner.name if entity.property_id is None else owner.properties[entity.property_id].name
