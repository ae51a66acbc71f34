"""Find conflicts about what exists: contradicted drops, unlike additions, broken references, names used twice.

Each of these conflicts concerns several slots at once, so its decision edits one side, and the slots are then merged
again. This module finds one such conflict at a time; `settle` applies its decision.
"""

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.lang.schema.migrate.properties import can_hold_values
from omnigraph.records.frozen import record

from .conflicts import ConflictLog, SchemaConflict, Side
from .edit_slots import (
    EntityReference,
    adopt_definition,
    describe_entity,
    remove_entity,
    rename_entity,
    restore_entity,
)
from .merge_constraints import describe_details
from .merge_properties import describe_property, have_same_definition
from .print_slots import print_declaration
from .slots import ColumnReference, SchemaSlots, TypeSlots, group_columns


@record
class MergeSides:
    """The three schemas of a merge, with the same ids."""

    base: SchemaSlots
    ours: SchemaSlots
    theirs: SchemaSlots

    def of(self, side: Side) -> SchemaSlots:
        """Return the schema of a side."""
        return self.ours if side == "ours" else self.theirs

    def with_side(self, side: Side, schema: SchemaSlots) -> "MergeSides":
        """Return the same merge with another schema on one side."""
        return replace(self, ours=schema) if side == "ours" else replace(self, theirs=schema)


SIDES: tuple[Side, Side] = ("ours", "theirs")


def other_side(side: Side) -> Side:
    """Return the opposite side."""
    return "theirs" if side == "ours" else "ours"


@record
class DropConflict:
    """One side dropped an entity that the other side changed or newly uses; `use` describes the change."""

    entity: EntityReference
    dropped_by: Side
    use: str

    def settle(self, log: ConflictLog, sides: MergeSides) -> MergeSides:
        """Return the sides after the decision: the entity is dropped on both, or restored."""
        keeper = other_side(self.dropped_by)
        states = {keeper: self.use, self.dropped_by: None}
        conflict = SchemaConflict(
            "dropped_and_changed",
            describe_entity(sides.of(keeper), self.entity),
            _describe_state(sides.base, self.entity),
            states["ours"],
            states["theirs"],
        )
        if log.choose(conflict, structural=True, provisional=self.dropped_by) == self.dropped_by:
            return sides.with_side(keeper, remove_entity(sides.of(keeper), sides.base, self.entity))
        return sides.with_side(self.dropped_by, restore_entity(sides.of(self.dropped_by), sides.base, self.entity))


@record
class AdditionConflict:
    """Both sides added a property with the same name and owner, but with another definition."""

    entity: EntityReference

    def settle(self, log: ConflictLog, sides: MergeSides) -> MergeSides:
        """Return the sides after the decision: the losing side has the definition of the winning one."""
        type_id, property_id = self.entity.type_id, self.entity.property_id or 0
        ours, theirs = (schema[type_id].properties[property_id] for schema in (sides.ours, sides.theirs))
        subject = describe_entity(sides.ours, self.entity)
        conflict = SchemaConflict(
            "added_differently", subject, None, describe_property(ours), describe_property(theirs)
        )
        winner = log.choose(conflict, structural=True)
        loser = other_side(winner)
        are_alike = can_hold_values(ours.type, theirs.type) or can_hold_values(theirs.type, ours.type)
        definition = ours if winner == "ours" else theirs
        adopted = adopt_definition(sides.of(loser), self.entity, definition, keep_constraints=are_alike)
        return sides.with_side(loser, adopted)


@record
class NameConflict:
    """Both sides use one name for different things."""

    our_entity: EntityReference
    their_entity: EntityReference

    def settle(self, log: ConflictLog, sides: MergeSides) -> MergeSides:
        """Return the sides after the decision: the losing side undoes its rename or its addition."""
        conflict = SchemaConflict(
            "name_taken",
            describe_entity(sides.ours, self.our_entity),
            None,
            _describe_claim(sides.base, sides.ours, self.our_entity),
            _describe_claim(sides.base, sides.theirs, self.their_entity),
        )
        loser = other_side(log.choose(conflict, structural=True))
        entity = self.our_entity if loser == "ours" else self.their_entity
        base_name = _entity_name(sides.base, entity)
        losing_schema = sides.of(loser)
        if base_name is None or base_name == _entity_name(losing_schema, entity):
            return sides.with_side(loser, remove_entity(losing_schema, sides.base, entity))
        return sides.with_side(loser, rename_entity(losing_schema, entity, base_name))


