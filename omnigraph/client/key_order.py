"""The order of the members of composite keys, as a server sends it.

An id contains the values of a composite key in the order of the permanent property ids. A schema that the client
compiles from text has other property ids, so this module puts them in the order that the server sends. It never
resolves keys.
"""

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.lang.schema.ir import SchemaIR, TypeIdentity

KeyColumns = tuple[str, ...]  # the kind and name of a type, then its key columns


def order_keys(ir: SchemaIR, keys: Iterable[KeyColumns]) -> SchemaIR:
    """Return a schema whose `ordered_key_columns` have a given order.

    >>> from omnigraph.client.handle import compile_ir
    >>> from omnigraph.lang.schema.ir import ordered_key_columns
    >>> ir = compile_ir("node Room { house: String  number: I32  @key(house, number) }")
    >>> ordered_key_columns(order_keys(ir, [("node", "Room", "number", "house")]), "Room")
    ('number', 'house')
    """
    columns_by_type = {(kind, type_name): columns for kind, type_name, *columns in keys}
    identities = (
        _order_columns(identity, columns_by_type.get((identity.kind, identity.name), []))
        for identity in ir.type_identities
    )
    return replace(ir, type_identities=tuple(identities))


def _order_columns(identity: TypeIdentity, key_columns: list[str]) -> TypeIdentity:
    """Return a type's ids, with the property ids of its key exchanged among the key columns."""
    property_ids = dict(identity.property_ids)
    members = [column for column in key_columns if column in property_ids]  # an edge's endpoints have no property id
    property_ids |= zip(members, sorted(property_ids[member] for member in members), strict=True)
    return replace(identity, property_ids=tuple(property_ids.items()))
