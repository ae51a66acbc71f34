"""Plan nodes for paths: the operator that finds paths, path values, and tests of a path's edges.

This module contains only records. `plan` re-exports its operators.
"""

from typing import TYPE_CHECKING
from typing import Literal as OneOf

from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

if TYPE_CHECKING:
    from .plan import PlanStep, Predicate, PropertyValue

PathMode = OneOf["any shortest", "all shortest", "walk", "trail", "acyclic", "simple"]
PathFunction = OneOf["length", "nodes", "edges", "cost"]


@record
class PathEntity:
    """A bound path.

    It is returned as an object with the path's length, nodes and edges. If `has_cost` is true, the object also contains
    the cost.
    """

    variable: str
    type_name: str
    has_cost: bool = False


@record
class PathValue:
    """An attribute of a bound path: its number of edges, the ids of its nodes or edges, or its cost."""

    variable: str
    function: PathFunction
    type: PropertyType


@record
class EdgeTest:
    """Predicates that every edge in an expansion must satisfy.

    The predicates refer to the edge as `variable`, which is not bound in any row.
    """

    variable: str
    predicates: "tuple[Predicate, ...]"


@record
class FindPaths:
    """Find paths from a bound variable to other nodes of the same type, and bind each path to `path`.

    A path ends at the bound variable `closing`, or at a node that passes `target_filters` and is bound to the new
    variable `target`. If `backward` is true, paths are searched from their last node to their first. If `cost` is set,
    the paths found have the smallest total cost.
    """

    source: str
    target: str | None
    path: str
    mode: PathMode
    steps: "tuple[PlanStep, ...]"
    node_type: str
    min_hops: int
    max_hops: int
    closing: str | None = None
    backward: bool = False
    target_filters: "tuple[Predicate, ...]" = ()
    edge_test: EdgeTest | None = None
    cost: "PropertyValue | None" = None
