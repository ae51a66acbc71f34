"""Adjacency for one edge type: neighbors reached by following edges forward, backward, or in both directions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from omnigraph.engine.operators.rows import IntArray, Mask

from .neighbor_lists import (
    SMALL_BATCH,
    IndexArray,
    NeighborLists,
    PairSketch,
    as_int64,
    distinct_pairs,
    expand_ranges,
    search_pairs,
)

# Build a sketch once the number of probed pairs exceeds half the number of stored pairs.
_SKETCH_DIVISOR = 2


class Adjacency(Protocol):
    """Neighbor lookup for one edge type and direction, at fixed table versions."""

    def degrees(self, sources: IntArray) -> IntArray:
        """Return the number of distinct neighbors per source."""

    def expand(self, sources: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Return two parallel arrays: positions in `sources`, and neighbors of the sources at these positions.

        Each source's neighbors are distinct and sorted. `accepted_rows` is a mask that is indexed by row id and selects
        the neighbors to return. The last entry of the mask also applies to all higher row ids.
        """

    def union(self, sources: IntArray) -> IndexArray:
        """Return the neighbors of all sources, in any order and possibly with duplicates."""

    @property
    def size(self) -> int:
        """An upper bound on all row ids, or 0 if unknown. It is valid only if both endpoints have the same type."""

    def expand_edges(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return positions, neighbors and edge row ids, with one entry per edge, including parallel edges."""

    def edge_degrees(self, sources: IntArray) -> IntArray:
        """Return an upper bound on the number of edges per source."""

    def contains(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return whether each target is a neighbor of its source."""


@dataclass(slots=True, eq=False)
class DirectedAdjacency:
    """The edges of one type, followed either forward or backward."""

    lists: NeighborLists
    edge_lists: NeighborLists | None = None

    def degrees(self, sources: IntArray) -> IntArray:
        """Return the number of distinct neighbors per source."""
        return self.lists.bounds(sources)[1].astype(np.int64, copy=False)

    def expand(self, sources: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Return the distinct neighbors of each source."""
        return self.lists.expand(sources, accepted_rows)

    def union(self, sources: IntArray) -> IndexArray:
        """Return the neighbors of all sources, possibly with duplicates."""
        return self.lists.union(sources)

    @property
    def size(self) -> int:
        """The number of rows that have neighbor lists."""
        return len(self.lists.starts) - 1

    def expand_edges(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return positions, neighbors and edge row ids, with one entry per edge."""
        edge_lists = self._require_edge_lists()
        list_starts, list_lengths = edge_lists.bounds(sources)
        edge_positions = expand_ranges(list_starts, list_lengths)
        positions = np.repeat(np.arange(len(sources), dtype=np.int64), list_lengths)
        edge_ids = edge_lists.edges if edge_lists.edges is not None else edge_lists.values
        return (positions, as_int64(edge_lists.values[edge_positions]), as_int64(edge_ids[edge_positions]))

    def edge_degrees(self, sources: IntArray) -> IntArray:
        """Return the number of edges per source."""
        return self._require_edge_lists().bounds(sources)[1].astype(np.int64, copy=False)

    def _require_edge_lists(self) -> NeighborLists:
        if self.edge_lists is None:
            raise ValueError("this adjacency has no edge lists; request it with `with_edges`")
        return self.edge_lists

    def contains(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return whether each target is a neighbor of its source."""
        probe_stats = self.lists.probe_stats
        probe_stats.probed_pairs += len(sources)
        if probe_stats.sketch is None and probe_stats.probed_pairs > len(self.lists.values) // _SKETCH_DIVISOR:
            probe_stats.sketch = PairSketch(self.lists)
        if probe_stats.sketch is None or len(sources) < SMALL_BATCH:
            return search_pairs(self.lists, sources, targets)
        is_neighbor = probe_stats.sketch.may_contain(sources, targets)
        candidates = np.flatnonzero(is_neighbor)
        is_neighbor[candidates] = search_pairs(self.lists, sources[candidates], targets[candidates])
        return is_neighbor


def count_pairs(adjacencies: Sequence[Adjacency], sources: IntArray) -> int:
    """Return the number of (source, neighbor) pairs, summed over all adjacencies."""
    pair_count = 0
    for adjacency in adjacencies:
        if isinstance(adjacency, DirectedAdjacency):
            pair_count += adjacency.lists.count_pairs(sources)
        else:
            pair_count += int(adjacency.degrees(sources).sum())
    return pair_count


@dataclass(slots=True, eq=False)
class UndirectedAdjacency:
    """The edges of a type that joins nodes of a single type, followed in both directions."""

    outgoing: Adjacency
    incoming: Adjacency

    def degrees(self, sources: IntArray) -> IntArray:
        """Return the number of distinct neighbors per source."""
        distinct_sources, source_positions = np.unique(sources, return_inverse=True)
        positions, _ = self.expand(distinct_sources)
        return np.bincount(positions, minlength=len(distinct_sources))[source_positions].astype(np.int64, copy=False)

    def expand(self, sources: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Return the distinct neighbors of each source in either direction."""
        forward = self.outgoing.expand(sources, accepted_rows)
        backward = self.incoming.expand(sources, accepted_rows)
        return distinct_pairs(np.concatenate([forward[0], backward[0]]), np.concatenate([forward[1], backward[1]]))

    def union(self, sources: IntArray) -> IndexArray:
        """Return the neighbors of all sources, possibly with duplicates."""
        return np.concatenate([self.outgoing.union(sources), self.incoming.union(sources)])

    @property
    def size(self) -> int:
        """The number of rows that have neighbor lists, or 0 if it is unknown."""
        return max(self.outgoing.size, self.incoming.size) if self.outgoing.size and self.incoming.size else 0

    def expand_edges(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return positions, neighbors and edge row ids, with one entry per edge; a self-loop has only one entry."""
        forward, backward = self.outgoing.expand_edges(sources), self.incoming.expand_edges(sources)
        is_not_loop = sources[backward[0]] != backward[1]
        merged = [
            np.concatenate([forward_array, backward_array[is_not_loop]])
            for forward_array, backward_array in zip(forward, backward, strict=True)
        ]
        return merged[0], merged[1], merged[2]

    def edge_degrees(self, sources: IntArray) -> IntArray:
        """Return the number of edges per source.

        Self-loops count twice. The result is therefore an upper bound, which is sufficient for memory accounting.
        """
        return self.outgoing.edge_degrees(sources) + self.incoming.edge_degrees(sources)

    def contains(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return whether an edge joins each source and its target in either direction."""
        is_neighbor = self.outgoing.contains(sources, targets)
        unmatched = np.flatnonzero(~is_neighbor)
        is_neighbor[unmatched] = self.incoming.contains(sources[unmatched], targets[unmatched])
        return is_neighbor


def bound_pairs(adjacencies: Sequence[Adjacency], sources: IntArray) -> int:
    """Return an upper bound on the number of neighbors that `union` returns, without expanding any list."""
    pair_bound = 0
    for adjacency in adjacencies:
        if isinstance(adjacency, UndirectedAdjacency):
            pair_bound += bound_pairs((adjacency.outgoing, adjacency.incoming), sources)
        else:
            pair_bound += count_pairs((adjacency,), sources)
    return pair_bound