def find_contradicted_drop(sides: MergeSides) -> DropConflict | None:
    """Return a type or property that one side dropped and the other side changed."""
    return next(_contradicted_drops(sides), None)


def _contradicted_drops(sides: MergeSides) -> Iterator[DropConflict]:
    for type_id, base_type in sides.base.items():
        our_type, their_type = sides.ours.get(type_id), sides.theirs.get(type_id)
        if our_type is not None and their_type is not None:
            yield from _contradicted_property_drops(sides, base_type)
            continue
        kept_type = our_type or their_type
        if kept_type is not None and kept_type != base_type:
            dropped_by: Side = "ours" if our_type is None else "theirs"
            use = _describe_type(sides.of(other_side(dropped_by)), kept_type)
            yield DropConflict(EntityReference(type_id), dropped_by, use)


def _contradicted_property_drops(sides: MergeSides, base_type: TypeSlots) -> Iterator[DropConflict]:
    type_id = base_type.type_id
    our_type, their_type = sides.ours[type_id], sides.theirs[type_id]
    for property_id in base_type.properties:
        if (property_id in our_type.properties) == (property_id in their_type.properties):
            continue
        dropped_by: Side = "theirs" if property_id in our_type.properties else "ours"
        kept_type = sides.of(other_side(dropped_by))[type_id]
        use = _describe_property_change(base_type, kept_type, property_id)
        if use is not None:
            yield DropConflict(EntityReference(type_id, property_id), dropped_by, use)


def _describe_property_change(base_type: TypeSlots, kept_type: TypeSlots, property_id: int) -> str | None:
    """Return what a side changed about a property, or None."""
    kept = kept_type.properties[property_id]
    if kept != base_type.properties[property_id]:
        return f"{kept.name}: {describe_property(kept)}"
    for group, content in sorted(kept_type.constraints.items(), key=str):
        added_details = set(content) - set(base_type.constraints.get(group, {}))
        if added_details and property_id in group_columns(group, content):
            return describe_details(group, added_details, kept_type)
    return None


def find_unlike_addition(sides: MergeSides) -> AdditionConflict | None:
    """Return a property that both sides added with another type, default or embedding."""
    for type_id in sorted(sides.ours.keys() & sides.theirs.keys()):
        our_properties, their_properties = sides.ours[type_id].properties, sides.theirs[type_id].properties
        base_type = sides.base.get(type_id)
        base_properties = {} if base_type is None else base_type.properties
        for property_id in sorted(our_properties.keys() & their_properties.keys() - base_properties.keys()):
            if not have_same_definition(our_properties[property_id], their_properties[property_id]):
                return AdditionConflict(EntityReference(type_id, property_id))
    return None


def find_broken_reference(sides: MergeSides, merged: SchemaSlots) -> DropConflict | None:
    """Return an entity that the merged schema refers to although one side dropped it."""
    return next(_broken_references(sides, merged), None)


def _broken_references(sides: MergeSides, merged: SchemaSlots) -> Iterator[DropConflict]:
    for type_id, merged_type in merged.items():
        for referenced_id in (merged_type.source_id, merged_type.target_id, *sorted(merged_type.implements)):
            if referenced_id is not None and referenced_id not in merged:
                yield from _dropped_entity(sides, EntityReference(referenced_id), type_id, None)
        for column in _used_columns(merged_type):
            if isinstance(column, int) and merged_column_name(sides, merged, type_id, column) is None:
                yield from _dropped_column(sides, type_id, column)


def _used_columns(type_slots: TypeSlots) -> Iterator[ColumnReference]:
    for group, content in type_slots.constraints.items():
        yield from sorted(group_columns(group, content), key=str)
    for slots in type_slots.properties.values():
        if slots.embed is not None:
            yield slots.embed.source


