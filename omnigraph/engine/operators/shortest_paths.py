"""The layers of shortest paths by number of edges, found breadth-first.

With few ends, the search runs from both sides and meets in the middle. Otherwise it runs from the start until all
ends are found. A shortest path from a node to itself has no edges.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.execution_context import ExecutionContext

from .path_layers import BYTES_PER_EDGE, EdgeLayer, PathLayers, follow_edges
from .rows import IntArray, Mask

_MIN_LEVEL_ROWS = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class PathSearch:
    """What every search needs: the edges in both directions, and the bounds of the path length."""

    context: ExecutionContext
    forward: list[Adjacency]
    load_backward: Callable[[], list[Adjacency]]
    min_hops: int
    max_hops: int

    def levels(self) -> "NodeLevels":
        """Return a new map from nodes to distances."""
        row_bound = max((adjacency.size for adjacency in self.forward), default=0)
        self.context.meter.charge_bytes(2 * row_bound)
        return NodeLevels(np.full(max(row_bound, _MIN_LEVEL_ROWS), -1, np.int16))

    def within_bounds(self, ends: list[IntArray]) -> list[IntArray]:
        """Return the ends of paths that are long enough."""
        return [nodes if length >= self.min_hops else nodes[:0] for length, nodes in enumerate(ends)]


@dataclass(slots=True, eq=False)
class NodeLevels:
    """The distance of each node from where a search started, or -1; indexed by row id."""

    by_row_id: npt.NDArray[np.int16]
    known_nodes: list[IntArray] = field(default_factory=list)

    def of(self, nodes: IntArray) -> npt.NDArray[np.int16]:
        """Return the distance of each node."""
        self._reserve(nodes)
        return self.by_row_id[nodes]

    def add_level(self, nodes: IntArray) -> IntArray:
        """Record the nodes without a distance as the next level, and return them in order."""
        new_nodes = np.unique(nodes[self.of(nodes) < 0]).astype(np.int64, copy=False)
        self.by_row_id[new_nodes] = len(self.known_nodes)
        self.known_nodes.append(new_nodes)
        return new_nodes

    def clear(self) -> None:
        """Forget all distances, so that the array can be used for another start."""
        for nodes in self.known_nodes:
            self.by_row_id[nodes] = -1
        self.known_nodes.clear()

    def _reserve(self, nodes: IntArray) -> None:
        needed_rows = int(nodes.max()) + 1 if len(nodes) else 0
        if needed_rows > len(self.by_row_id):  # without neighbour lists, the highest row id is unknown
            grown = np.full(2 * needed_rows, -1, np.int16)
            grown[: len(self.by_row_id)] = self.by_row_id
            self.by_row_id = grown


def search_from_start(search: PathSearch, levels: NodeLevels, start: int, wanted: IntArray | None) -> PathLayers:
    """Return the layers from a start node to all `wanted` nodes, or to all nodes if it is None."""
    frontier = levels.add_level(np.array([start], np.int64))
    layers: list[EdgeLayer] = []
    while len(frontier) and len(layers) < search.max_hops and not _has_all(levels, wanted):
        followed = follow_edges(search.context, search.forward, frontier)
        layer = followed.take(levels.of(followed.targets) < 0)
        search.context.meter.release_bytes((len(followed.edges) - len(layer.edges)) * BYTES_PER_EDGE)
        frontier = levels.add_level(layer.targets)
        layers.append(layer)
    ends = [nodes if wanted is None else nodes[np.isin(nodes, wanted)] for nodes in levels.known_nodes]
    levels.clear()
    return PathLayers(start, layers, search.within_bounds(ends))


def _has_all(levels: NodeLevels, wanted: IntArray | None) -> bool:
    return wanted is not None and bool((levels.of(wanted) >= 0).all())


def search_both_sides(
    search: PathSearch, from_start: NodeLevels, from_end: NodeLevels, start: int, end: int
) -> PathLayers | None:
    """Return the layers between two nodes, or None if no path between them is within bounds."""
    frontiers = [from_start.add_level(np.array([start], np.int64)), from_end.add_level(np.array([end], np.int64))]
    sides = (from_start, from_end)
    meeting = frontiers[0] if start == end else frontiers[0][:0]
    while len(meeting) == 0 and len(from_start.known_nodes) + len(from_end.known_nodes) - 2 < search.max_hops:
        side = int(len(frontiers[1]) < len(frontiers[0]))
        if len(frontiers[side]) == 0:
            break
        adjacencies = search.load_backward() if side else search.forward
        frontiers[side] = sides[side].add_level(_neighbours(search.context, adjacencies, frontiers[side]))
        meeting = frontiers[side][sides[1 - side].of(frontiers[side]) >= 0]
    layers = _layers_between(search, from_start, from_end, meeting) if len(meeting) else None
    from_start.clear()
    from_end.clear()
    if layers is None or len(layers) < search.min_hops:
        return None
    ends = [np.empty(0, np.int64)] * len(layers)
    return PathLayers(start, layers, [*ends, np.array([end], np.int64)])


def _neighbours(context: ExecutionContext, adjacencies: list[Adjacency], nodes: IntArray) -> IntArray:
    byte_count = sum(int(adjacency.degrees(nodes).sum()) for adjacency in adjacencies) * 16
    context.meter.charge_bytes(byte_count)
    neighbours = np.concatenate([adjacency.union(nodes) for adjacency in adjacencies])
    context.meter.release_bytes(byte_count)
    return neighbours.astype(np.int64, copy=False)


def _layers_between(
    search: PathSearch, from_start: NodeLevels, from_end: NodeLevels, meeting: IntArray
) -> list[EdgeLayer]:
    """Return the edges of all shortest paths through the nodes at which both sides met."""
    first_half: list[EdgeLayer] = []
    nodes = meeting
    for distance in range(len(from_start.known_nodes) - 2, -1, -1):
        layer = _edges_to_level(search.context, search.load_backward(), nodes, from_start, distance)
        first_half.append(layer.reversed())
        nodes = np.unique(layer.targets)
    second_half: list[EdgeLayer] = []
    nodes = meeting
    for distance in range(len(from_end.known_nodes) - 2, -1, -1):
        second_half.append(_edges_to_level(search.context, search.forward, nodes, from_end, distance))
        nodes = np.unique(second_half[-1].targets)
    return [*first_half[::-1], *second_half]


def _edges_to_level(
    context: ExecutionContext, adjacencies: list[Adjacency], nodes: IntArray, levels: NodeLevels, distance: int
) -> EdgeLayer:
    followed = follow_edges(context, adjacencies, nodes)
    is_on_path: Mask = levels.of(followed.targets) == distance
    return followed.take(is_on_path)
