"""A schema's types and properties as plain data, as returned by `schema["Person"]`.

Names and order are the same as in the schema file. The objects are immutable and do not refer to a graph.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import ClassVar

from omnigraph.lang.schema.catalog import Catalog, Constraint, EdgeType, NodeType, PropertyDefinition, TypeKind
from omnigraph.lang.schema.declared_order import DeclaredOrder


@dataclass(frozen=True, slots=True)
class PropertyInfo:
    """A property, with its name, its type as written but without `?`, and whether it may be null.

    `annotation_items` contains the name and argument of each annotation. A missing argument is None.

    >>> from omnigraph import Schema
    >>> age = Schema("node Person { name: String @key  age: I32? @index }")["Person"].properties["age"]
    >>> age.type, age.nullable, dict(age.annotations), str(age)
    ('I32', True, {'index': None}, 'age: I32?')
    """

    name: str
    type: str
    nullable: bool
    annotation_items: tuple[tuple[str, str | None], ...] = ()

    @property
    def annotations(self) -> Mapping[str, str | None]:
        """The annotations, keyed by names such as `key`, `default` and `description`."""
        return MappingProxyType(dict(self.annotation_items))

    @property
    def description(self) -> str | None:
        """The text of `@description`, or None."""
        return self.annotations.get("description")

    @property
    def default(self) -> str | None:
        """The value of `@default` as written, or None."""
        return self.annotations.get("default")

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'?' if self.nullable else ''}"


class _TypeInfo:
    """The members that node types and edge types have in common."""

    __slots__ = ()
    source: str
    property_items: tuple[PropertyInfo, ...]
    annotation_items: tuple[tuple[str, str | None], ...]

    @property
    def properties(self) -> Mapping[str, PropertyInfo]:
        """The properties, keyed by name."""
        return MappingProxyType({declared.name: declared for declared in self.property_items})

    @property
    def annotations(self) -> Mapping[str, str | None]:
        """The type's annotations, keyed by name."""
        return MappingProxyType(dict(self.annotation_items))

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class NodeTypeInfo(_TypeInfo):
    """A node type in a schema.

    `key` lists the `@key` properties in name order. It is empty if the type has no key. `constraints` are the keys,
    unique constraints, indexes, ranges and checks, each with the `columns` or `column` that it applies to. `source` is
    the declaration as written.

    >>> from omnigraph import Schema
    >>> person = Schema('node Person @description("A human") { name: String @key  age: I32? }')["Person"]
    >>> person.kind, person.key, list(person.properties), person.description
    ('node', ('name',), ['name', 'age'], 'A human')
    """

    kind: ClassVar[TypeKind] = "node"
    name: str
    property_items: tuple[PropertyInfo, ...] = field(repr=False)
    key: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = field(default=(), repr=False)
    description: str | None = None
    annotation_items: tuple[tuple[str, str | None], ...] = field(default=(), repr=False)
    source: str = field(default="", repr=False, compare=False)
    implements: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return type_table(self)


@dataclass(frozen=True, slots=True)
class EdgeTypeInfo(_TypeInfo):
    """An edge type in a schema, from the node type `source_type` to the node type `target_type`.

    `cardinality` is the minimum and maximum number of edges of this type per source node, where a maximum of None means
    unlimited. The other members are the same as in `NodeTypeInfo`.

    >>> from omnigraph import Schema
    >>> knows = Schema("node Person {} edge Knows: Person -> Person @card(0..9) { since: Date? }").edges["Knows"]
    >>> knows.source_type, knows.target_type, knows.cardinality, list(knows.properties)
    ('Person', 'Person', (0, 9), ['since'])
    """

    kind: ClassVar[TypeKind] = "edge"
    name: str
    source_type: str
    target_type: str
    property_items: tuple[PropertyInfo, ...] = field(default=(), repr=False)
    key: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = field(default=(), repr=False)
    description: str | None = None
    annotation_items: tuple[tuple[str, str | None], ...] = field(default=(), repr=False)
    source: str = field(default="", repr=False, compare=False)
    cardinality: tuple[int, int | None] = (0, None)

    def _repr_html_(self) -> str:
        return type_table(self)


def describe_node_types(catalog: Catalog, order: DeclaredOrder) -> dict[str, NodeTypeInfo]:
    """Return a schema's node types, keyed by name."""
    return {node.name: _describe_node(node, order) for node in order.sort_types("node", catalog.nodes)}


def describe_edge_types(catalog: Catalog, order: DeclaredOrder) -> dict[str, EdgeTypeInfo]:
    """Return a schema's edge types, keyed by name."""
    return {edge.name: _describe_edge(edge, order) for edge in order.sort_types("edge", catalog.edges)}


def _describe_node(node: NodeType, order: DeclaredOrder) -> NodeTypeInfo:
    annotations = tuple(_header_annotations(node))
    return NodeTypeInfo(
        node.name,
        _describe_properties(node, order),
        node.key or (),
        node.constraints,
        dict(annotations).get("description"),
        annotations,
        order.declaration(node).text,
        node.implements,
    )


def _describe_edge(edge: EdgeType, order: DeclaredOrder) -> EdgeTypeInfo:
    annotations = tuple(_header_annotations(edge))
    return EdgeTypeInfo(
        edge.name,
        edge.source,
        edge.target,
        _describe_properties(edge, order),
        edge.key or (),
        edge.constraints,
        dict(annotations).get("description"),
        annotations,
        order.declaration(edge).text,
        (edge.min_cardinality, edge.max_cardinality),
    )


def _header_annotations(entity_type: NodeType | EdgeType) -> Iterator[tuple[str, str | None]]:
    return ((annotation.name, annotation.value) for annotation in entity_type.annotations)


def _describe_properties(entity_type: NodeType | EdgeType, order: DeclaredOrder) -> tuple[PropertyInfo, ...]:
    return tuple(_describe_property(definition) for definition in order.sort_properties(entity_type))


def _describe_property(definition: PropertyDefinition) -> PropertyInfo:
    annotations: dict[str, str | None] = dict.fromkeys(definition.inline_constraints)
    annotations |= {annotation.name: annotation.value for annotation in definition.annotations}
    if definition.default is not None:
        annotations["default"] = definition.default.text
    if definition.embed is not None:
        annotations["embed"] = definition.embed.source
    property_type = definition.type.as_nullable(nullable=False).display()
    return PropertyInfo(definition.name, property_type, definition.type.nullable, tuple(annotations.items()))


def type_table(info: NodeTypeInfo | EdgeTypeInfo) -> str:
    """Return a type as an HTML table with one row per property."""
    endpoints = f" {info.source_type} → {info.target_type}" if isinstance(info, EdgeTypeInfo) else ""
    title = f"<b>{info.kind} {escape(info.name)}</b>{escape(endpoints)}<br>{escape(info.description or '')}"
    rows = "".join(
        f"<tr><td>{escape(declared.name)}</td><td>{escape(declared.type)}{'?' if declared.nullable else ''}</td>"
        f"<td>{escape(' '.join(f'@{name}' for name in declared.annotations))}</td></tr>"
        for declared in info.property_items
    )
    return f"<div>{title}<table>{rows}</table></div>"
