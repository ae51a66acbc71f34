"""Numbers of their additions: which of our additions each one equals, or which new id it gets.

Derived ids mean the same thing on every branch. Earlier releases assigned new ids from a counter that every branch had,
so such ids mean different things on the two sides: this module pairs additions with the same owner and name, and moves
all others above every id in use.
"""

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.lang.schema.derived_ids import is_derived
from omnigraph.lang.schema.ir import SchemaIR, TypeIdentity, assigned_ids, catalog_types
from omnigraph.lang.schema.migrate.properties import can_hold_values
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType


def renumber_ir(ir: SchemaIR, new_numbers: Mapping[int, int], next_identity_id: int) -> SchemaIR:
    """Return the same schema with some ids replaced; ids without a new number stay."""

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


def match_additions(base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> dict[int, int]:
    """Return the new number of each id that their side assigned and that has to change.

    An addition of the same kind and name on both sides has our number. If we assigned no id, theirs stay.
    """
    first_new_id = base.next_identity_id
    if ours.next_identity_id == first_new_id:
        return {}
    our_types = {identity.type_id: identity for identity in ours.type_identities}
    our_new_types = {
        (identity.kind, identity.name): identity for identity in our_types.values() if identity.type_id >= first_new_id
    }
    numbers: dict[int, int] = {}
    for identity in theirs.type_identities:
        if identity.type_id < first_new_id:
            our_identity = our_types.get(identity.type_id)
        else:
            our_identity = our_new_types.get((identity.kind, identity.name))
        if our_identity is not None:
            numbers |= _pair_identities(our_identity, identity, first_new_id)
    first_free_id = max(ours.next_identity_id, theirs.next_identity_id)
    numbers |= _number_unpaired(numbers, theirs, first_new_id, first_free_id)
    return {
        old_number: number
        for old_number, number in numbers.items()
        if old_number != number and not is_derived(old_number)
    }


def _pair_identities(ours: TypeIdentity, theirs: TypeIdentity, first_new_id: int) -> dict[int, int]:
    numbers: dict[int, int] = {}
    if theirs.type_id >= first_new_id:
        numbers[theirs.type_id] = ours.type_id
        if theirs.table_incarnation_id is not None and ours.table_incarnation_id is not None:
            numbers[theirs.table_incarnation_id] = ours.table_incarnation_id
    our_new_properties = {name: number for name, number in ours.property_ids if number >= first_new_id}
    for property_name, property_id in theirs.property_ids:
        if property_id >= first_new_id and property_name in our_new_properties:
            numbers[property_id] = our_new_properties[property_name]
    return numbers


def _number_unpaired(
    numbers: Mapping[int, int], theirs: SchemaIR, first_new_id: int, first_free_id: int
) -> dict[int, int]:
    unpaired_ids = [
        assigned_id
        for assigned_id in assigned_ids(theirs)
        if assigned_id >= first_new_id and assigned_id not in numbers
    ]
    return {assigned_id: first_free_id + position for position, assigned_id in enumerate(sorted(unpaired_ids))}


@record
class SeparatedNumbers:
    """New numbers for paired additions that turned out to be different: in the merged schema, and in theirs."""

    merged: Mapping[int, int]
    theirs: Mapping[int, int]


def separate_numbers(merged: SchemaIR, ours: SchemaIR, theirs: SchemaIR, base: SchemaIR) -> SeparatedNumbers:
    """Return new numbers for properties that both sides added with types of which only one was kept.

    Values of the other type cannot be stored in the merged property, so the two must not share a number.
    """
    our_types, their_types, base_ids = _types_by_id(ours), _types_by_id(theirs), set(assigned_ids(base))
    next_id = max(merged.next_identity_id, theirs.next_identity_id)
    numbers = SeparatedNumbers({}, {})
    for property_id, merged_type in sorted(_types_by_id(merged).items()):
        our_type, their_type = our_types.get(property_id), their_types.get(property_id)
        if property_id in base_ids or our_type is None or their_type is None:
            continue
        fits_ours, fits_theirs = can_hold_values(merged_type, our_type), can_hold_values(merged_type, their_type)
        if fits_ours and fits_theirs:
            continue
        changed = {property_id: next_id}
        numbers = SeparatedNumbers(
            numbers.merged if fits_ours else {**numbers.merged, **changed}, {**numbers.theirs, **changed}
        )
        next_id += 1
    return numbers


def _types_by_id(ir: SchemaIR) -> dict[int, PropertyType]:
    return {
        ir.property_id(declared_type.kind, declared_type.name, definition.name): definition.type
        for declared_type in catalog_types(ir.catalog)
        for definition in declared_type.properties
    }