def _describe_use(type_slots: TypeSlots, column: int) -> str | None:
    """Return the first constraint or embedding of a type that names a column."""
    for group, content in sorted(type_slots.constraints.items(), key=str):
        if column in group_columns(group, content):
            return describe_details(group, content, type_slots)
    for slots in type_slots.properties.values():
        if slots.embed is not None and slots.embed.source == column:
            return f"{slots.name}: {describe_property(slots)}"
    return None


def _dropped_column(sides: MergeSides, type_id: int, column: int) -> Iterator[DropConflict]:
    """Yield the drop of a property, or of the interface property that it is inherited from."""
    for side_schema in (sides.ours, sides.theirs):
        owner = side_schema.get(type_id)
        if owner is None or column not in owner.property_ids.values():
            continue
        use = _describe_use(owner, column)
        if column in owner.properties:
            yield from _dropped_entity(sides, EntityReference(type_id, column), type_id, use)
        for satisfied_id in owner.satisfied_ids.get(column, ()):
            for interface_id in sorted(owner.implements):
                interface = side_schema.get(interface_id)
                if interface is not None and satisfied_id in interface.properties:
                    yield from _dropped_entity(sides, EntityReference(interface_id, satisfied_id), type_id, use)


def _dropped_entity(
    sides: MergeSides, entity: EntityReference, user_id: int, use: str | None
) -> Iterator[DropConflict]:
    for keeper in SIDES:
        dropper = other_side(keeper)
        keeper_schema = sides.of(keeper)
        if not _has_entity(keeper_schema, entity) or _has_entity(sides.of(dropper), entity):
            continue
        if not _has_entity(sides.base, entity):
            continue
        described_use = use
        if described_use is None and user_id in keeper_schema:
            described_use = _describe_type(keeper_schema, keeper_schema[user_id])
        yield DropConflict(entity, dropper, described_use or "")


def find_name_conflict(sides: MergeSides, merged: SchemaSlots) -> NameConflict | None:
    """Return two entities of the merged schema that the two sides give the same name."""
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
        if _entity_name(sides.ours, our_entity) == _entity_name(merged, our_entity) and _entity_name(
            sides.theirs, their_entity
        ) == _entity_name(merged, their_entity):
            return NameConflict(our_entity, their_entity)
    return None


def merged_column_name(sides: MergeSides, merged: SchemaSlots, type_id: int, column: ColumnReference) -> str | None:
    """Return the name of a column in the merged schema, or None if it does not exist."""
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


def _has_entity(schema: SchemaSlots, entity: EntityReference) -> bool:
    owner = schema.get(entity.type_id)
    return owner is not None and (entity.property_id is None or entity.property_id in owner.properties)


def _entity_name(schema: SchemaSlots, entity: EntityReference) -> str | None:
    if not _has_entity(schema, entity):
        return None
    owner = schema[entity.type_id]
    return owner.name if entity.property_id is None else owner.properties[entity.property_id].name


def _describe_state(schema: SchemaSlots, entity: EntityReference) -> str | None:
    if not _has_entity(schema, entity):
        return None
    owner = schema[entity.type_id]
    if entity.property_id is None:
        return _describe_type(schema, owner)
    slots = owner.properties[entity.property_id]
    return f"{slots.name}: {describe_property(slots)}"


def _describe_claim(base: SchemaSlots, side: SchemaSlots, entity: EntityReference) -> str:
    base_name, name = _entity_name(base, entity), _entity_name(side, entity)
    if base_name is None:
        return f"{name} is added"
    return f"{base_name} is renamed to {name}" if base_name != name else f"{name} is kept"


def _describe_type(schema: SchemaSlots, type_slots: TypeSlots) -> str:
    """Return a declaration on one line."""

    def column_name(reference: ColumnReference) -> str:
        known_name = type_slots.property_name(reference) if isinstance(reference, int) else None
        return known_name or str(reference)

    printed = print_declaration(type_slots, schema, column_name)
    body = "  ".join(printed.members.values())
    if not body:
        return printed.header if type_slots.kind == "edge" else f"{printed.header} {{}}"
    return f"{printed.header} {{ {body} }}"
