"""Schemas that grew out of a base, and what must hold for every merge of them."""

from collections.abc import Iterable

from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity, resolve_identity
from omnigraph.lang.schema.canonical_shape import canonicalize
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.ir import SchemaIR, catalog_types
from omnigraph.lang.schema.merge import SchemaConflict, SchemaMerge, SchemaVersion
from omnigraph.values import PropertyType

States = tuple[str, str | None, str | None, str | None]
DOMAIN = "01HZZZZZZZZZZZZZZZZZZZZZZZ"


def first_version(text: str) -> SchemaVersion:
    """Return the schema of a new graph."""
    return SchemaVersion(text, new_identity(compile_schema(text), DOMAIN))


def next_version(version: SchemaVersion, texts: Iterable[str]) -> SchemaVersion:
    """Return a schema after some changes."""
    for text in texts:
        version = SchemaVersion(text, resolve_identity(version.ir, compile_schema(text)).ir)
    return version


def catalog_of(text: str) -> Catalog:
    """Return the meaning of a schema."""
    return canonicalize(compile_schema(text))


def mirrored(conflict: SchemaConflict) -> States:
    """Return what a conflict must look like, apart from its subject, when the sides are swapped."""
    return conflict.kind, conflict.base, conflict.theirs, conflict.ours


def states(conflict: SchemaConflict) -> States:
    """Return a conflict without its subject."""
    return conflict.kind, conflict.base, conflict.ours, conflict.theirs


def assert_sound(base: SchemaVersion, ours: SchemaVersion, theirs: SchemaVersion, merge: SchemaMerge) -> None:
    """Assert what holds for every merge, with or without conflicts."""
    assert SchemaIR.from_json(merge.ir.to_json()) == merge.ir
    assert SchemaIR.from_json(merge.their_ir.to_json()) == merge.their_ir
    assert merge.their_ir.catalog == theirs.ir.catalog
    assert catalog_of(merge.source) == merge.ir.catalog
    assert merge.ir.next_identity_id >= max(ours.ir.next_identity_id, theirs.ir.next_identity_id)
    accepted_again = resolve_identity(merge.ir, compile_schema(merge.source))
    assert accepted_again.ir == merge.ir
    _assert_same_owner(ours.ir, merge.ir)
    _assert_same_owner(merge.their_ir, merge.ir)
    if not merge.conflicts:
        _assert_types_of_a_side(base.ir, ours.ir, merge)
    _assert_shared_ids_stay(base.ir, theirs.ir, merge.their_ir)


def _assert_same_owner(side: SchemaIR, merged: SchemaIR) -> None:
    """Equal ids belong to the same kind of thing: a type, a table, or a property of the same type."""
    side_roles, merged_roles = _roles(side), _roles(merged)
    for number in side_roles.keys() & merged_roles.keys():
        assert side_roles[number] == merged_roles[number]


def _assert_types_of_a_side(base: SchemaIR, ours: SchemaIR, merge: SchemaMerge) -> None:
    """What both sides added has the type that one of them gave it."""
    our_types, their_types, merged_types = (_property_types(ir) for ir in (ours, merge.their_ir, merge.ir))
    for number in our_types.keys() & their_types.keys() & merged_types.keys():
        if number >= base.next_identity_id:
            assert merged_types[number] in (our_types[number], their_types[number])


def _property_types(ir: SchemaIR) -> dict[int, PropertyType]:
    return {
        ir.property_id(declared_type.kind, declared_type.name, definition.name): definition.type
        for declared_type in catalog_types(ir.catalog)
        for definition in declared_type.properties
    }


def _roles(ir: SchemaIR) -> dict[int, tuple[object, ...]]:
    roles: dict[int, tuple[object, ...]] = {}
    for identity in ir.type_identities:
        roles[identity.type_id] = ("type", identity.kind)
        if identity.table_incarnation_id is not None:
            roles[identity.table_incarnation_id] = ("table", identity.type_id)
        roles |= {number: ("property", identity.type_id) for _, number in identity.property_ids}
    return roles


def _assert_shared_ids_stay(base: SchemaIR, theirs: SchemaIR, renumbered: SchemaIR) -> None:
    for before, after in zip(theirs.type_identities, renumbered.type_identities, strict=True):
        assert (before.kind, before.name) == (after.kind, after.name)
        old_numbers, new_numbers = dict(before.property_ids), dict(after.property_ids)
        for name, number in (*old_numbers.items(), ("", before.type_id)):
            if number < base.next_identity_id:
                assert number == (new_numbers[name] if name else after.type_id)
