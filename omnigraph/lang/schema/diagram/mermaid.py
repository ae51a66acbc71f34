"""Draw a schema as a Mermaid class diagram, which GitHub, GitLab and many editors can render.

Node types and interfaces become classes, and edge types become arrows. In Mermaid, a parenthesis marks a member as a
method and a brace ends the class, so types are written with square brackets.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Catalog, EdgeType, InterfaceType, PropertyDefinition
from omnigraph.lang.schema.declared_order import DeclaredOrder
from omnigraph.values import PropertyType

from .shapes import short_text

_MAX_ENUM_LENGTH = 40
_INDENT = "    "


def draw_mermaid(catalog: Catalog, order: DeclaredOrder) -> str:
    """Return the diagram as Mermaid text."""
    lines = ["classDiagram", f"{_INDENT}direction LR"]
    for interface in catalog.interfaces:
        lines += _class_lines(interface.name, _interface_members(interface))
    for node in order.sort_types("node", catalog.nodes):
        key = node.key or ()
        lines += _class_lines(node.name, [_member(prop, prop.name in key) for prop in order.sort_properties(node)])
        lines += [f"{_INDENT}{interface_name} <|.. {node.name}" for interface_name in node.implements]
    lines += [_edge_line(edge, order) for edge in order.sort_types("edge", catalog.edges)]
    return "\n".join(lines)


def _class_lines(type_name: str, members: list[str]) -> Iterator[str]:
    if not members:
        yield f"{_INDENT}class {type_name}"
        return
    yield f"{_INDENT}class {type_name} {{"
    yield from (f"{_INDENT * 2}{member}" for member in members)
    yield f"{_INDENT}}}"


def _interface_members(interface: InterfaceType) -> list[str]:
    return ["<<interface>>", *(_member(prop, "key" in prop.inline_constraints) for prop in interface.properties)]


def _member(prop: PropertyDefinition, is_key: bool) -> str:
    return f"{prop.name}: {_type_text(prop.type)}{' @key' if is_key else ''}"


def _type_text(property_type: PropertyType) -> str:
    suffix = "?" if property_type.nullable else ""
    if property_type.enum_values is not None:
        return f"enum[{short_text(' | '.join(property_type.enum_values), _MAX_ENUM_LENGTH)}]{suffix}"
    if property_type.is_vector:
        return f"Vector[{property_type.vector_dim}]{suffix}"
    return property_type.display()


def _edge_line(edge: EdgeType, order: DeclaredOrder) -> str:
    properties = ", ".join(f"{prop.name} {_type_text(prop.type)}" for prop in order.sort_properties(edge))
    label = f"{edge.name} [{properties}]" if properties else edge.name
    return f"{_INDENT}{edge.source} -->{_cardinality(edge)} {edge.target} : {label}"


def _cardinality(edge: EdgeType) -> str:
    if (edge.min_cardinality, edge.max_cardinality) == (0, None):
        return ""
    return f' "{edge.min_cardinality}..{"*" if edge.max_cardinality is None else edge.max_cardinality}"'
