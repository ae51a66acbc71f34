"""An accepted schema, with its shape and the permanent ids of its types and properties.

A graph stores its accepted schema as a `SchemaIR` record. This module also defines the record's JSON form and hash.
`assign_identity` assigns the ids, and `ir_reading` reads records back.
"""

from typing import Any

from omnigraph.records.cached_property import cached_property
from omnigraph.records.frozen import record

from .canonical_shape import (
    JsonObject,
    annotation_json,
    annotations_json,
    bound_json,
    constraint_columns,
    hash_json,
    type_json,
)
from .catalog import (
    ENDPOINT_COLUMNS,
    Catalog,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    NodeType,
    PropertyDefinition,
    Range,
    TypeKind,
)

IR_VERSION = 2
TYPE_KINDS: tuple[TypeKind, ...] = ("interface", "node", "edge")
SYSTEM_FIELDS: dict[TypeKind, tuple[str, ...]] = {"interface": (), "node": ("id",), "edge": ("id", "src", "dst")}

CatalogType = InterfaceType | NodeType | EdgeType


@record
class TypeIdentity:
    """A type's ids: its type id, the id of its table (`table_incarnation_id`), and its property ids keyed by name.

    An interface has no table, so its `table_incarnation_id` is None.
    """

    kind: TypeKind
    name: str
    type_id: int
    table_incarnation_id: int | None
    property_ids: tuple[tuple[str, int], ...] = ()


@record(slots=False)
class SchemaIR:
    """An accepted schema, with its canonical catalog and the ids of its types, tables and properties.

    `identity_domain` is a ULID that is generated once per graph. `next_identity_id` is greater than every assigned id.
    """

    identity_domain: str
    next_identity_id: int
    catalog: Catalog
    type_identities: tuple[TypeIdentity, ...]

    @cached_property
    def _identity_by_type(self) -> dict[tuple[TypeKind, str], TypeIdentity]:
        return {(identity.kind, identity.name): identity for identity in self.type_identities}

    @cached_property
    def _property_ids_by_type(self) -> dict[tuple[TypeKind, str], dict[str, int]]:
        return {(identity.kind, identity.name): dict(identity.property_ids) for identity in self.type_identities}

    def identity(self, kind: TypeKind, type_name: str) -> TypeIdentity:
        """Return the ids of the type with this kind and name."""
        return self._identity_by_type[kind, type_name]

    def type_id(self, kind: TypeKind, type_name: str) -> int:
        """Return the stable id of a type."""
        return self._identity_by_type[kind, type_name].type_id

    def property_id(self, kind: TypeKind, type_name: str, property_name: str) -> int:
        """Return the stable id of a property."""
        return self._property_ids_by_type[kind, type_name][property_name]

    def to_json(self) -> JsonObject:
        """Return the record as plain JSON values, in canonical order."""
        return {
            "ir_version": IR_VERSION,
            "schema_identity_domain": self.identity_domain,
            "next_identity_id": self.next_identity_id,
            "interfaces": [_interface_record(self, declared_type) for declared_type in self.catalog.interfaces],
            "nodes": [_node_record(self, declared_type) for declared_type in self.catalog.nodes],
            "edges": [_edge_record(self, declared_type) for declared_type in self.catalog.edges],
        }

    @classmethod
    def from_json(cls, ir_json: Any) -> "SchemaIR":
        """Return the schema stored in a record, or raise `IdentityError` if the record is invalid."""
        from .ir_reading import read_ir

        return read_ir(ir_json)


def hash_ir(ir: SchemaIR) -> str:
    """Return a hash of a schema, including its ids."""
    return hash_json(ir.to_json())


def assigned_ids(ir: SchemaIR) -> list[int]:
    """Return every id that a type, table or property uses."""
    ids: list[int] = []
    for identity in ir.type_identities:
        ids.append(identity.type_id)
        ids += [] if identity.table_incarnation_id is None else [identity.table_incarnation_id]
        ids += [property_id for _, property_id in identity.property_ids]
    return ids


def ordered_key_columns(ir: SchemaIR, type_name: str, kind: TypeKind = "node") -> tuple[str, ...]:
    """Return the key columns in the order in which their values appear in an id.

    `src` and `dst` come first, then properties by property id, so renames do not change the order. The result is empty
    if the type has no `@key`.
    """
    table_type = ir.catalog.edge(type_name) if kind == "edge" else ir.catalog.node(type_name)
    key_columns = table_type.key or () if table_type is not None else ()
    endpoints = tuple(column for column in ENDPOINT_COLUMNS if kind == "edge" and column in key_columns)
    properties = (column for column in key_columns if column not in endpoints)
    return endpoints + tuple(sorted(properties, key=lambda column: ir.property_id(kind, type_name, column)))


