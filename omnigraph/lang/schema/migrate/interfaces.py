"""Compare the interfaces of nodes before and after a migration.

A node's interfaces and the origin of its properties cannot be changed yet. An interface may be dropped if no remaining
node implements it.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import InterfaceType, NodeType, PropertyDefinition
from omnigraph.lang.schema.ir import CatalogType, SchemaIR

from .steps import MigrationStep, make_unsupported_change
from .type_pair import TypePair


def implements_steps(type_pair: TypePair) -> Iterator[MigrationStep]:
    """Yield an unsupported step if the node type implements different interfaces than before."""
    old_interfaces = _implemented_interfaces(type_pair.old_ir, type_pair.old_type)
    new_interfaces = _implemented_interfaces(type_pair.new_ir, type_pair.new_type)
    if old_interfaces == new_interfaces:
        return
    change_texts = [
        f"no longer implements {interface_name}"
        for interface_name in sorted(set(old_interfaces.values()) - {*new_interfaces.values()})
    ]
    change_texts += [
        f"now implements {interface_name}"
        for interface_name in sorted(set(new_interfaces.values()) - {*old_interfaces.values()})
    ]
    yield make_unsupported_change("OG-BC-102", type_pair.entity_label(), "; ".join(change_texts))


def origin_steps(
    type_pair: TypePair, old_definition: PropertyDefinition, new_definition: PropertyDefinition
) -> Iterator[MigrationStep]:
    """Yield an unsupported step if a property is now declared elsewhere or satisfies other interface properties."""
    if _implemented_interfaces(type_pair.old_ir, type_pair.old_type) != _implemented_interfaces(
        type_pair.new_ir, type_pair.new_type
    ):
        return  # the change to the list of interfaces has already been rejected
    old_origin = _satisfied_property_ids(type_pair.old_ir, old_definition)
    new_origin = _satisfied_property_ids(type_pair.new_ir, new_definition)
    if old_definition.declared_directly != new_definition.declared_directly:
        positions = ("in the node", "by an interface")
        old_position, new_position = positions if old_definition.declared_directly else reversed(positions)
        reason = f"was declared {old_position} and is now declared {new_position}"
        yield make_unsupported_change("OG-BC-103", type_pair.entity_label(new_definition.name), reason)
    elif old_origin != new_origin:
        gained_properties = {
            f"{interface_name}.{property_name}" for interface_name, property_name in new_definition.satisfies
        } - {f"{interface_name}.{property_name}" for interface_name, property_name in old_definition.satisfies}
        change = "now satisfies" if gained_properties else "no longer satisfies"
        lost_properties = {
            f"{interface_name}.{property_name}" for interface_name, property_name in old_definition.satisfies
        } - {f"{interface_name}.{property_name}" for interface_name, property_name in new_definition.satisfies}
        changed_properties = ", ".join(sorted(gained_properties or lost_properties))
        reason = f"{change} the interface property {changed_properties}"
        yield make_unsupported_change("OG-BC-103", type_pair.entity_label(new_definition.name), reason)


def remaining_nodes(old_ir: SchemaIR, new_ir: SchemaIR, interface: InterfaceType) -> tuple[str, ...]:
    """Return the node types in the old schema that implement an interface and are not dropped."""
    remaining_ids = {identity.type_id for identity in new_ir.type_identities}
    return tuple(
        node_type.name
        for node_type in old_ir.catalog.nodes
        if interface.name in node_type.implements and old_ir.type_id("node", node_type.name) in remaining_ids
    )


def _implemented_interfaces(ir: SchemaIR, declared_type: CatalogType) -> dict[int, str]:
    if not isinstance(declared_type, NodeType):
        return {}
    return {ir.type_id("interface", interface_name): interface_name for interface_name in declared_type.implements}


def _satisfied_property_ids(ir: SchemaIR, definition: PropertyDefinition) -> frozenset[int]:
    """Return the ids of the interface properties that a property satisfies."""
    return frozenset(ir.property_id("interface", *satisfied_pair) for satisfied_pair in definition.satisfies)
