"""Find names that both sides use for different items, or for additions with different definitions.

A decision about such a conflict is applied by editing one side and merging the slots again. This module finds one
conflict at a time, and the conflict's `settle` method applies the decision.
"""

from omnigraph.lang.schema.migrate.stored_types import can_convert_values
from omnigraph.records.frozen import record

from .conflicts import ConflictLog, SchemaConflict, Side, Winner
from .edit_slots import EntityReference, adopt_definition, describe_entity, remove_entity, rename_entity
from .merge_properties import describe_property, have_same_definition
from .merge_sides import MergeSides, entity_name, other_side
from .slots import SchemaSlots


@record
class AdditionConflict:
    """A property that both sides added with the same name and owner but different definitions."""

    entity: EntityReference

    def settle(self, log: ConflictLog, sides: MergeSides) -> MergeSides:
        """Return the sides after applying the decision.

        The losing side adopts the winning side's definition. If the base wins, neither side adds the property.
        """
        type_id, property_id = self.entity.type_id, self.entity.property_id or 0
        ours, theirs = (schema[type_id].properties[property_id] for schema in (sides.ours, sides.theirs))
        subject = describe_entity(sides.ours, self.entity)
        conflict = SchemaConflict(
            "added_differently", subject, None, describe_property(ours), describe_property(theirs)
        )
        winner = log.choose(conflict, structural=True)
        if winner == "base":
            without_ours, without_theirs = (
                remove_entity(schema, sides.base, self.entity) for schema in (sides.ours, sides.theirs)
            )
            return sides.with_side("ours", without_ours).with_side("theirs", without_theirs)
        loser = other_side(winner)
        are_alike = can_convert_values(ours.type, theirs.type)
        definition = ours if winner == "ours" else theirs
        adopted = adopt_definition(sides.of(loser), self.entity, definition, keep_constraints=are_alike)
        return sides.with_side(loser, adopted)


@record
class NameConflict:
    """A name that the two sides use for different types or properties."""

    our_entity: EntityReference
    their_entity: EntityReference

    def settle(self, log: ConflictLog, sides: MergeSides) -> MergeSides:
        """Return the sides after applying the decision.

        The losing side undoes its rename or addition. If the base wins, both sides undo theirs.
        """
        winner = self._choose_winner(log, sides)
        if winner != "base":
            return self._undo(sides, other_side(winner))
        for side, entity in (("ours", self.our_entity), ("theirs", self.their_entity)):
            if entity_name(sides.base, entity) != entity_name(sides.of(side), entity):  # type: ignore[arg-type]
                sides = self._undo(sides, side)  # type: ignore[arg-type]
        return sides

    def _undo(self, sides: MergeSides, loser: Side) -> MergeSides:
        entity = self.our_entity if loser == "ours" else self.their_entity
        base_name = entity_name(sides.base, entity)
        losing_schema = sides.of(loser)
        if base_name is None or base_name == entity_name(losing_schema, entity):
            return sides.with_side(loser, remove_entity(losing_schema, sides.base, entity))
        return sides.with_side(loser, rename_entity(losing_schema, entity, base_name))

    def _choose_winner(self, log: ConflictLog, sides: MergeSides) -> Winner:
        if self._follows_from_open_conflict(log, sides):
            return "ours"
        conflict = SchemaConflict(
            "name_taken",
            describe_entity(sides.ours, self.our_entity),
            None,
            _describe_claim(sides.base, sides.ours, self.our_entity),
            _describe_claim(sides.base, sides.theirs, self.their_entity),
        )
        return log.choose(conflict, structural=True)

    def _follows_from_open_conflict(self, log: ConflictLog, sides: MergeSides) -> bool:
        """Return whether the conflict may stem from a provisional decision, in which case it cannot be decided yet."""
        for own_schema, entity in ((sides.ours, self.our_entity), (sides.theirs, self.their_entity)):
            base_name = entity_name(sides.base, entity)
            if base_name == entity_name(own_schema, entity) and log.has_open_structural():
                return True
            side_names = {entity_name(sides.ours, entity), entity_name(sides.theirs, entity)}
            if len(side_names - {None, base_name}) > 1 and log.has_open_rename():
                return True
        return False


def find_unlike_addition(sides: MergeSides) -> AdditionConflict | None:
    """Find a property that both sides added, but with a different type, default or embedding."""
    for type_id in sorted(sides.ours.keys() & sides.theirs.keys()):
        our_properties, their_properties = sides.ours[type_id].properties, sides.theirs[type_id].properties
        base_type = sides.base.get(type_id)
        base_properties = {} if base_type is None else base_type.properties
        for property_id in sorted(our_properties.keys() & their_properties.keys() - base_properties.keys()):
            if not have_same_definition(our_properties[property_id], their_properties[property_id]):
                return AdditionConflict(EntityReference(type_id, property_id))
    return None


def find_name_conflict(sides: MergeSides, merged: SchemaSlots) -> NameConflict | None:
    """Find two types of the same kind, or two properties of the same type, that share a name in the merged schema."""
    owners: dict[tuple[str, str], EntityReference] = {}
    for type_id, merged_type in merged.items():
        shown_name = merged_type.name.lower() if merged_type.kind == "edge" else merged_type.name
        entity = EntityReference(type_id)
        other = owners.setdefault((merged_type.kind, shown_name), entity)
        conflict = _name_conflict(sides, merged, other, entity)
        if conflict is not None:
            return conflict
        property_owners: dict[str, EntityReference] = {}
        for property_id, slots in merged_type.properties.items():
            entity = EntityReference(type_id, property_id)
            other = property_owners.setdefault(slots.name, entity)
            conflict = _name_conflict(sides, merged, other, entity)
            if conflict is not None:
                return conflict
    return None


def _name_conflict(
    sides: MergeSides, merged: SchemaSlots, first: EntityReference, second: EntityReference
) -> NameConflict | None:
    if first == second:
        return None
    for our_entity, their_entity in ((first, second), (second, first)):
        if entity_name(sides.ours, our_entity) == entity_name(merged, our_entity) and entity_name(
            sides.theirs, their_entity
        ) == entity_name(merged, their_entity):
            return NameConflict(our_entity, their_entity)
    return None


def _describe_claim(base: SchemaSlots, side: SchemaSlots, entity: EntityReference) -> str:
    base_name, name = entity_name(base, entity), entity_name(side, entity)
    if base_name is None:
        return f"{name} is added"
    return f"{base_name} is renamed to {name}" if base_name != name else f"{name} is kept"
