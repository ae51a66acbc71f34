"""A checked schema: types, properties and rules for all later layers.

Owns the resolved form of a `.pg` file: interfaces expanded into their nodes, constraints typed,
everything in name order. Only `check` builds a catalog from text, so its content can be trusted.
"""

from dataclasses import field
from functools import cached_property
from typing import Literal as OneOf

from omnigraph.diagnostics import NOWHERE, Span
from omnigraph.record import record
from omnigraph.values import PropertyType

from .model import Literal

TypeKind = OneOf["interface", "node", "edge"]


@record
class Key:
    """`@key`: the columns that make up a node's id, in name order."""

    columns: tuple[str, ...]


@record
class Unique:
    """`@unique`: no two entities share this tuple; a null member exempts the entity."""

    columns: tuple[str, ...]


@record
class Index:
    """`@index`: a requested index; `options` holds kind, metric, language in name order."""

    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()


@record
class Range:
    """`@range`: inclusive bounds, exact for integers; a bound of None is open."""

    column: str
    low: int | float | None
    high: int | float | None


@record
class Check:
    """`@check`: a value must contain a match of this RE2 pattern."""

    column: str
    pattern: str


Constraint = Key | Unique | Index | Range | Check


@record
class Note:
    """An annotation stored verbatim: name, text of its argument, keyword arguments."""

    name: str
    value: str | None = None
    options: tuple[tuple[str, str], ...] = ()


@record
class Allow:
    """`@allow`: a finding that is not reported here, and the reason."""

    code: str
    reason: str


@record
class Embed:
    """`@embed`: the text property that a vector is computed from, and the model."""

    source: str
    model: str | None = None


@record
class Property:
    """One property of an interface, node or edge, after interface expansion.

    `satisfies` lists the (interface, property) pairs that it fulfils; `inline_constraints` names
    the constraints written on the property itself; `default` is the checked literal of `@default`.
    """

    name: str
    type: PropertyType
    notes: tuple[Note, ...] = ()
    marks: tuple[str, ...] = ()
    embed: Embed | None = None
    default: Literal | None = None
    declared_directly: bool = True
    satisfies: tuple[tuple[str, str], ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    allows: tuple[Allow, ...] = field(default=(), compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@record(slots=False)
class Interface:
    """A checked interface; properties in name order."""

    name: str
    properties: tuple[Property, ...]
    allows: tuple[Allow, ...] = field(default=(), compare=False)
    span: Span = field(default=NOWHERE, compare=False)

    kind: TypeKind = field(default="interface", init=False)
    rename_from: str | None = field(default=None, init=False, compare=False)

    def property(self, name: str) -> Property | None:
        """Return the property with this name, or None."""
        return next((p for p in self.properties if p.name == name), None)


@record(slots=False)
class Node:
    """A checked node type; properties and constraints in canonical order."""

    name: str
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...] = ()
    implements: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    allows: tuple[Allow, ...] = field(default=(), compare=False)
    span: Span = field(default=NOWHERE, compare=False)

    kind: TypeKind = field(default="node", init=False)

    @cached_property
    def by_name(self) -> dict[str, Property]:
        """Properties by name."""
        return {p.name: p for p in self.properties}

    def property(self, name: str) -> Property | None:
        """Return the property with this name, or None."""
        return self.by_name.get(name)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """Return the key columns in name order, or None for a type without `@key`."""
        return next((c.columns for c in self.constraints if isinstance(c, Key)), None)


@record(slots=False)
class Edge:
    """A checked edge type from `source` to `target` node types."""

    name: str
    source: str
    target: str
    properties: tuple[Property, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    low: int = 0
    high: int | None = None
    notes: tuple[Note, ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    allows: tuple[Allow, ...] = field(default=(), compare=False)
    span: Span = field(default=NOWHERE, compare=False)

    kind: TypeKind = field(default="edge", init=False)

    @cached_property
    def by_name(self) -> dict[str, Property]:
        """Properties by name."""
        return {p.name: p for p in self.properties}

    def property(self, name: str) -> Property | None:
        """Return the property with this name, or None."""
        return self.by_name.get(name)


@record(slots=False)
class Catalog:
    """An entire checked schema. Each tuple is in name order."""

    interfaces: tuple[Interface, ...] = ()
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    source: str = field(default="", compare=False, repr=False)

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {n.name: n for n in self.nodes}

    @cached_property
    def _edges(self) -> dict[str, Edge]:
        exact = {e.name: e for e in self.edges}
        return {e.name.lower(): e for e in self.edges} | exact

    def node(self, name: str) -> Node | None:
        """Return the node type with this exact name, or None."""
        return self._nodes.get(name)

    def interface(self, name: str) -> Interface | None:
        """Return the interface with this exact name, or None."""
        return next((i for i in self.interfaces if i.name == name), None)

    def edge(self, name: str) -> Edge | None:
        """Return the edge type with this exact name (mutations, export), or None."""
        found = self._edges.get(name)
        return found if found is not None and found.name == name else None

    def edge_by_word(self, word: str) -> Edge | None:
        """Return the edge type that a query names: an exact match first, then ignoring case."""
        return self._edges.get(word) or self._edges.get(word.lower())
