"""Find the shortest paths between two nodes by searching from both ends.

The search itself determines only the length. It records the nodes at each distance from either end. As soon as an edge
joins a node seen from one end with a node seen from the other, the search stops, even in the middle of a level. If the
edges of the paths are needed, they are found afterward.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency, bound_pairs
from omnigraph.engine.adjacency.neighbor_lists import IndexArray
from omnigraph.records.frozen import record

from .breadth_first import unseen_nodes
from .path_layers import EdgeLayer, PathLayers
from .path_search import PathSearch
from .rows import IntArray, Mask

_BLOCK_PAIRS = 1 << 16  # number of neighbors per comparison with the other side
_BYTES_PER_NEIGHBOR = 16
_MIN_SEEN_ROWS = 1 << 10


@record(eq=False)
class MeetingLevels:
    """The nodes on the shortest paths, grouped by their distance from the start or from the end.

    Edges join the last level in `from_start` to the last level in `from_end`. If the start is also the end, there is
    only one level.
    """

    from_start: list[IntArray]
    from_end: list[IntArray]

    @property
    def length(self) -> int:
        """The number of edges in a shortest path."""
        return len(self.from_start) + len(self.from_end) - 1

    @property
    def end(self) -> IntArray:
        """The node at which the paths end, as an array."""
        return self.from_end[0] if self.from_end else self.from_start[0]

    def find_layers(self, search: PathSearch) -> PathLayers:
        """Return the edges of all shortest paths, layer by layer."""
        layers = self._edge_layers(search) if self.from_end else []
        return PathLayers(self.from_start[0], layers, [*([self.end[:0]] * len(layers)), self.end])

    def _edge_layers(self, search: PathSearch) -> list[EdgeLayer]:
        crossing = _layer_between(search, self.from_start[-1], self.from_end[-1])
        before = _layers_back(search, crossing.sources, self.from_start[:-1], backward=True)
        after = _layers_back(search, crossing.targets, self.from_end[:-1], backward=False)
        return [*(layer.reversed() for layer in before[::-1]), crossing, *after]


@dataclass(slots=True, eq=False)
class _SearchSide:
    """The nodes reached from one of the two ends, by distance, and an estimate of the work for the next level."""

    adjacencies: Sequence[Adjacency]
    is_seen: Mask
    levels: list[IntArray] = field(default_factory=list)
    next_cost: int = 0

    @property
    def has_lists(self) -> bool:
        """Whether neighbor lists are in memory, so that neighbors can be counted without reading a table."""
        return all(adjacency.size for adjacency in self.adjacencies)

    def add_level(self, nodes: IntArray) -> None:
        """Mark the nodes at the next distance as seen."""
        self._reserve(nodes)
        self.is_seen[nodes] = True
        self.levels.append(nodes)
        self.next_cost = bound_pairs(self.adjacencies, nodes) if self.has_lists else len(nodes)

    def has_seen_any(self, nodes: IndexArray) -> bool:
        """Return whether any of the nodes has been reached from this end."""
        self._reserve(nodes)
        return bool(self.is_seen[nodes].any())

    def neighbor_blocks(self, pair_count: int) -> Iterator[IndexArray]:
        """Yield the `pair_count` neighbors of the last level, in blocks of limited size."""
        frontier = self.levels[-1]
        block_count = pair_count // _BLOCK_PAIRS + 1 if self.has_lists else 1
        for nodes in np.array_split(frontier, block_count) if block_count > 1 else [frontier]:
            for adjacency in self.adjacencies:
                yield adjacency.union(nodes)

    def unseen(self, neighbors: IndexArray) -> IntArray:
        """Return the distinct neighbors that have not been reached from this end."""
        self._reserve(neighbors)
        return unseen_nodes(neighbors, self.is_seen)

    def _reserve(self, nodes: IndexArray) -> None:
        needed_count = int(nodes.max()) + 1 if len(nodes) else 0
        if needed_count > len(self.is_seen):  # without neighbor lists, the highest row id is unknown
            self.is_seen = np.append(self.is_seen, np.zeros(2 * needed_count - len(self.is_seen), np.bool_))


def search_shortest_between(search: PathSearch, start: int, end: int) -> MeetingLevels | None:
    """Return the levels of the shortest paths between two nodes, or None if no path has an allowed length."""
    meeting = _meet(search, np.array([start], np.int64), np.array([end], np.int64))
    return meeting if meeting is not None and search.min_hops <= meeting.length else None


def _meet(search: PathSearch, start: IntArray, end: IntArray) -> MeetingLevels | None:
    if start[0] == end[0]:
        return MeetingLevels([start], [])
    forward, backward = (_open_side(search, is_backward) for is_backward in (False, True))
    forward.add_level(start)
    backward.add_level(end)
    while len(forward.levels) + len(backward.levels) - 1 <= search.max_hops:
        is_forward = forward.next_cost <= backward.next_cost
        side, other = (forward, backward) if is_forward else (backward, forward)
        frontier = _next_level(search, side, other)
        if frontier is None:
            return MeetingLevels(forward.levels, backward.levels)
        if len(frontier) == 0:
            return None
        side.add_level(frontier)
    return None


def _open_side(search: PathSearch, is_backward: bool) -> _SearchSide:
    side = _SearchSide(search.load_neighbors(is_backward), np.zeros(0, np.bool_))
    seen_count = search.stride if side.has_lists else _MIN_SEEN_ROWS
    search.context.meter.charge_bytes(seen_count)
    side.is_seen = np.zeros(seen_count, np.bool_)
    return side


def _next_level(search: PathSearch, side: _SearchSide, other: _SearchSide) -> IntArray | None:
    """Return the nodes at the next distance, or None as soon as one of them has been reached from the other end."""
    pair_count = side.next_cost if side.has_lists else bound_pairs(side.adjacencies, side.levels[-1])
    search.context.meter.charge_bytes(pair_count * _BYTES_PER_NEIGHBOR)
    blocks: list[IndexArray] = []
    for neighbors in side.neighbor_blocks(pair_count):
        if other.has_seen_any(neighbors):
            return None
        blocks.append(neighbors)
        search.context.meter.check_timeout()
    frontier = side.unseen(np.concatenate(blocks) if len(blocks) != 1 else blocks[0])
    search.context.meter.release_bytes(pair_count * _BYTES_PER_NEIGHBOR)
    return frontier


def _layer_between(search: PathSearch, sources: IntArray, targets: IntArray) -> EdgeLayer:
    """Return the edges from the sources to the targets. The search starts from the smaller set."""
    if len(sources) <= len(targets):
        followed = search.follow(sources)
        return followed.take(_contains(targets, followed.targets))
    followed = search.follow(targets, backward=True)
    return followed.take(_contains(sources, followed.targets)).reversed()


def _layers_back(search: PathSearch, nodes: IntArray, levels: list[IntArray], *, backward: bool) -> list[EdgeLayer]:
    """Return the edges from the given nodes to the last level, from the last level to the previous one, and so on."""
    layers: list[EdgeLayer] = []
    for level in levels[::-1]:
        followed = search.follow(np.unique(nodes), backward=backward)
        layers.append(followed.take(_contains(level, followed.targets)))
        nodes = layers[-1].targets
    return layers


def _contains(level: IntArray, nodes: IntArray) -> Mask:
    """Return whether each node is in the level, which must be sorted and must not be empty."""
    positions = np.searchsorted(level, nodes)
    is_contained: Mask = level[np.minimum(positions, len(level) - 1)] == nodes
    return is_contained
