"""Which names mean what at one point of a query.

Owns variables, parameters and their visibility in `not` and `optional`. A name whose declaration
was wrong stays known as `Broken`, so that one mistake is reported once.
"""

from dataclasses import dataclass, field
from dataclasses import replace as changed
from itertools import islice

from omnigraph.lang.schema.catalog import Catalog, Edge, Interface, Node
from omnigraph.record import record
from omnigraph.values import PropertyType

from .report import Report

ANONYMOUS = "_"


@record
class NodeVariable:
    """A bound node; `type_name` is a node type or an interface, `name` its name in the plan."""

    name: str
    type_name: str
    optional: bool = False


@record
class EdgeVariable:
    """A bound edge of one of several types."""

    name: str
    types: tuple[str, ...]
    optional: bool = False


@record
class Broken:
    """A variable about which enough was said already."""

    name: str
    optional: bool = False


Bound = NodeVariable | EdgeVariable | Broken


@dataclass(slots=True)
class Scope:
    """The names visible to one list of clauses.

    `inherited` are the variables bound outside. `local` are all names of this list of clauses and
    `reserved` those of the lists around it, also where they are bound later: a variable of a `not`
    that shares such a name is another variable and gets another name in the plan.
    """

    catalog: Catalog
    report: Report
    parameters: dict[str, PropertyType]
    variables: dict[str, Bound] = field(default_factory=dict)
    inherited: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    depth: int = 0
    used: set[str] = field(default_factory=set)

    def inside_negation(self, names: frozenset[str]) -> "Scope":
        """A scope that sees everything and whose own variables nobody else sees."""
        return self._nested(names, self.reserved | self.local, self.depth + 1)

    def inside_optional(self) -> "Scope":
        """A scope whose own variables are going to be visible outside, as nullable."""
        return self._nested(self.local, self.reserved, self.depth)

    def _nested(self, local: frozenset[str], reserved: frozenset[str], depth: int) -> "Scope":
        return Scope(
            catalog=self.catalog,
            report=self.report,
            parameters=self.parameters,
            variables=dict(self.variables),
            inherited=frozenset(self.variables),
            local=local,
            reserved=reserved,
            depth=depth,
            used=self.used,
        )

    def plan_name(self, name: str) -> str:
        """The name that a new variable of this scope gets in the plan."""
        return f"{name}#{self.depth}" if name in self.reserved else name

    def own(self) -> list[tuple[str, Bound]]:
        """The variables that this scope introduced, in order."""
        # Inherited variables were copied first and keep their places.
        return list(islice(self.variables.items(), len(self.inherited), None))

    def adopt(self, inner: "Scope") -> None:
        """Take over what an `optional` introduced."""
        for name, bound in inner.own():
            self.variables[name] = changed(bound, optional=True)


def entity_type(catalog: Catalog, name: str) -> Node | Interface | None:
    """The node type of that name, else the interface."""
    return catalog.node(name) or catalog.interface(name)


def implementers(catalog: Catalog, name: str) -> tuple[str, ...]:
    """The node types that an interface stands for; none for a node type."""
    if catalog.node(name) is not None:
        return ()
    return tuple(node.name for node in catalog.nodes if name in node.implements)


def narrower(catalog: Catalog, one: str, other: str) -> str | None:
    """The type of an entity that is of both types, or None when there is none."""
    if one == other or other in implementers(catalog, one):
        return other
    return one if one in implementers(catalog, other) else None


def edge_types(catalog: Catalog, variable: EdgeVariable) -> tuple[Edge, ...]:
    """The edge types a variable ranges over."""
    found = (catalog.edge(name) for name in variable.types)
    return tuple(edge for edge in found if edge is not None)
