"""Types of a schema by name; an unknown name is refused with a suggestion."""

from omnigraph.errors import InputError
from omnigraph.lang.schema.catalog import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values.names import quote_name, require_text


def require_node_type(catalog: Catalog, type_name: str) -> NodeType | InterfaceType:
    """Return the node type or interface of that name."""
    require_text(type_name, "type")
    node_type = catalog.node(type_name) or catalog.interface(type_name)
    if node_type is None:
        known_names = [
            *(declared_type.name for declared_type in catalog.nodes),
            *(declared_type.name for declared_type in catalog.interfaces),
        ]
        message = f"unknown node type {quote_name(type_name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(type_name, known_names))
    return node_type


def require_edge_type(catalog: Catalog, type_name: str) -> EdgeType:
    """Return the edge type of that name, in any case."""
    edge_type = catalog.edge_ignoring_case(require_text(type_name, "type"))
    if edge_type is None:
        known_names = [declared_type.name for declared_type in catalog.edges]
        message = f"unknown edge type {quote_name(type_name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(type_name, known_names))
    return edge_type


def require_entity_type(catalog: Catalog, type_name: str) -> NodeType | EdgeType:
    """Return the node or edge type of that name; a node type takes precedence."""
    require_text(type_name, "type")
    entity_type = catalog.node(type_name) or catalog.edge(type_name)
    if entity_type is None:
        known_names = [
            *(declared_type.name for declared_type in catalog.nodes),
            *(declared_type.name for declared_type in catalog.edges),
        ]
        message = f"unknown type {quote_name(type_name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(type_name, known_names))
    return entity_type
