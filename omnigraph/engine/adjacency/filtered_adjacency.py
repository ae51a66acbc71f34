"""An adjacency restricted to the edges that pass a test.

Only the edges that a traversal follows are passed to the test.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omnigraph.engine.operators.rows import IntArray, Mask

from .adjacency import Adjacency
from .neighbor_lists import IndexArray, distinct_pairs


@dataclass(slots=True, eq=False)
class FilteredAdjacency:
    """An adjacency restricted to the edges whose row ids pass `accepts`. `edges` must provide edge row ids."""

    edges: Adjacency
    accepts: Callable[[IntArray], Mask]

    def degrees(self, sources: IntArray) -> IntArray:
        """Return an upper bound on the number of distinct neighbors per source: the total number of its edges."""
        return self.edges.edge_degrees(sources)

    def edge_degrees(self, sources: IntArray) -> IntArray:
        """Return the number of edges per source, including edges that do not pass the test."""
        return self.edges.edge_degrees(sources)

    def expand(self, sources: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Return the distinct neighbors of each source."""
        positions, neighbors, _ = self.expand_edges(sources)
        if accepted_rows is not None:
            is_accepted = accepted_rows[np.minimum(neighbors, len(accepted_rows) - 1)]
            positions, neighbors = positions[is_accepted], neighbors[is_accepted]
        return distinct_pairs(positions, neighbors)

    def union(self, sources: IntArray) -> IndexArray:
        """Return the neighbors of all sources, possibly with duplicates."""
        return self.expand_edges(sources)[1]

    @property
    def size(self) -> int:
        """An upper bound on all row ids, or 0 if it is unknown."""
        return self.edges.size

    def expand_edges(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return positions, neighbors and edge row ids, with one entry for each edge that passes the test."""
        positions, neighbors, edge_ids = self.edges.expand_edges(sources)
        is_accepted = self.accepts(edge_ids)
        return positions[is_accepted], neighbors[is_accepted], edge_ids[is_accepted]

    def contains(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return whether each target is a neighbor of its source."""
        positions, neighbors, _ = self.expand_edges(sources)
        is_neighbor = np.zeros(len(sources), np.bool_)
        is_neighbor[positions[neighbors == targets[positions]]] = True
        return is_neighbor
