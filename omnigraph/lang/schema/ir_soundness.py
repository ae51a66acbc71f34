"""Check that an accepted schema is sound: ids are unique, references resolve, and interfaces are satisfied.

Every `SchemaIR` must satisfy these rules, no matter how it was created. An unsound schema is rejected, never repaired.
"""

import re
from collections.abc import Iterable, Iterator

from .canonical_shape import constraint_columns
from .catalog import Catalog, NodeType, PropertyDefinition
from .ir import SYSTEM_FIELDS, CatalogType, SchemaIR, catalog_types

_ULID_PATTERN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
_ID_LIMIT = 2**64


def find_unsoundness(ir: SchemaIR) -> str | None:
    """Return the first reason why an accepted schema is not sound, or None if it is sound."""
    for rule in (_domain_faults, _duplicate_name_faults, _id_faults, _reference_faults, _provenance_faults):
        reason = next(iter(rule(ir)), None)
        if reason is not None:
            return reason
    return None


def _domain_faults(ir: SchemaIR) -> Iterator[str]:
    if not _ULID_PATTERN.match(ir.identity_domain):
        yield f"schema_identity_domain '{ir.identity_domain}' is not a ULID"


def _duplicate_name_faults(ir: SchemaIR) -> Iterator[str]:
    yield from _find_duplicates(f"{identity.kind}:{identity.name}" for identity in ir.type_identities)
    for identity in ir.type_identities:
        yield from _find_duplicates(
            f"{identity.kind}:{identity.name}.{property_name}" for property_name, _ in identity.property_ids
        )


def _find_duplicates(labels: Iterable[str]) -> Iterator[str]:
    seen_labels: set[str] = set()
    for label in labels:
        if label in seen_labels:
            yield f"{label} is declared twice"
        seen_labels.add(label)


def _id_faults(ir: SchemaIR) -> Iterator[str]:
    if not 0 < ir.next_identity_id < _ID_LIMIT:
        yield f"next_identity_id {ir.next_identity_id} is not a positive 64-bit number"
    owner_by_id: dict[int, str] = {}
    for label, assigned_id in _assigned_ids(ir):
        if not 0 < assigned_id < ir.next_identity_id:
            yield f"{label}: id {assigned_id} is not between 1 and next_identity_id"
        if assigned_id in owner_by_id:
            yield f"{label}: id {assigned_id} already belongs to {owner_by_id[assigned_id]}"
        owner_by_id[assigned_id] = label


def _assigned_ids(ir: SchemaIR) -> Iterator[tuple[str, int]]:
    for identity in ir.type_identities:
        label = f"{identity.kind}:{identity.name}"
        yield label, identity.type_id
        if identity.table_incarnation_id is not None:
            yield f"the table for {label}", identity.table_incarnation_id
        for property_name, property_id in identity.property_ids:
            yield f"{label}.{property_name}", property_id


def _reference_faults(ir: SchemaIR) -> Iterator[str]:
    for edge in ir.catalog.edges:
        for endpoint_name in (edge.source, edge.target):
            if ir.catalog.node(endpoint_name) is None:
                yield f"edge:{edge.name}: endpoint node:{endpoint_name} does not exist"
    for node in ir.catalog.nodes:
        for interface_name in node.implements:
            if ir.catalog.interface(interface_name) is None:
                yield f"node:{node.name}: interface:{interface_name} does not exist"
    for declared_type in catalog_types(ir.catalog):
        yield from _missing_field_faults(declared_type)


def _missing_field_faults(owner: CatalogType) -> Iterator[str]:
    constraints = getattr(owner, "constraints", ())
    constrained_columns = [column_name for constraint in constraints for column_name in constraint_columns(constraint)]
    property_names = {definition.name for definition in owner.properties}
    system_columns = set(SYSTEM_FIELDS[owner.kind])
    embed_sources = [definition.embed.source for definition in owner.properties if definition.embed is not None]
    if owner.kind == "interface":
        embed_sources = []  # the source may be a property of the implementing node
    for column_name in (
        *(constrained_column for constrained_column in constrained_columns if constrained_column not in system_columns),
        *embed_sources,
    ):
        if column_name not in property_names:
            yield f"{owner.kind}:{owner.name}: property '{column_name}' does not exist"


def _provenance_faults(ir: SchemaIR) -> Iterator[str]:
    types_without_interfaces: tuple[CatalogType, ...] = (*ir.catalog.interfaces, *ir.catalog.edges)
    for declared_type in types_without_interfaces:
        for definition in declared_type.properties:
            if not definition.declared_directly or definition.satisfies:
                type_label = f"{declared_type.kind}:{declared_type.name}"
                yield f"{type_label}.{definition.name} cannot come from an interface"
    for node in ir.catalog.nodes:
        yield from _unsatisfied_interface_faults(ir.catalog, node)
        for definition in node.properties:
            yield from _origin_faults(ir.catalog, node, definition)


def _origin_faults(catalog: Catalog, node: NodeType, definition: PropertyDefinition) -> Iterator[str]:
    label = f"node:{node.name}.{definition.name}"
    if not definition.declared_directly and not definition.satisfies:
        yield f"{label} is neither declared nor inherited from an interface"
    for interface_name, interface_property in definition.satisfies:
        origin_interface = catalog.interface(interface_name)
        required_property = (
            origin_interface.property(interface_property)
            if origin_interface and interface_name in node.implements
            else None
        )
        if interface_property != definition.name or required_property is None:
            yield f"{label} cannot come from interface:{interface_name}.{interface_property}"


def _unsatisfied_interface_faults(catalog: Catalog, node: NodeType) -> Iterator[str]:
    for interface in filter(None, map(catalog.interface, node.implements)):
        for required_property in interface.properties:
            definition = node.property(required_property.name)
            satisfied_pair = (interface.name, required_property.name)
            if (
                definition is None
                or definition.type != required_property.type
                or satisfied_pair not in definition.satisfies
            ):
                property_label = f"{interface.name}.{required_property.name}"
                yield f"node:{node.name} does not satisfy interface:{property_label}"
