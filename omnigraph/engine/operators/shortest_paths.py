"""Find the edges on the paths with the fewest edges, layer by layer, using breadth-first search.

Between two known nodes, the search runs from both sides and meets in the middle. Otherwise, the search runs from all
start nodes at once. A shortest path from a node to itself has no edges.
"""

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.execution_context import ExecutionContext

from .path_layers import BYTES_PER_EDGE, EdgeLayer, PathLayers
from .path_search import PathSearch, PlaceLevels, WantedEnds
from .rows import IntArray


def search_from_starts(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> PathLayers:
    """Return the edges on the shortest paths from the given starts to all allowed ends, grouped by layer."""
    levels = search.levels(search.place_count(starts))
    frontier = levels.add_level(starts)
    layers: list[EdgeLayer] = []
    while len(frontier) and len(layers) < search.max_hops and not _has_all(levels, wanted):
        followed = search.follow(frontier)
        layer = followed.take(levels.of(followed.targets) < 0)
        search.context.meter.release_bytes((len(followed.edges) - len(layer.edges)) * BYTES_PER_EDGE)
        frontier = levels.add_level(layer.targets)
        layers.append(layer)
    ends = [places[wanted.contains(places, search.stride)] for places in levels.known_places]
    return PathLayers(starts, layers, search.within_bounds(ends))


def _has_all(levels: PlaceLevels, wanted: WantedEnds) -> bool:
    return wanted.places is not None and bool((levels.of(wanted.places) >= 0).all())


def search_both_sides(
    search: PathSearch, from_start: PlaceLevels, from_end: PlaceLevels, start: int, end: int
) -> PathLayers | None:
    """Return the edges on the shortest paths between two nodes, by layer, or None if no path is within bounds."""
    frontiers = [from_start.add_level(np.array([start], np.int64)), from_end.add_level(np.array([end], np.int64))]
    sides = (from_start, from_end)
    meeting = frontiers[0] if start == end else frontiers[0][:0]
    while len(meeting) == 0 and len(from_start.known_places) + len(from_end.known_places) - 2 < search.max_hops:
        side = int(len(frontiers[1]) < len(frontiers[0]))
        if len(frontiers[side]) == 0:
            break
        adjacencies = search.load_neighbours(side == 1)
        frontiers[side] = sides[side].add_level(_neighbours(search.context, adjacencies, frontiers[side]))
        meeting = frontiers[side][sides[1 - side].of(frontiers[side]) >= 0]
    layers = _layers_between(search, from_start, from_end, meeting) if len(meeting) else None
    from_start.clear()
    from_end.clear()
    if layers is None or len(layers) < search.min_hops:
        return None
    ends = [np.empty(0, np.int64)] * len(layers)
    return PathLayers(np.array([start], np.int64), layers, [*ends, np.array([end], np.int64)])


def _neighbours(context: ExecutionContext, adjacencies: list[Adjacency], nodes: IntArray) -> IntArray:
    byte_count = sum(int(adjacency.degrees(nodes).sum()) for adjacency in adjacencies) * 16
    context.meter.charge_bytes(byte_count)
    neighbours = np.concatenate([adjacency.union(nodes) for adjacency in adjacencies])
    context.meter.release_bytes(byte_count)
    return neighbours.astype(np.int64, copy=False)


def _layers_between(
    search: PathSearch, from_start: PlaceLevels, from_end: PlaceLevels, meeting: IntArray
) -> list[EdgeLayer]:
    """Return the edges on all shortest paths through the nodes at which the two searches met."""
    first_half: list[EdgeLayer] = []
    nodes = meeting
    for distance in range(len(from_start.known_places) - 2, -1, -1):
        followed = search.follow(nodes, backward=True)
        first_half.append(followed.take(from_start.of(followed.targets) == distance).reversed())
        nodes = np.unique(first_half[-1].sources)
    second_half: list[EdgeLayer] = []
    nodes = meeting
    for distance in range(len(from_end.known_places) - 2, -1, -1):
        followed = search.follow(nodes)
        second_half.append(followed.take(from_end.of(followed.targets) == distance))
        nodes = np.unique(second_half[-1].targets)
    return [*first_half[::-1], *second_half]
