"""The layers of the cheapest paths by an edge property, with a bound on the number of edges.

Layer `h` improves the costs of nodes by paths with exactly `h` edges, so the bound on the number of edges is exact.
An edge without a cost is not followed, and a negative cost is refused. Among paths of the same cost, those with the
fewest edges win.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.errors import QueryExecutionError
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .fetch import fetch_columns
from .path_layers import EdgeLayer, PathLayers, follow_edges
from .rows import IntArray, VariableBinding
from .shortest_paths import PathSearch

_Costs = npt.NDArray[np.float64]
_MIN_COST_ROWS = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class CheapestPaths:
    """The layers of the cheapest paths from a start node, and the cost of reaching the ends of each length."""

    found: PathLayers
    end_costs: list[_Costs]


@dataclass(slots=True, eq=False)
class _NodeCosts:
    """The lowest cost of each node so far, and the number of edges of its cheapest path; indexed by row id."""

    costs: _Costs
    lengths: npt.NDArray[np.int16]

    def reserve(self, nodes: IntArray) -> None:
        """Grow the arrays so that all nodes have an entry."""
        needed_rows = int(nodes.max()) + 1 if len(nodes) else 0
        if needed_rows > len(self.costs):
            added_rows = 2 * needed_rows - len(self.costs)
            self.costs = np.append(self.costs, np.full(added_rows, np.inf))
            self.lengths = np.append(self.lengths, np.full(added_rows, -1, np.int16))

    def improve(self, nodes: IntArray, costs: _Costs, length: int) -> npt.NDArray[np.bool_]:
        """Record lower costs; return which of the given costs are now the lowest of their node."""
        improves = costs < self.costs[nodes]
        np.minimum.at(self.costs, nodes[improves], costs[improves])
        improves &= costs == self.costs[nodes]
        self.lengths[nodes[improves]] = length
        return improves


def edge_costs(
    context: ExecutionContext, edge_keys: Sequence[TableKey], cost: plan.PropertyValue
) -> Callable[[EdgeLayer], _Costs]:
    """Return a function that reads the cost of each edge; NaN where it is null."""

    def read_costs(layer: EdgeLayer) -> _Costs:
        edge_types = layer.edge_types if len(edge_keys) > 1 else None
        binding = VariableBinding(tuple(edge_keys), layer.edges, edge_types)
        column = fetch_columns(context, binding, [cost.name])[0]
        costs: _Costs = column.cast("float64", safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
        if bool((costs < 0).any()):
            raise QueryExecutionError(
                reason=f"the cost `{cost.name}` of an edge is negative ({float(np.nanmin(costs)):g})",
                hint=f"exclude such edges with `where ${cost.variable}.{cost.name} >= 0`",
            )
        return costs

    return read_costs


def search_cheapest(
    search: PathSearch, read_costs: Callable[[EdgeLayer], _Costs], start: int, wanted: IntArray | None
) -> CheapestPaths:
    """Return the layers of the cheapest paths from a start node to all `wanted` nodes, or to all nodes."""
    node_costs = _start_costs(search, start, wanted)
    frontier, frontier_costs = np.array([start], np.int64), np.zeros(1)
    layers: list[EdgeLayer] = []
    level_nodes = [frontier]
    while len(frontier) and len(layers) < search.max_hops:
        followed = follow_edges(search.context, search.forward, frontier)
        node_costs.reserve(followed.targets)
        costs = frontier_costs[np.searchsorted(frontier, followed.sources)] + read_costs(followed)
        # Costs that reach the highest cost of a wanted node cannot improve any wanted node.
        useful = np.flatnonzero(costs < _highest_cost(node_costs, wanted))
        layer, costs = followed.take(useful), costs[useful]
        layer = layer.take(node_costs.improve(layer.targets, costs, len(layers) + 1))
        frontier = np.unique(layer.targets)
        frontier_costs = node_costs.costs[frontier]
        layers.append(layer)
        level_nodes.append(frontier)
    ends = [_final_nodes(node_costs, nodes, length, wanted) for length, nodes in enumerate(level_nodes)]
    ends = search.within_bounds(ends)
    return CheapestPaths(PathLayers(start, layers, ends), [node_costs.costs[nodes] for nodes in ends])


def _start_costs(search: PathSearch, start: int, wanted: IntArray | None) -> _NodeCosts:
    row_bound = max(_MIN_COST_ROWS, *(adjacency.size for adjacency in search.forward))
    search.context.meter.charge_bytes(10 * row_bound)
    node_costs = _NodeCosts(np.full(row_bound, np.inf), np.full(row_bound, -1, np.int16))
    node_costs.reserve(np.array([start], np.int64))
    if wanted is not None:
        node_costs.reserve(wanted)
    node_costs.costs[start], node_costs.lengths[start] = 0.0, 0
    return node_costs


def _highest_cost(node_costs: _NodeCosts, wanted: IntArray | None) -> float:
    return float("inf") if wanted is None else float(node_costs.costs[wanted].max(initial=0.0))


def _final_nodes(node_costs: _NodeCosts, nodes: IntArray, length: int, wanted: IntArray | None) -> IntArray:
    """Return the nodes whose cheapest path has this length."""
    is_final: npt.NDArray[np.bool_] = node_costs.lengths[nodes] == length
    if wanted is not None:
        is_final &= np.isin(nodes, wanted)
    final_nodes: IntArray = nodes[is_final]
    return final_nodes
