"""State shared by all path searches: the edges in both directions, the length bounds, and the allowed ends.

A search runs from many starts at once. Each (start, node) pair is encoded as a number called its place:
`start_number * stride + row_id`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.records.frozen import record

from .path_layers import EdgeLayer, follow_edges
from .rows import IntArray, Mask

_MIN_LEVEL_ROWS = 1 << 10


@record(eq=False)
class WantedEnds:
    """The allowed ends of paths, as (start, node) pairs, or as nodes if there are too many pairs."""

    places: IntArray | None = None
    nodes: IntArray | None = None

    def contains(self, places: IntArray, stride: int) -> Mask:
        """Return whether a path may end at each of the given (start, node) pairs."""
        if self.places is not None:
            return np.isin(places, self.places)
        return np.isin(places % stride, self.nodes) if self.nodes is not None else np.ones(len(places), np.bool_)


@record(eq=False)
class PathSearch:
    """The edges in both directions, the bounds on the path length, and the number of places reserved for each start.

    `load_edges` returns adjacencies with edges, and `load_neighbors` returns adjacencies for searches that need only
    nodes. Pass True to either function for the backward direction.
    """

    context: ExecutionContext
    load_edges: Callable[[bool], list[Adjacency]]
    load_neighbors: Callable[[bool], list[Adjacency]]
    min_hops: int
    max_hops: int
    stride: int

    def follow(self, places: IntArray, *, backward: bool = False) -> EdgeLayer:
        """Return all edges that leave the given (start, node) pairs, or that lead to them if `backward` is true."""
        return follow_edges(self.context, self.load_edges(backward), places, self.stride)

    def place_count(self, starts: IntArray) -> int:
        """Return the number of possible (start, node) pairs, or a small initial size if it is unknown."""
        known_size = all(adjacency.size for adjacency in self.load_edges(False))
        return int(starts.max() // self.stride + 1) * self.stride if known_size and len(starts) else _MIN_LEVEL_ROWS

    def levels(self, place_count: int) -> "PlaceLevels":
        """Return an empty map from (start, node) pairs to distances."""
        self.context.meter.charge_bytes(2 * place_count)
        return PlaceLevels(np.full(place_count, -1, np.int16))

    def within_bounds(self, ends: list[IntArray]) -> list[IntArray]:
        """Return the ends by path length, with no ends for lengths below `min_hops`."""
        return [places if length >= self.min_hops else places[:0] for length, places in enumerate(ends)]


@dataclass(slots=True, eq=False)
class PlaceLevels:
    """The distance of each (start, node) pair from the origin of a search, or -1 if the pair was not reached."""

    by_place: npt.NDArray[np.int16]
    known_places: list[IntArray] = field(default_factory=list)

    def of(self, places: IntArray) -> npt.NDArray[np.int16]:
        """Return the distance of each (start, node) pair."""
        self._reserve(places)
        return self.by_place[places]

    def add_level(self, places: IntArray) -> IntArray:
        """Assign the next distance to the pairs without a distance, and return these pairs in ascending order."""
        new_places = np.unique(places[self.of(places) < 0]).astype(np.int64, copy=False)
        self.by_place[new_places] = len(self.known_places)
        self.known_places.append(new_places)
        return new_places

    def _reserve(self, places: IntArray) -> None:
        needed_count = int(places.max()) + 1 if len(places) else 0
        if needed_count > len(self.by_place):  # without neighbor lists, the highest row id is unknown
            grown = np.full(2 * needed_count, -1, np.int16)
            grown[: len(self.by_place)] = self.by_place
            self.by_place = grown
