"""Soundness of an accepted schema: unique ids, resolvable references, satisfied interfaces.

Owns the rules that hold for every `SchemaIR`, whatever it was read from. Never repairs anything.
"""

import re
from collections.abc import Iterable, Iterator

from .catalog import Catalog, Node, Property
from .ir import SYSTEM_FIELDS, AnyType, SchemaIR, types_of
from .shape import columns_of

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
_LIMIT = 2**64


def unsound(ir: SchemaIR) -> str | None:
    """Return the first reason why a schema with identity cannot be trusted, or None."""
    for rule in (_bad_domain, _bad_names, _bad_numbers, _bad_references, _bad_provenance):
        reason = next(iter(rule(ir)), None)
        if reason is not None:
            return reason
    return None


def _bad_domain(ir: SchemaIR) -> Iterator[str]:
    if not _ULID.match(ir.domain):
        yield f"schema_identity_domain '{ir.domain}' is not a ULID"


def _bad_names(ir: SchemaIR) -> Iterator[str]:
    yield from _twice(f"{one.kind}:{one.name}" for one in ir.types)
    for one in ir.types:
        yield from _twice(f"{one.kind}:{one.name}.{name}" for name, _ in one.properties)


def _twice(entities: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for entity in entities:
        if entity in seen:
            yield f"{entity} is declared twice"
        seen.add(entity)


def _bad_numbers(ir: SchemaIR) -> Iterator[str]:
    if not 0 < ir.next_identity_id < _LIMIT:
        yield f"next_identity_id {ir.next_identity_id} is not a positive 64-bit number"
    owners: dict[int, str] = {}
    for entity, number in _numbers(ir):
        if not 0 < number < ir.next_identity_id:
            yield f"{entity}: id {number} is not between 1 and next_identity_id"
        if number in owners:
            yield f"{entity}: id {number} already belongs to {owners[number]}"
        owners[number] = entity


def _numbers(ir: SchemaIR) -> Iterator[tuple[str, int]]:
    for one in ir.types:
        entity = f"{one.kind}:{one.name}"
        yield entity, one.type_id
        if one.table_incarnation_id is not None:
            yield f"the table of {entity}", one.table_incarnation_id
        for name, number in one.properties:
            yield f"{entity}.{name}", number


def _bad_references(ir: SchemaIR) -> Iterator[str]:
    for edge in ir.catalog.edges:
        for end in (edge.source, edge.target):
            if ir.catalog.node(end) is None:
                yield f"edge:{edge.name}: endpoint node:{end} does not exist"
    for node in ir.catalog.nodes:
        for name in node.implements:
            if ir.catalog.interface(name) is None:
                yield f"node:{node.name}: interface:{name} does not exist"
    for one in types_of(ir.catalog):
        yield from _bad_fields(one)


def _bad_fields(owner: AnyType) -> Iterator[str]:
    constraints = getattr(owner, "constraints", ())
    named = [name for constraint in constraints for name in columns_of(constraint)]
    known = {one.name for one in owner.properties}
    system = set(SYSTEM_FIELDS[owner.kind])
    sources = [one.embed.source for one in owner.properties if one.embed is not None]
    if owner.kind == "interface":
        sources = []  # the source may be a property of the implementing node
    for name in (*(n for n in named if n not in system), *sources):
        if name not in known:
            yield f"{owner.kind}:{owner.name}: property '{name}' does not exist"


def _bad_provenance(ir: SchemaIR) -> Iterator[str]:
    rootless: tuple[AnyType, ...] = (*ir.catalog.interfaces, *ir.catalog.edges)
    for one in rootless:
        for found in one.properties:
            if not found.declared_directly or found.satisfies:
                yield f"{one.kind}:{one.name}.{found.name} cannot come from an interface"
    for node in ir.catalog.nodes:
        yield from _unkept_interfaces(ir.catalog, node)
        for found in node.properties:
            yield from _bad_origin(ir.catalog, node, found)


def _bad_origin(catalog: Catalog, node: Node, found: Property) -> Iterator[str]:
    entity = f"node:{node.name}.{found.name}"
    if not found.declared_directly and not found.satisfies:
        yield f"{entity} is neither declared nor inherited from an interface"
    for interface, name in found.satisfies:
        origin = catalog.interface(interface)
        wanted = origin.property(name) if origin and interface in node.implements else None
        if name != found.name or wanted is None:
            yield f"{entity} cannot come from interface:{interface}.{name}"


def _unkept_interfaces(catalog: Catalog, node: Node) -> Iterator[str]:
    for interface in filter(None, map(catalog.interface, node.implements)):
        for wanted in interface.properties:
            found = node.property(wanted.name)
            origin = (interface.name, wanted.name)
            if found is None or found.type != wanted.type or origin not in found.satisfies:
                yield f"node:{node.name} does not satisfy interface:{interface.name}.{wanted.name}"
