"""A schema with identity: its shape, and the permanent ids of its types and properties.

Owns the record that a graph stores of its accepted schema, its JSON form and its hash. `identity`
assigns the ids and `ir_reading` reads records back; nothing here decides either.
"""

from functools import cached_property
from typing import Any

from omnigraph.record import record

from .catalog import (
    Catalog,
    Check,
    Constraint,
    Edge,
    Index,
    Interface,
    Node,
    Property,
    Range,
    TypeKind,
)
from .shape import Json, bound_json, columns_of, json_hash, note_json, notes_json, type_json

IR_VERSION = 2
KINDS: tuple[TypeKind, ...] = ("interface", "node", "edge")
SYSTEM_FIELDS: dict[TypeKind, tuple[str, ...]] = {
    "interface": (),
    "node": ("id",),
    "edge": ("id", "src", "dst"),
}

AnyType = Interface | Node | Edge


@record
class TypeIdentity:
    """The ids of one type: its own, that of its table, and those of its properties by name.

    An interface has no table and therefore no incarnation id.
    """

    kind: TypeKind
    name: str
    type_id: int
    table_incarnation_id: int | None
    properties: tuple[tuple[str, int], ...] = ()


@record(slots=False)
class SchemaIR:
    """An accepted schema: its canonical catalog and the identity of all its parts.

    `identity_domain` is the ULID generated once per graph; ids below `next_identity_id` are used.
    """

    domain: str
    next_identity_id: int
    catalog: Catalog
    types: tuple[TypeIdentity, ...]

    @cached_property
    def _types(self) -> dict[tuple[TypeKind, str], TypeIdentity]:
        return {(one.kind, one.name): one for one in self.types}

    @cached_property
    def _properties(self) -> dict[tuple[TypeKind, str], dict[str, int]]:
        return {(one.kind, one.name): dict(one.properties) for one in self.types}

    def identity(self, kind: TypeKind, name: str) -> TypeIdentity:
        """Return the ids of the type with this kind and name."""
        return self._types[kind, name]

    def type_id(self, kind: TypeKind, name: str) -> int:
        """Return the stable id of a type."""
        return self._types[kind, name].type_id

    def property_id(self, kind: TypeKind, type_name: str, name: str) -> int:
        """Return the stable id of a property."""
        return self._properties[kind, type_name][name]

    def to_json(self) -> Json:
        """Return the record as plain JSON values in canonical order."""
        return {
            "ir_version": IR_VERSION,
            "schema_identity_domain": self.domain,
            "next_identity_id": self.next_identity_id,
            "interfaces": [_interface(self, one) for one in self.catalog.interfaces],
            "nodes": [_node(self, one) for one in self.catalog.nodes],
            "edges": [_edge(self, one) for one in self.catalog.edges],
        }

    @classmethod
    def from_json(cls, record: Any) -> "SchemaIR":
        """Return the schema of a record; raise `IdentityError` for an unsound record."""
        from .ir_reading import read_ir

        return read_ir(record)


def ir_hash(ir: SchemaIR) -> str:
    """Return the hash of a schema including its identity."""
    return json_hash(ir.to_json())


def key_order(ir: SchemaIR, node: str) -> tuple[str, ...]:
    """Return the key columns of a node type ordered by property id, which no rename changes.

    Empty for a type without `@key`.
    """
    found = ir.catalog.node(node)
    columns = found.key if found is not None else None
    return tuple(sorted(columns or (), key=lambda name: ir.property_id("node", node, name)))


def types_of(catalog: Catalog) -> tuple[AnyType, ...]:
    """Return every type of a catalog: interfaces, nodes, edges, each in name order."""
    return (*catalog.interfaces, *catalog.nodes, *catalog.edges)


def _interface(ir: SchemaIR, one: Interface) -> Json:
    properties = [_property(ir, one, p) for p in one.properties]
    return {"type_id": ir.type_id("interface", one.name), "name": one.name} | {
        "properties": properties
    }


def _node(ir: SchemaIR, one: Node) -> Json:
    return {
        **_head(ir, one),
        "annotations": [note_json(note) for note in one.notes],
        "implements": [_type_reference(ir, "interface", name) for name in one.implements],
        "properties": [_property(ir, one, p) for p in one.properties],
        "constraints": [_constraint(ir, one, c) for c in one.constraints],
    }


def _edge(ir: SchemaIR, one: Edge) -> Json:
    return {
        **_head(ir, one),
        "from_type": _type_reference(ir, "node", one.source),
        "to_type": _type_reference(ir, "node", one.target),
        "cardinality": {"min": one.low, "max": one.high},
        "annotations": [note_json(note) for note in one.notes],
        "properties": [_property(ir, one, p) for p in one.properties],
        "constraints": [_constraint(ir, one, c) for c in one.constraints],
    }


def _head(ir: SchemaIR, one: Node | Edge) -> Json:
    known = ir.identity(one.kind, one.name)
    numbers = {"type_id": known.type_id, "table_incarnation_id": known.table_incarnation_id}
    return numbers | {"name": one.name}


def _type_reference(ir: SchemaIR, kind: TypeKind, name: str) -> Json:
    return {"type_id": ir.type_id(kind, name), "name": name}


def _property(ir: SchemaIR, owner: AnyType, one: Property) -> Json:
    embed = None
    if one.embed is not None:
        embed = {"source": _field(ir, owner, one.embed.source), "model": one.embed.model}
    return {
        "property_id": ir.property_id(owner.kind, owner.name, one.name),
        "name": one.name,
        "type": type_json(one.type),
        "annotations": notes_json(one),
        "constraints": list(one.marks),
        "embed": embed,
        "declared_directly": one.declared_directly,
        "satisfies": [_satisfied(ir, *pair) for pair in one.satisfies],
    }


def _satisfied(ir: SchemaIR, interface: str, name: str) -> Json:
    return {
        "interface": _type_reference(ir, "interface", interface),
        "property": {"property_id": ir.property_id("interface", interface, name), "name": name},
    }


def _field(ir: SchemaIR, owner: AnyType, name: str) -> Json:
    if owner.property(name) is None and name in SYSTEM_FIELDS[owner.kind]:
        return {"kind": "system", "name": name}
    if owner.property(name) is None and owner.kind == "interface":
        return {"kind": "deferred", "name": name}  # each implementing node has its own property
    number = ir.property_id(owner.kind, owner.name, name)
    return {"kind": "property", "property_id": number, "name": name}


def _constraint(ir: SchemaIR, owner: AnyType, one: Constraint) -> Json:
    fields = [_field(ir, owner, name) for name in columns_of(one)]
    kind = {"kind": type(one).__name__.lower()}
    match one:
        case Range(_, low, high):
            return kind | {"field": fields[0], "min": bound_json(low), "max": bound_json(high)}
        case Check(_, pattern):
            return kind | {"field": fields[0], "pattern": pattern}
        case Index(_, options) if options:
            return kind | {"fields": fields, "options": dict(options)}
    return kind | {"fields": fields}
