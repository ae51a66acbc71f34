"""Look up the node type or interface that a node set is built on."""

from omnigraph.lang.schema.catalog import Catalog, InterfaceType, NodeType
from omnigraph.lang.schema.type_names import type_names, unknown_type_error
from omnigraph.values.name_rules import require_text


def require_node_type(catalog: Catalog, type_name: str) -> NodeType | InterfaceType:
    """Return the node type or interface with the given name. Raise an unknown-type error if there is none."""
    require_text(type_name, "type")
    node_type = catalog.node(type_name) or catalog.interface(type_name)
    if node_type is None:
        interface_names = [interface.name for interface in catalog.interfaces]
        known_names = [*type_names(catalog, "node"), *interface_names]
        raise unknown_type_error(type_name, known_names, "node")
    return node_type
