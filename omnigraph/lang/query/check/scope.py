"""The meaning of names at one point of a query.

Owns variables, parameters and their visibility in `not` and `optional`. A name whose declaration
was invalid remains as a `BrokenVariable`, so that each mistake is reported once.
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
    """A variable whose mistake was reported already; later uses are not reported."""

    name: str
    optional: bool = False


Bound = NodeVariable | EdgeVariable | Broken


@dataclass(slots=True)
class Scope:
    """The names visible to one list of clauses.

    `inherited_names` are the variables bound outside. `local_names` are all names of this list of
    clauses and `reserved_names` those of the enclosing lists, even where they are bound later: a
    variable of a `not` with such a name is a different variable and gets its own name in the plan.
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
        """Return a scope that sees every variable and keeps its own variables private."""
        return self._nested(names, self.reserved | self.local, self.depth + 1)

    def inside_optional(self) -> "Scope":
        """Return a scope whose own variables will be visible outside, as nullable."""
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
        """Return the name that a new variable of this scope gets in the plan."""
        return f"{name}#{self.depth}" if name in self.reserved else name

    def own(self) -> list[tuple[str, Bound]]:
        """Return the variables that this scope introduced, in order."""
        # Inherited variables were copied first and keep their positions.
        return list(islice(self.variables.items(), len(self.inherited), None))

    def adopt(self, inner: "Scope") -> None:
        """Add the variables that an `optional` introduced, as nullable."""
        for name, bound in inner.own():
            self.variables[name] = changed(bound, optional=True)


def entity_type(catalog: Catalog, name: str) -> Node | Interface | None:
    """Return the node type or, failing that, the interface of that name."""
    return catalog.node(name) or catalog.interface(name)


def implementers(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Return the node types that implement an interface; none for a node type."""
    if catalog.node(name) is not None:
        return ()
    return tuple(node.name for node in catalog.nodes if name in node.implements)


def narrower(catalog: Catalog, one: str, other: str) -> str | None:
    """Return the type of an entity that has both types, or None if they are incompatible."""
    if one == other or other in implementers(catalog, one):
        return other
    return one if one in implementers(catalog, other) else None


def edge_types(catalog: Catalog, variable: EdgeVariable) -> tuple[Edge, ...]:
    """Return the declarations of the edge types that a variable ranges over."""
    found = (catalog.edge(name) for name in variable.types)
    return tuple(edge for edge in found if edge is not None)
