"""Renumber the other side's additions: each addition gets the id of the matching addition on our side, or a new id.

A derived id identifies the same type or property on every branch. Earlier releases took ids from a per-branch counter,
so the same id may belong to different additions on the two sides. This module pairs additions that have the same owner
and name, and assigns all other additions ids that are greater than every id in use.
"""

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.lang.schema.derived_ids import is_derived
from omnigraph.lang.schema.ir import SchemaIR, TypeIdentity, assigned_ids, catalog_types
from omnigraph.lang.schema.migrate.stored_types import can_convert_values
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType


def renumber_ir(ir: SchemaIR, new_numbers: Mapping[int, int], next_identity_id: int) -> SchemaIR:
    """Return the schema with its ids replaced. Ids that are not in `new_numbers` stay the same."""

    def renumber(identity: TypeIdentity) -> TypeIdentity:
        table_id = identity.table_incarnation_id
        return replace(
            identity,
            type_id=new_numbers.get(identity.type_id, identity.type_id),
            table_incarnation_id=None if table_id is None else new_numbers.get(table_id, table_id),
            property_ids=tuple(
                (property_name, new_numbers.get(property_id, property_id))
                for property_name, property_id in identity.property_ids
            ),
        )

    return replace(ir, next_identity_id=next_identity_id, type_identities=tuple(map(renumber, ir.type_identities)))


@record
class CommonNumbering:
    """The base schema and the other side's schema, with ids that are comparable with ours.

    `their_numbers` maps the other side's original ids to the ids in `theirs`.
    """

    base: SchemaIR
    theirs: SchemaIR
    their_numbers: Mapping[int, int]


def number_like_ours(base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> CommonNumbering:
    """Return the base schema and the other side's schema, with ids that are comparable with ours.

    Base ids and derived ids do not change. If the other side made an addition with a sequential id, and our side made
    an addition of the same kind and name, both get our id. The other side's remaining additions keep their ids if all
    of these ids are free. Otherwise, they get new ids.
    """
    numbers = {number: number for number in (*assigned_ids(base), *filter(is_derived, assigned_ids(theirs)))}
    numbers |= _pair_additions(frozenset(assigned_ids(base)), ours, theirs, numbers)
    unpaired_ids = sorted(number for number in assigned_ids(theirs) if number not in numbers)
    if unpaired_ids and unpaired_ids[0] < ours.next_identity_id:
        first_free_id = max(ours.next_identity_id, theirs.next_identity_id)
        numbers |= {number: first_free_id + position for position, number in enumerate(unpaired_ids)}
    numbers = {number: numbers.get(number, number) for number in assigned_ids(theirs)}
    next_id = max(ours.next_identity_id, theirs.next_identity_id, *(number + 1 for number in numbers.values()))
    return CommonNumbering(base, renumber_ir(theirs, numbers, next_id), numbers)


def _pair_additions(
    base_ids: frozenset[int], ours: SchemaIR, theirs: SchemaIR, shared_numbers: Mapping[int, int]
) -> dict[int, int]:
    our_types = {identity.type_id: identity for identity in ours.type_identities}
    our_new_types = {
        (identity.kind, identity.name): identity for identity in our_types.values() if identity.type_id not in base_ids
    }
    numbers: dict[int, int] = {}
    for identity in theirs.type_identities:
        if identity.type_id in shared_numbers:
            our_identity = our_types.get(shared_numbers[identity.type_id])
        else:
            our_identity = our_new_types.get((identity.kind, identity.name))
        if our_identity is not None:
            numbers |= _pair_identities(base_ids, our_identity, identity, shared_numbers)
    return numbers


def _pair_identities(
    base_ids: frozenset[int], ours: TypeIdentity, theirs: TypeIdentity, shared_numbers: Mapping[int, int]
) -> dict[int, int]:
    numbers: dict[int, int] = {}
    if theirs.type_id not in shared_numbers:
        numbers[theirs.type_id] = ours.type_id
        if theirs.table_incarnation_id is not None and ours.table_incarnation_id is not None:
            numbers[theirs.table_incarnation_id] = ours.table_incarnation_id
    our_new_properties = {name: number for name, number in ours.property_ids if number not in base_ids}
    for property_name, property_id in theirs.property_ids:
        if property_id not in shared_numbers and property_name in our_new_properties:
            numbers[property_id] = our_new_properties[property_name]
    return numbers


# Added to a property's id during a merge if the same id belongs to a different property in another schema. Ids have at
# most 52 bits, so the sum is never an existing id.
_SEPARATE = 1 << 60


@record
class SeparatedSides:
    """The base schema and the other side's schema, with separate ids for properties whose types are incompatible."""

    base: SchemaIR
    theirs: SchemaIR
    their_numbers: Mapping[int, int]


def separate_unlike_properties(base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> SeparatedSides:
    """Assign separate ids to properties that share an id but whose values cannot be converted to each other's types.

    An earlier merge replaced such a property with one that the other branch had added under the same name. This merge
    treats it as if one side had dropped the property and added another.
    """
    base_types, our_types, their_types = _types_by_id(base), _types_by_id(ours), _types_by_id(theirs)
    base_numbers: dict[int, int] = {}
    their_numbers: dict[int, int] = {}
    for number, base_type in base_types.items():
        is_ours, is_theirs = (
            number not in types or can_convert_values(types[number], base_type) for types in (our_types, their_types)
        )
        if not is_ours:
            base_numbers[number] = number + _SEPARATE
        if is_ours != is_theirs and number in their_types:
            their_numbers[number] = number + _SEPARATE
    return SeparatedSides(
        renumber_ir(base, base_numbers, base.next_identity_id),
        renumber_ir(theirs, their_numbers, theirs.next_identity_id),
        their_numbers,
    )


def restore_numbers(ir: SchemaIR, lowest_next_id: int) -> SchemaIR:
    """Restore the ids that a schema's properties had before they were separated."""
    numbers = {number: number - _SEPARATE for number in assigned_ids(ir) if number >= _SEPARATE}
    if not numbers:
        return ir
    restored = renumber_ir(ir, numbers, lowest_next_id)
    return replace(restored, next_identity_id=max(lowest_next_id, *(number + 1 for number in assigned_ids(restored))))


def find_repeated_number(ir: SchemaIR) -> str | None:
    """Return the label of a property whose original id is also the id of another property of its type, or None."""
    for identity in ir.type_identities:
        numbers = {number for _, number in identity.property_ids}
        for name, number in identity.property_ids:
            if number >= _SEPARATE and number - _SEPARATE in numbers:
                return f"{identity.kind}:{identity.name}.{name}"
    return None


def _types_by_id(ir: SchemaIR) -> dict[int, PropertyType]:
    return {
        ir.property_id(declared_type.kind, declared_type.name, definition.name): definition.type
        for declared_type in catalog_types(ir.catalog)
        for definition in declared_type.properties
    }
