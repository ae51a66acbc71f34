"""Find the edges on the cheapest paths between two nodes, layer by layer, by searching from both ends.

Each round extends the paths from one of the two nodes by one edge, and records each cost that is lower than before. The
search ends as soon as no path with more edges can be cheaper, usually long before the paths from either node have
reached all other nodes. All paths of equal cost are kept, so that a later choice between them does not depend on where
the two searches meet.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .cheapest_paths import CheapestPaths, Costs, PlaceCosts, start_costs
from .path_layers import EdgeLayer, PathLayers
from .path_search import PathSearch, WantedEnds
from .rows import IntArray


@dataclass(slots=True, eq=False)
class _CostSide:
    """The lowest costs of paths from one of the two nodes, and the nodes whose costs fell in the last round."""

    search: PathSearch
    read_costs: Callable[[EdgeLayer], Costs]
    backward: bool
    place_costs: PlaceCosts
    frontier: IntArray
    layers: list[EdgeLayer] = field(default_factory=list)

    @property
    def lowest(self) -> float:
        """The lowest cost of any path found in the last round."""
        return float(self.place_costs.costs[self.frontier].min(initial=np.inf))

    def advance(self, other: "_CostSide", bound: float) -> float:
        """Extend the paths by one edge; return the lowest cost found so far for a path between the two nodes."""
        frontier_costs = self.place_costs.costs[self.frontier]
        followed = self.search.follow(self.frontier, backward=self.backward)
        for place_costs in (self.place_costs, other.place_costs):
            place_costs.reserve(followed.targets)
        costs = frontier_costs[np.searchsorted(self.frontier, followed.sources)] + self.read_costs(followed)
        remaining_costs = np.minimum(other.place_costs.costs[followed.targets], other.lowest)
        useful = np.flatnonzero(costs + remaining_costs <= bound)
        layer, costs = followed.take(useful), costs[useful]
        layer = layer.take(self.place_costs.improve(layer.targets, costs, len(self.layers) + 1))
        self.layers.append(layer)
        self.frontier = np.unique(layer.targets)
        total_costs = self.place_costs.costs[self.frontier] + other.place_costs.costs[self.frontier]
        return min(bound, float(total_costs.min(initial=np.inf)))


def search_cheapest_between(
    search: PathSearch, read_costs: Callable[[EdgeLayer], Costs], start: int, end: int
) -> CheapestPaths | None:
    """Return the edges on the cheapest paths between two nodes, by layer, or None if no path has an allowed length."""
    forward, backward = (
        _CostSide(
            search,
            read_costs,
            is_backward,
            start_costs(search, np.array([node], np.int64), WantedEnds()),
            np.array([node], np.int64),
        )
        for is_backward, node in ((False, start), (True, end))
    )
    bound = 0.0 if start == end else np.inf
    while len(forward.layers) + len(backward.layers) < search.max_hops and forward.lowest + backward.lowest <= bound:
        if len(forward.frontier) == 0 or len(backward.frontier) == 0:
            break
        is_forward = len(forward.frontier) <= len(backward.frontier)
        side, other = (forward, backward) if is_forward else (backward, forward)
        bound = side.advance(other, bound)
    layers = _layers_between(forward, backward, bound) if np.isfinite(bound) else None
    if layers is None or len(layers) < search.min_hops:
        return None
    no_ends = [np.empty(0, np.int64)] * len(layers)
    found = PathLayers(np.array([start], np.int64), layers, [*no_ends, np.array([end], np.int64)])
    return CheapestPaths(found, [*([np.empty(0)] * len(layers)), np.array([bound])])


def _layers_between(forward: _CostSide, backward: _CostSide, cost: float) -> list[EdgeLayer]:
    """Return the edges on the shortest of the cheapest paths, by layer."""
    known_count = min(len(forward.place_costs.costs), len(backward.place_costs.costs))
    total_costs = forward.place_costs.costs[:known_count] + backward.place_costs.costs[:known_count]
    meeting = np.flatnonzero(total_costs == cost)
    lengths = forward.place_costs.lengths[meeting].astype(np.int64) + backward.place_costs.lengths[meeting]
    path_length = int(lengths.min())
    # A float sum depends on the order of additions, so at some nodes on a cheapest path, the total cost may be slightly
    # off.
    forward_lengths = forward.place_costs.lengths[meeting].astype(np.int64)
    first_length = int(forward_lengths[lengths == path_length].max())
    is_cut = (lengths == path_length) & (forward_lengths == first_length)
    layers = forward.layers[:first_length]
    places = meeting[is_cut]
    for layer in backward.layers[: path_length - first_length][::-1]:
        turned = layer.reversed()
        layers.append(turned.take(np.isin(turned.sources, places)))
        places = np.unique(layers[-1].targets)
    return layers
