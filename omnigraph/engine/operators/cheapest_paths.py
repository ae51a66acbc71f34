"""Find the edges on the cheapest paths, where cost is an edge property and the number of edges is bounded.

The edges are found layer by layer: layer `h` contains the last edges of paths with exactly `h` edges, so no path
exceeds the bound on the number of edges. Edges without a cost are not followed, and a negative cost raises an error.
Among paths of the same cost, those with the fewest edges are preferred.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.records.frozen import record

from .path_layers import EdgeLayer, PathLayers
from .path_search import PathSearch, WantedEnds
from .rows import IntArray

Costs = npt.NDArray[np.float64]


@record(eq=False)
class CheapestPaths:
    """The edges on the cheapest paths from the given starts, grouped by layer, and the cost of each path."""

    found: PathLayers
    end_costs: list[Costs]


@dataclass(slots=True, eq=False)
class PlaceCosts:
    """The lowest cost found so far for each (start, node) pair, and the number of edges on the path with that cost."""

    costs: Costs
    lengths: npt.NDArray[np.int16]

    def reserve(self, places: IntArray) -> None:
        """Grow the arrays so that all of the given (start, node) pairs have an entry."""
        needed_count = int(places.max()) + 1 if len(places) else 0
        if needed_count > len(self.costs):
            added_count = 2 * needed_count - len(self.costs)
            self.costs = np.append(self.costs, np.full(added_count, np.inf))
            self.lengths = np.append(self.lengths, np.full(added_count, -1, np.int16))

    def improve(self, places: IntArray, costs: Costs, length: int) -> npt.NDArray[np.bool_]:
        """Record lower costs; return a mask of the costs that are now the lowest for their (start, node) pair."""
        improves = costs < self.costs[places]
        np.minimum.at(self.costs, places[improves], costs[improves])
        improves &= costs == self.costs[places]
        self.lengths[places[improves]] = length
        return improves


def search_cheapest(
    search: PathSearch, read_costs: Callable[[EdgeLayer], Costs], starts: IntArray, wanted: WantedEnds
) -> CheapestPaths:
    """Return the edges on the cheapest paths from the given starts to all allowed ends, grouped by layer."""
    place_costs = start_costs(search, starts, wanted)
    frontier, frontier_costs = starts, np.zeros(len(starts))
    layers: list[EdgeLayer] = []
    level_places = [frontier]
    while len(frontier) and len(layers) < search.max_hops:
        followed = search.follow(frontier)
        place_costs.reserve(followed.targets)
        costs = frontier_costs[np.searchsorted(frontier, followed.sources)] + read_costs(followed)
        useful = np.flatnonzero(costs < _cost_bounds(search, place_costs, followed.targets, wanted))
        layer, costs = followed.take(useful), costs[useful]
        layer = layer.take(place_costs.improve(layer.targets, costs, len(layers) + 1))
        frontier = np.unique(layer.targets)
        frontier_costs = place_costs.costs[frontier]
        layers.append(layer)
        level_places.append(frontier)
    is_final = [place_costs.lengths[places] == length for length, places in enumerate(level_places)]
    ends = [places[mask] for places, mask in zip(level_places, is_final, strict=True)]
    ends = search.within_bounds([places[wanted.contains(places, search.stride)] for places in ends])
    return CheapestPaths(PathLayers(starts, layers, ends), [place_costs.costs[places] for places in ends])


def start_costs(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> PlaceCosts:
    """Return the initial costs, which are zero for the starts and infinite for all other nodes."""
    place_count = search.place_count(starts)
    search.context.meter.charge_bytes(10 * place_count)
    place_costs = PlaceCosts(np.full(place_count, np.inf), np.full(place_count, -1, np.int16))
    place_costs.reserve(starts)
    place_costs.reserve(wanted.places if wanted.places is not None else starts)
    place_costs.costs[starts], place_costs.lengths[starts] = 0.0, 0
    return place_costs


def _cost_bounds(search: PathSearch, place_costs: PlaceCosts, places: IntArray, wanted: WantedEnds) -> Costs:
    """For each (start, node) pair, return the highest cost found so far from the start to any of its allowed ends."""
    if wanted.places is None:
        return np.full(len(places), np.inf)
    start_numbers, place_numbers = wanted.places // search.stride, places // search.stride
    bounds = np.zeros(int(max(start_numbers.max(initial=0), place_numbers.max(initial=0))) + 1)
    np.maximum.at(bounds, start_numbers, place_costs.costs[wanted.places])
    return bounds[place_numbers]
