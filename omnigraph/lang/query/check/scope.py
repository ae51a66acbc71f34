"""Track what names mean at a given point in a query.

A scope contains variables and parameters, and controls which of them are visible in `not` and `optional`. A variable
whose declaration is invalid stays in the scope as a `BrokenVariable`, so that each mistake is reported only once.
"""

from dataclasses import dataclass, field
from dataclasses import replace as changed
from itertools import islice

from omnigraph.lang.schema.catalog import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

from .report import CheckReport

ANONYMOUS = "_"


@record
class NodeVariable:
    """A bound node. `type_name` is a node type or an interface, and `name` is the variable's name in the plan."""

    name: str
    type_name: str
    optional: bool = False


@record
class EdgeVariable:
    """A bound edge, which may have one of several types."""

    name: str
    edge_types: tuple[str, ...]
    optional: bool = False


@record
class HopEdgeVariable:
    """An edge variable that represents every edge in a multi-hop traversal. It cannot be read outside the traversal."""

    name: str
    optional: bool = False


@record
class PathVariable:
    """A bound path through nodes of one type. `has_cost` is true if the traversal has a `by` clause."""

    name: str
    type_name: str
    has_cost: bool = False
    optional: bool = False


@record
class BrokenVariable:
    """A variable whose declaration has already been reported as invalid. Its later uses are not reported."""

    name: str
    optional: bool = False


BoundVariable = NodeVariable | EdgeVariable | HopEdgeVariable | PathVariable | BrokenVariable


@dataclass(slots=True)
class Scope:
    """The names visible to one list of clauses.

    `inherited_names` are the variables bound in enclosing scopes. `local_names` are all names in this list of clauses,
    and `reserved_names` are all names in the enclosing lists, including those that are bound later. If a variable
    inside a `not` has a reserved name, it is a different variable and gets its own name in the plan.
    """

    catalog: Catalog
    report: CheckReport
    parameters: dict[str, PropertyType]
    variables: dict[str, BoundVariable] = field(default_factory=dict)
    inherited_names: frozenset[str] = frozenset()
    local_names: frozenset[str] = frozenset()
    reserved_names: frozenset[str] = frozenset()
    depth: int = 0
    used_parameters: set[str] = field(default_factory=set)

    def enter_negation(self, inner_names: frozenset[str]) -> "Scope":
        """Return the scope for a `not` block, whose own variables are not visible outside it."""
        return self._nested_scope(inner_names, self.reserved_names | self.local_names, self.depth + 1)

    def enter_optional(self) -> "Scope":
        """Return the scope for an `optional` block, whose own variables become nullable variables outside it."""
        return self._nested_scope(self.local_names, self.reserved_names, self.depth)

    def without_variables(self) -> "Scope":
        """Return a scope that contains only the parameters, for another `match` in the same query."""
        return Scope(self.catalog, self.report, self.parameters, used_parameters=self.used_parameters)

    def _nested_scope(self, local_names: frozenset[str], reserved_names: frozenset[str], depth: int) -> "Scope":
        return Scope(
            catalog=self.catalog,
            report=self.report,
            parameters=self.parameters,
            variables=dict(self.variables),
            inherited_names=frozenset(self.variables),
            local_names=local_names,
            reserved_names=reserved_names,
            depth=depth,
            used_parameters=self.used_parameters,
        )

    def plan_name(self, variable_name: str) -> str:
        """Return the plan name for a new variable in this scope."""
        return f"{variable_name}#{self.depth}" if variable_name in self.reserved_names else variable_name

    def introduced_variables(self) -> list[tuple[str, BoundVariable]]:
        """Return the variables that this scope introduced, in the order in which they were added."""
        # Inherited variables come first, because they were copied before any new variable was added.
        return list(islice(self.variables.items(), len(self.inherited_names), None))

    def adopt_optional(self, inner_scope: "Scope") -> None:
        """Add the variables that an `optional` introduced, and make them nullable."""
        for variable_name, bound_variable in inner_scope.introduced_variables():
            self.variables[variable_name] = changed(bound_variable, optional=True)


def entity_type(catalog: Catalog, type_name: str) -> NodeType | InterfaceType | None:
    """Return the node type or interface with the given name, or None if there is neither."""
    return catalog.node(type_name) or catalog.interface(type_name)


def implementers(catalog: Catalog, type_name: str) -> tuple[str, ...]:
    """Return the node types that implement an interface, or an empty tuple for a node type."""
    if catalog.node(type_name) is not None:
        return ()
    return tuple(node.name for node in catalog.nodes if type_name in node.implements)


def narrower_type(catalog: Catalog, first_type: str, second_type: str) -> str | None:
    """Return whichever of two types implements the other (either, if they are equal), or None if neither does."""
    if first_type == second_type or second_type in implementers(catalog, first_type):
        return second_type
    return first_type if first_type in implementers(catalog, second_type) else None


def declared_edge_types(catalog: Catalog, variable: EdgeVariable) -> tuple[EdgeType, ...]:
    """Return the declarations of the edge types that a variable can have."""
    edge_declarations = (catalog.edge(edge_name) for edge_name in variable.edge_types)
    return tuple(edge for edge in edge_declarations if edge is not None)