def catalog_types(catalog: Catalog) -> tuple[CatalogType, ...]:
    """Return every type in a catalog: interfaces, nodes and edges, each in name order."""
    return (*catalog.interfaces, *catalog.nodes, *catalog.edges)


def _interface_record(ir: SchemaIR, interface: InterfaceType) -> JsonObject:
    property_records = [_property_record(ir, interface, definition) for definition in interface.properties]
    return {"type_id": ir.type_id("interface", interface.name), "name": interface.name} | {
        "properties": property_records
    }


def _node_record(ir: SchemaIR, node_type: NodeType) -> JsonObject:
    return {
        **_identity_members(ir, node_type),
        "annotations": [annotation_json(annotation) for annotation in node_type.annotations],
        "implements": [_type_reference(ir, "interface", interface_name) for interface_name in node_type.implements],
        "properties": [_property_record(ir, node_type, definition) for definition in node_type.properties],
        "constraints": [_constraint_record(ir, node_type, constraint) for constraint in node_type.constraints],
    }


def _edge_record(ir: SchemaIR, edge_type: EdgeType) -> JsonObject:
    return {
        **_identity_members(ir, edge_type),
        "from_type": _type_reference(ir, "node", edge_type.source),
        "to_type": _type_reference(ir, "node", edge_type.target),
        "cardinality": {"min": edge_type.min_cardinality, "max": edge_type.max_cardinality},
        "annotations": [annotation_json(annotation) for annotation in edge_type.annotations],
        "properties": [_property_record(ir, edge_type, definition) for definition in edge_type.properties],
        "constraints": [_constraint_record(ir, edge_type, constraint) for constraint in edge_type.constraints],
    }


def _identity_members(ir: SchemaIR, table_type: NodeType | EdgeType) -> JsonObject:
    identity = ir.identity(table_type.kind, table_type.name)
    id_members = {"type_id": identity.type_id, "table_incarnation_id": identity.table_incarnation_id}
    return id_members | {"name": table_type.name}


def _type_reference(ir: SchemaIR, kind: TypeKind, type_name: str) -> JsonObject:
    return {"type_id": ir.type_id(kind, type_name), "name": type_name}


def _property_record(ir: SchemaIR, owner: CatalogType, definition: PropertyDefinition) -> JsonObject:
    embed_record = None
    if definition.embed is not None:
        embed_record = {"source": _field_reference(ir, owner, definition.embed.source), "model": definition.embed.model}
    return {
        "property_id": ir.property_id(owner.kind, owner.name, definition.name),
        "name": definition.name,
        "type": type_json(definition.type),
        "annotations": annotations_json(definition),
        "constraints": list(definition.inline_constraints),
        "embed": embed_record,
        "declared_directly": definition.declared_directly,
        "satisfies": [_satisfied_record(ir, *satisfied_pair) for satisfied_pair in definition.satisfies],
    }


def _satisfied_record(ir: SchemaIR, interface_name: str, property_name: str) -> JsonObject:
    return {
        "interface": _type_reference(ir, "interface", interface_name),
        "property": {"property_id": ir.property_id("interface", interface_name, property_name), "name": property_name},
    }


def _field_reference(ir: SchemaIR, owner: CatalogType, column_name: str) -> JsonObject:
    if owner.property(column_name) is None and column_name in SYSTEM_FIELDS[owner.kind]:
        return {"kind": "system", "name": column_name}
    if owner.property(column_name) is None and owner.kind == "interface":
        return {"kind": "deferred", "name": column_name}  # each implementing node has its own property
    property_id = ir.property_id(owner.kind, owner.name, column_name)
    return {"kind": "property", "property_id": property_id, "name": column_name}


def _constraint_record(ir: SchemaIR, owner: CatalogType, constraint: Constraint) -> JsonObject:
    field_references = [_field_reference(ir, owner, column_name) for column_name in constraint_columns(constraint)]
    kind_member = {"kind": type(constraint).__name__.lower()}
    match constraint:
        case Range(_, low, high):
            return kind_member | {"field": field_references[0], "min": bound_json(low), "max": bound_json(high)}
        case Check(_, pattern):
            return kind_member | {"field": field_references[0], "pattern": pattern}
        case Index(_, options) if options:
            return kind_member | {"fields": field_references, "options": dict(options)}
    return kind_member | {"fields": field_references}
