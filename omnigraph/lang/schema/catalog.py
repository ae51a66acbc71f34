"""A checked schema: the types, properties and rules that all higher layers use.

A catalog is the resolved form of a `.pg` file: interfaces are expanded into the nodes that implement them, constraints
are typed, and everything is sorted by name. Only `check` builds a catalog from text, so every catalog is valid.
"""

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.records.cached_property import cached_property
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .model import Literal

TypeKind = OneOf["interface", "node", "edge"]
ENDPOINT_COLUMNS = ("src", "dst")  # the columns that contain the ids of an edge's endpoints
_ENDPOINT_TYPE = PropertyType(ScalarType.STRING)


@record
class Key:
    """`@key`: the columns that determine the id of a node or edge, in name order."""

    columns: tuple[str, ...]


@record
class Unique:
    """`@unique`: no two entities may have equal values in these columns, unless one of the values is null."""

    columns: tuple[str, ...]


@record
class Index:
    """`@index`: a declared index. `options` contains its kind, metric and language in name order."""

    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()


@record
class Range:
    """`@range`: inclusive bounds, or None where there is no bound. Integer bounds are exact."""

    column: str
    low: int | float | None
    high: int | float | None


@record
class Check:
    """`@check`: a value must contain a match for this RE2 pattern."""

    column: str
    pattern: str


Constraint = Key | Unique | Index | Range | Check


@record
class StoredAnnotation:
    """An annotation that is stored verbatim, with its name, argument text and keyword arguments."""

    name: str
    value: str | None = None
    options: tuple[tuple[str, str], ...] = ()


@record
class AllowedFinding:
    """`@allow`: a lint finding that is suppressed at this declaration, and the reason."""

    code: str
    reason: str


@record
class EmbeddingDefinition:
    """`@embed`: the text property from which a vector is computed, and the model that computes it."""

    source: str
    model: str | None = None


@record
class PropertyDefinition:
    """One property of an interface, node or edge, after interface expansion.

    `satisfies` lists the (interface, property) pairs that the property satisfies, `inline_constraints` lists the
    constraints written on the property itself, and `default` is the checked `@default` literal.
    """

    name: str
    type: PropertyType
    annotations: tuple[StoredAnnotation, ...] = ()
    inline_constraints: tuple[str, ...] = ()
    embed: EmbeddingDefinition | None = None
    default: Literal | None = None
    declared_directly: bool = True
    satisfies: tuple[tuple[str, str], ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    allowed_findings: tuple[AllowedFinding, ...] = field(default=(), compare=False)
    span: Span = field(default=NO_SPAN, compare=False)


@record(slots=False)
class InterfaceType:
    """A checked interface, with its properties in name order."""

    name: str
    properties: tuple[PropertyDefinition, ...]
    allowed_findings: tuple[AllowedFinding, ...] = field(default=(), compare=False)
    span: Span = field(default=NO_SPAN, compare=False)

    kind: TypeKind = field(default="interface", init=False)
    rename_from: str | None = field(default=None, init=False, compare=False)

    def property(self, property_name: str) -> PropertyDefinition | None:
        """Return the property with this name, or None if there is none."""
        return next((definition for definition in self.properties if definition.name == property_name), None)


@record(slots=False)
class NodeType:
    """A checked node type, with its properties and constraints in canonical order."""

    name: str
    properties: tuple[PropertyDefinition, ...]
    constraints: tuple[Constraint, ...] = ()
    implements: tuple[str, ...] = ()
    annotations: tuple[StoredAnnotation, ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    allowed_findings: tuple[AllowedFinding, ...] = field(default=(), compare=False)
    span: Span = field(default=NO_SPAN, compare=False)

    kind: TypeKind = field(default="node", init=False)

    @cached_property
    def properties_by_name(self) -> dict[str, PropertyDefinition]:
        """The type's properties, keyed by name."""
        return {definition.name: definition for definition in self.properties}

    def property(self, property_name: str) -> PropertyDefinition | None:
        """Return the property with this name, or None if there is none."""
        return self.properties_by_name.get(property_name)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """Return the key columns in name order, or None if the type has no `@key`."""
        return _key_columns(self.constraints)

    def column_type(self, column_name: str) -> PropertyType:
        """Return the type of an existing property."""
        return self.properties_by_name[column_name].type


@record(slots=False)
class EdgeType:
    """A checked edge type from the node type `source` to the node type `target`."""

    name: str
    source: str
    target: str
    properties: tuple[PropertyDefinition, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    min_cardinality: int = 0
    max_cardinality: int | None = None
    annotations: tuple[StoredAnnotation, ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    allowed_findings: tuple[AllowedFinding, ...] = field(default=(), compare=False)
    span: Span = field(default=NO_SPAN, compare=False)

    kind: TypeKind = field(default="edge", init=False)

    @cached_property
    def properties_by_name(self) -> dict[str, PropertyDefinition]:
        """The type's properties, keyed by name."""
        return {definition.name: definition for definition in self.properties}

    def property(self, property_name: str) -> PropertyDefinition | None:
        """Return the property with this name, or None if there is none."""
        return self.properties_by_name.get(property_name)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """Return the key columns in name order, or None if the type has no `@key`."""
        return _key_columns(self.constraints)

    def column_type(self, column_name: str) -> PropertyType:
        """Return the type of an endpoint column or an existing property."""
        return _ENDPOINT_TYPE if column_name in ENDPOINT_COLUMNS else self.properties_by_name[column_name].type


@record(slots=False)
class Catalog:
    """An entire checked schema, with each tuple in name order."""

    interfaces: tuple[InterfaceType, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()
    source: str = field(default="", compare=False, repr=False)

    @cached_property
    def _nodes_by_name(self) -> dict[str, NodeType]:
        return {node_type.name: node_type for node_type in self.nodes}

    @cached_property
    def _edges_by_name(self) -> dict[str, EdgeType]:
        exact_names = {edge_type.name: edge_type for edge_type in self.edges}
        return {edge_type.name.lower(): edge_type for edge_type in self.edges} | exact_names

    def node(self, type_name: str) -> NodeType | None:
        """Return the node type with this exact name, or None if there is none."""
        return self._nodes_by_name.get(type_name)

    def interface(self, interface_name: str) -> InterfaceType | None:
        """Return the interface with this exact name, or None if there is none."""
        return next((interface for interface in self.interfaces if interface.name == interface_name), None)

    def edge(self, type_name: str) -> EdgeType | None:
        """Return the edge type with this exact name, or None. Mutations and exports use this lookup."""
        edge_type = self._edges_by_name.get(type_name)
        return edge_type if edge_type is not None and edge_type.name == type_name else None

    def edge_ignoring_case(self, edge_name: str) -> EdgeType | None:
        """Return the edge type that a query refers to, or None if there is none.

        An exact match takes precedence over a case-insensitive match.
        """
        return self._edges_by_name.get(edge_name) or self._edges_by_name.get(edge_name.lower())


def _key_columns(constraints: tuple[Constraint, ...]) -> tuple[str, ...] | None:
    return next((constraint.columns for constraint in constraints if isinstance(constraint, Key)), None)
