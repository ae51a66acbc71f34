"""Edit one side's slots after a decision, to restore or remove a type or property.

Both kinds of edits keep that side's schema consistent. A restored property gets its constraints back. A reference to a
removed type or property is reverted to its base value or removed.
"""

from collections.abc import Collection
from dataclasses import replace

from omnigraph.records.frozen import record

from .slots import PropertySlots, SchemaSlots, TypeSlots, group_columns


@record
class EntityReference:
    """A reference to a type or to one of its properties."""

    type_id: int
    property_id: int | None = None


def describe_entity(schema: SchemaSlots, entity: EntityReference) -> str:
    """Return the label of a type or property in `schema`."""
    owner = schema[entity.type_id]
    return owner.label if entity.property_id is None else owner.property_label(entity.property_id)


def restore_entity(side: SchemaSlots, base: SchemaSlots, entity: EntityReference) -> SchemaSlots:
    """Return the side with a dropped type or property restored to its base definition."""
    base_type = base[entity.type_id]
    own_type = side.get(entity.type_id)
    if entity.property_id is None or own_type is None:
        return side | {entity.type_id: base_type}
    property_id = entity.property_id
    properties = {**own_type.properties, property_id: base_type.properties[property_id]}
    known_columns = {*properties, *own_type.property_ids.values(), "id", "src", "dst"}
    constraints = dict(own_type.constraints)
    for group, content in base_type.constraints.items():
        columns = group_columns(group, content)
        if property_id in columns and columns <= known_columns and group not in constraints:
            constraints[group] = content
    restored_name = base_type.properties[property_id].name
    property_ids = {restored_name: property_id, **own_type.property_ids}
    return side | {
        entity.type_id: replace(own_type, properties=properties, constraints=constraints, property_ids=property_ids)
    }


def revert_entity(side: SchemaSlots, base: SchemaSlots, entity: EntityReference) -> SchemaSlots:
    """Return the side with a type or property reverted to its base definition, including its constraints."""
    own_type, property_id = side[entity.type_id], entity.property_id
    constraints = {
        group: content
        for group, content in own_type.constraints.items()
        if property_id not in group_columns(group, content)
    }
    return restore_entity(side | {entity.type_id: replace(own_type, constraints=constraints)}, base, entity)


def remove_entity(side: SchemaSlots, base: SchemaSlots, entity: EntityReference) -> SchemaSlots:
    """Return the side without a type or property and without references to it."""
    if entity.property_id is None:
        return _remove_type(side, base, entity.type_id)
    owner = side[entity.type_id]
    reduced = side | {entity.type_id: _remove_property(owner, base.get(entity.type_id), entity.property_id)}
    return _remove_inherited(reduced, base, {entity.property_id}) if owner.kind == "interface" else reduced


def _remove_inherited(side: SchemaSlots, base: SchemaSlots, removed_ids: Collection[int]) -> SchemaSlots:
    """Return the side without the inherited properties whose interface properties have all been removed."""
    for type_id, node_type in list(side.items()):
        reduced = node_type
        for property_id, satisfied_ids in node_type.satisfied_ids.items():
            if property_id not in node_type.properties and set(satisfied_ids) <= set(removed_ids):
                reduced = _remove_property(reduced, base.get(type_id), property_id)
        side = side | {type_id: reduced}
    return side


def adopt_definition(
    side: SchemaSlots, entity: EntityReference, definition: PropertySlots, *, keep_constraints: bool
) -> SchemaSlots:
    """Return the side with an added property redefined as it is on the other side.

    Unless `keep_constraints` is true, constraints on the property are removed, except for a key.
    """
    owner, property_id = side[entity.type_id], entity.property_id
    if property_id is None:
        return side
    own_slots = owner.properties[property_id]
    adopted = replace(own_slots, type=definition.type, default=definition.default, embed=definition.embed)
    constraints = {
        group: content
        for group, content in owner.constraints.items()
        if keep_constraints or group[0] == "key" or property_id not in group_columns(group, content)
    }
    properties = {**owner.properties, property_id: adopted}
    return side | {entity.type_id: replace(owner, properties=properties, constraints=constraints)}


def rename_entity(side: SchemaSlots, entity: EntityReference, name: str) -> SchemaSlots:
    """Return the side with a type or property renamed."""
    owner = side[entity.type_id]
    if entity.property_id is None:
        return side | {entity.type_id: replace(owner, name=name)}
    renamed = replace(owner.properties[entity.property_id], name=name)
    return side | {entity.type_id: replace(owner, properties={**owner.properties, entity.property_id: renamed})}


def _remove_type(side: SchemaSlots, base: SchemaSlots, type_id: int) -> SchemaSlots:
    if side[type_id].kind == "interface":
        side = _remove_inherited(side, base, side[type_id].properties.keys())
    remaining = {other_id: other_type for other_id, other_type in side.items() if other_id != type_id}
    for other_id, other_type in list(remaining.items()):
        reverted = _revert_endpoints(other_type, base.get(other_id), type_id)
        if type_id in (reverted.source_id, reverted.target_id):
            remaining = _remove_type(remaining, base, other_id)
        elif other_id in remaining:
            remaining[other_id] = replace(reverted, implements=reverted.implements - {type_id})
    return remaining


def _revert_endpoints(edge_type: TypeSlots, base_type: TypeSlots | None, removed_id: int) -> TypeSlots:
    if base_type is None:
        return edge_type
    if edge_type.source_id == removed_id:
        edge_type = replace(edge_type, source_id=base_type.source_id)
    if edge_type.target_id == removed_id:
        edge_type = replace(edge_type, target_id=base_type.target_id)
    return edge_type


def _remove_property(owner: TypeSlots, base_owner: TypeSlots | None, removed_id: int) -> TypeSlots:
    base_properties = {} if base_owner is None else base_owner.properties
    properties = {
        property_id: _revert_embed(slots, base_properties.get(property_id), removed_id)
        for property_id, slots in owner.properties.items()
        if property_id != removed_id
    }
    constraints = {
        group: content
        for group, content in owner.constraints.items()
        if removed_id not in group_columns(group, content)
    }
    property_ids = {name: known_id for name, known_id in owner.property_ids.items() if known_id != removed_id}
    reduced = replace(owner, properties=properties, constraints=constraints, property_ids=property_ids)
    for property_id, slots in properties.items():
        if slots.embed is not None and slots.embed.source == removed_id:
            reduced = _remove_property(reduced, base_owner, property_id)
    return reduced


def _revert_embed(slots: PropertySlots, base_slots: PropertySlots | None, removed_id: int) -> PropertySlots:
    if base_slots is None or slots.embed is None or slots.embed.source != removed_id:
        return slots
    return replace(slots, embed=base_slots.embed)
