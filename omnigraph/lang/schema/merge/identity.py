"""Assign ids in a merged schema. The id from our side takes precedence over the id from the other side.

If one side adds a property to an interface and the other side adds a node that implements the interface, the merged
schema contains a property that neither side has. Such a property gets a new id, and no other property does.

This module also reports required properties that would have no value in existing entities, and distinct inherited
properties that would share a name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from omnigraph.lang.schema.catalog import Catalog, PropertyDefinition
from omnigraph.lang.schema.derived_ids import derive_id
from omnigraph.lang.schema.ir import (
    CatalogType,
    SchemaIR,
    TypeIdentity,
    assigned_ids,
    catalog_types,
    ordered_key_columns,
)

from .conflicts import SchemaConflict
from .merge_sides import MergeSides
from .slots import SchemaSlots, TypeSlots


@dataclass(slots=True)
class MergedIdentity:
    """Assigns ids to a merged catalog, and collects the conflicts found along the way."""

    sides: MergeSides
    merged: SchemaSlots
    domain: str
    taken_ids: frozenset[int]
    conflicts: list[SchemaConflict] = field(default_factory=list)

    def assign(self, catalog: Catalog) -> SchemaIR:
        """Return the schema with its ids. `catalog` must be compiled from the merged slots."""
        merged_types = {(slots.kind, slots.name): slots for slots in self.merged.values()}
        identities = tuple(
            self._assign_type(declared_type, merged_types[declared_type.kind, declared_type.name])
            for declared_type in catalog_types(catalog)
        )
        ir = SchemaIR(self.domain, 1, catalog, identities)
        return replace(ir, next_identity_id=max((assigned_id + 1 for assigned_id in assigned_ids(ir)), default=1))

    def _assign_type(self, declared_type: CatalogType, slots: TypeSlots) -> TypeIdentity:
        declared_ids = {property_slots.name: number for number, property_slots in slots.properties.items()}
        property_ids: dict[str, int] = {}
        for definition in declared_type.properties:
            inherited_ids = list(self._inherited_ids(slots, definition))
            property_id = declared_ids.get(definition.name)
            if property_id is None:
                property_id = next(
                    (known_id for known_id in inherited_ids if known_id not in declared_ids.values()), None
                )
            if property_id is None:
                property_id = derive_id(self.domain, "property", slots.type_id, definition.name, self.taken_ids)
            property_ids[definition.name] = property_id
            self._check_shared_name(slots, definition, property_id, inherited_ids)
            self._check_value_exists(slots, definition, property_id)
        return TypeIdentity(slots.kind, slots.name, slots.type_id, slots.table_id, tuple(sorted(property_ids.items())))

    def _inherited_ids(self, slots: TypeSlots, definition: PropertyDefinition) -> Iterator[int]:
        """Yield the ids of the properties on both sides that satisfy the same interface property as `definition`.

        The ids from our side come first.
        """
        satisfied_ids = set(self._satisfied_ids(slots, definition))
        for side_schema in (self.sides.ours, self.sides.theirs):
            owner = side_schema.get(slots.type_id)
            for property_id, side_satisfied in {} if owner is None else owner.satisfied_ids.items():
                if satisfied_ids.intersection(side_satisfied):
                    yield property_id

    def _satisfied_ids(self, slots: TypeSlots, definition: PropertyDefinition) -> Iterator[int]:
        interfaces = {self.merged[type_id].name: self.merged[type_id] for type_id in slots.implements}
        for interface_name, property_name in definition.satisfies:
            for property_id, property_slots in interfaces[interface_name].properties.items():
                if property_slots.name == property_name:
                    yield property_id

    def _check_shared_name(
        self, slots: TypeSlots, definition: PropertyDefinition, property_id: int, inherited_ids: list[int]
    ) -> None:
        if set(inherited_ids) <= {property_id}:
            return
        interface_name = definition.satisfies[0][0]
        reason = (
            f"interface `{interface_name}` declares `{definition.name}`, which is a different property on each branch"
        )
        self.conflicts.append(SchemaConflict("unresolvable", f"{slots.label}.{definition.name}", reason=reason))

    def _check_value_exists(self, slots: TypeSlots, definition: PropertyDefinition, property_id: int) -> None:
        """Report a required property for which the entities on one side have no value."""
        base_type = self.sides.base.get(slots.type_id)
        is_old = base_type is not None and property_id in base_type.property_ids.values()
        is_decided = property_id in slots.properties  # only one side adds the property to a type that both sides add
        if (
            is_old
            or is_decided
            or slots.kind == "interface"
            or definition.type.nullable
            or definition.default is not None
        ):
            return
        for side_name, side_schema in (("our", self.sides.ours), ("their", self.sides.theirs)):
            owner = side_schema.get(slots.type_id)
            if owner is not None and property_id not in owner.property_ids.values():
                reason = f"entities on {side_name} side have no value for the required property `{definition.name}`"
                self.conflicts.append(SchemaConflict("unresolvable", f"{slots.label}.{definition.name}", reason=reason))


def find_key_order_conflicts(sides: MergeSides, ours: SchemaIR, theirs: SchemaIR) -> Iterator[SchemaConflict]:
    """Yield conflicts for types that both sides added with the same key columns in a different order.

    An entity's id lists its key values in the order of their property ids, so the same key would produce two different
    ids. `ours` and `theirs` are the schemas with their original ids.
    """
    for type_id in sides.ours.keys() & sides.theirs.keys() - sides.base.keys():
        added_type = sides.ours[type_id]
        our_order, their_order = (ordered_key_columns(ir, added_type.name, added_type.kind) for ir in (ours, theirs))
        if our_order != their_order and set(our_order) == set(their_order):
            orders = f"{', '.join(our_order)} on our side and {', '.join(their_order)} on theirs"
            reason = f"the order of the key columns differs: {orders}"
            yield SchemaConflict("unresolvable", added_type.label, reason=reason)
