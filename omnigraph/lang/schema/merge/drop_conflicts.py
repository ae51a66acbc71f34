"""Find types and properties that one side dropped and the other side changed or began to refer to.

Such a conflict affects several slots, so a decision is applied by editing one side and merging the slots again. This
module finds one conflict at a time, and the conflict's `settle` method applies the decision.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from omnigraph.records.frozen import record

from .conflicts import ConflictLog, DroppedEdit, SchemaConflict, Side
from .edit_slots import EntityReference, describe_entity, remove_entity, restore_entity, revert_entity
from .merge_constraints import describe_details
from .merge_properties import describe_property
from .merge_sides import SIDES, MergeSides, has_entity, merged_column_name, other_side
from .print_slots import print_declaration
from .slots import ColumnReference, SchemaSlots, TypeSlots, group_columns


@record
class DropConflict:
    """A type or property that one side dropped and the other side changed or began to use.

    `use` describes the change or the new use.
    """

    entity: EntityReference
    dropped_by: Side
    use: str

    def settle(self, log: ConflictLog, sides: MergeSides) -> MergeSides:
        """Return the sides after applying the decision.

        The decision either drops the type or property on both sides, or restores it. If the base wins, both sides get
        the declaration from the base.
        """
        keeper = other_side(self.dropped_by)
        states = {keeper: self.use, self.dropped_by: None}
        conflict = SchemaConflict(
            "dropped_and_changed",
            describe_entity(sides.of(keeper), self.entity),
            _describe_state(sides.base, self.entity),
            states["ours"],
            states["theirs"],
        )
        winner = log.choose(conflict, structural=True, provisional=self.dropped_by)
        if winner == self.dropped_by:
            return sides.with_side(keeper, remove_entity(sides.of(keeper), sides.base, self.entity))
        if winner == "base":
            sides = sides.with_side(keeper, revert_entity(sides.of(keeper), sides.base, self.entity))
        return sides.with_side(self.dropped_by, restore_entity(sides.of(self.dropped_by), sides.base, self.entity))


def find_contradicted_drop(sides: MergeSides, dropped_edits: Sequence[DroppedEdit] = ()) -> DropConflict | None:
    """Find a type or property that one side dropped while the other side changed its declaration or values."""
    return next(chain(_contradicted_drops(sides), _drops_of_edited_values(sides, dropped_edits)), None)


def _drops_of_edited_values(sides: MergeSides, dropped_edits: Sequence[DroppedEdit]) -> Iterator[DropConflict]:
    for edit in dropped_edits:
        keeper_schema, dropped_by = sides.of(edit.side), other_side(edit.side)
        for entity in _declaring_entities(keeper_schema, edit):
            is_dropped = has_entity(sides.base, entity) and not has_entity(sides.of(dropped_by), entity)
            if is_dropped and has_entity(keeper_schema, entity):
                declaration = _describe_state(keeper_schema, entity)
                use = f"{declaration} (values written in {_count_entities(edit.entity_count)})"
                yield DropConflict(entity, dropped_by, use)


def _declaring_entities(schema: SchemaSlots, edit: DroppedEdit) -> Iterator[EntityReference]:
    """Yield the type or property that the edit changed.

    For an inherited property, yield the interface properties that declare it.
    """
    owner = schema.get(edit.type_id)
    if owner is None or edit.property_id is None or edit.property_id in owner.properties:
        yield EntityReference(edit.type_id, edit.property_id)
        return
    for satisfied_id in owner.satisfied_ids.get(edit.property_id, ()):
        for interface_id in sorted(owner.implements):
            yield EntityReference(interface_id, satisfied_id)


def _count_entities(count: int) -> str:
    return "1 entity" if count == 1 else f"{count} entities"


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
    """Describe how a side changed a property, or return None if the side did not change it."""
    kept = kept_type.properties[property_id]
    if kept != base_type.properties[property_id]:
        return f"{kept.name}: {describe_property(kept)}"
    for group, content in sorted(kept_type.constraints.items(), key=str):
        added_details = set(content) - set(base_type.constraints.get(group, {}))
        if added_details and property_id in group_columns(group, content):
            return describe_details(group, added_details, kept_type)
    return None


def find_broken_reference(sides: MergeSides, merged: SchemaSlots) -> DropConflict | None:
    """Find a type or property that one side dropped but the merged schema still refers to."""
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
    """Describe the first constraint or embedding in a type that uses a column, or return None if none uses it."""
    for group, content in sorted(type_slots.constraints.items(), key=str):
        if column in group_columns(group, content):
            return describe_details(group, content, type_slots)
    for slots in type_slots.properties.values():
        if slots.embed is not None and slots.embed.source == column:
            return f"{slots.name}: {describe_property(slots)}"
    return None


def _dropped_column(sides: MergeSides, type_id: int, column: int) -> Iterator[DropConflict]:
    """Yield the conflict about a dropped property, or about the interface property that it is inherited from."""
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
        if not has_entity(keeper_schema, entity) or has_entity(sides.of(dropper), entity):
            continue
        if not has_entity(sides.base, entity):
            continue
        described_use = use
        if described_use is None and user_id in keeper_schema:
            described_use = _describe_type(keeper_schema, keeper_schema[user_id])
        yield DropConflict(entity, dropper, described_use or "")


def _describe_state(schema: SchemaSlots, entity: EntityReference) -> str | None:
    if not has_entity(schema, entity):
        return None
    owner = schema[entity.type_id]
    if entity.property_id is None:
        return _describe_type(schema, owner)
    slots = owner.properties[entity.property_id]
    return f"{slots.name}: {describe_property(slots)}"


def _describe_type(schema: SchemaSlots, type_slots: TypeSlots) -> str:
    """Return a declaration as one line of text."""

    def column_name(reference: ColumnReference) -> str:
        known_name = type_slots.property_name(reference) if isinstance(reference, int) else None
        return known_name or str(reference)

    printed = print_declaration(type_slots, schema, column_name)
    body = "  ".join(printed.members.values())
    if not body:
        return printed.header if type_slots.kind == "edge" else f"{printed.header} {{}}"
    return f"{printed.header} {{ {body} }}"
