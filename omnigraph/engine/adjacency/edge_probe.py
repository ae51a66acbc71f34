"""Look up the neighbors of a few rows in the edge table instead of building neighbor lists.

Such a lookup is called a probe. Probes by `src` or `dst` are fast if the column has an index. Probes return the same
neighbors as lists. For a few rows, they are faster than building the lists; for many rows, they are slower.
`BudgetedProbe` switches to lists once too many rows have been looked up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.operators.rows import IntArray, Mask
from omnigraph.storage.scan import count_rows, row_id_array, scan, take_rows
from omnigraph.storage.table import Table

from .adjacency import Adjacency, DirectedAdjacency
from .id_encoder import IdEncoder, build_encoder
from .neighbor_lists import IndexArray
from .topology import build_bags, build_sets, read_encoder

_FULL_READ_RATIO = 50  # if more than 1/50 of the ids are needed, reading all ids is faster than looking up each id


@dataclass(slots=True, eq=False)
class EdgeTableProbe:
    """An adjacency that looks up edges by the id in `near_column` and reads the neighbor from `far_column`."""

    edge_table: Table
    near_table: Table
    far_table: Table
    near_column: str
    far_column: str
    _probed_rows: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    _probed_lists: DirectedAdjacency | None = None

    def degrees(self, sources: IntArray) -> IntArray:
        """Return the number of distinct neighbors per row."""
        return self._lists_for(sources).degrees(self._list_positions(sources))

    def edge_degrees(self, sources: IntArray) -> IntArray:
        """Return the number of edges per row."""
        return self._lists_for(sources).edge_degrees(self._list_positions(sources))

    def expand(self, sources: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Return the distinct neighbors of each row."""
        return self._lists_for(sources).expand(self._list_positions(sources), accepted_rows)

    def union(self, sources: IntArray) -> IndexArray:
        """Return the neighbors of all rows."""
        return self.expand(sources)[1]

    @property
    def size(self) -> int:
        """Always 0, because computing an upper bound on all row ids would require reading the whole table."""
        return 0

    def expand_edges(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return positions, neighbors and edge row ids, with one entry per edge."""
        return self._lists_for(sources).expand_edges(self._list_positions(sources))

    def contains(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return whether each target is a neighbor of its source."""
        return self._lists_for(sources).contains(self._list_positions(sources), targets)

    def _list_positions(self, sources: IntArray) -> IntArray:
        """Return the position of each given row among the rows of the most recent lookup, or -1 for a null row id."""
        positions = np.searchsorted(self._probed_rows, sources)
        return np.where(sources < 0, -1, positions).astype(np.int64, copy=False)

    def _lists_for(self, sources: IntArray) -> DirectedAdjacency:
        """Return neighbor lists for the given rows, reusing the previous lookup if it included all of them."""
        distinct_sources = np.unique(sources)
        distinct_sources = distinct_sources[distinct_sources >= 0]
        if self._probed_lists is None or not np.isin(distinct_sources, self._probed_rows).all():
            self._probed_lists = self._read_lists(distinct_sources)
            self._probed_rows = distinct_sources
        return self._probed_lists

    def _read_lists(self, sources: IntArray) -> DirectedAdjacency:
        near_ids = take_rows(self.near_table, sources, ["id"])["id"].combine_chunks()
        is_present = near_ids.is_valid().to_numpy(zero_copy_only=False)
        present_ids = near_ids.filter(pa.array(is_present))
        edge_rows = scan(
            self.edge_table,
            [self.near_column, self.far_column],
            pc.field(self.near_column).isin(present_ids),
            row_ids=True,
        )
        owners = IdEncoder(present_ids, np.flatnonzero(is_present)).encode(edge_rows[self.near_column])
        neighbors = self._encode_far_ids(edge_rows[self.far_column])
        resolved = (owners >= 0) & (neighbors >= 0)
        owners = owners[resolved]
        neighbors = neighbors[resolved]
        edges = row_id_array(edge_rows)[resolved]
        return DirectedAdjacency(
            build_sets(owners, neighbors, len(sources)), build_bags(owners, neighbors, edges, len(sources))
        )

    def _encode_far_ids(self, far_ids: pa.ChunkedArray) -> IntArray:
        distinct_ids = pc.unique(far_ids)
        if len(distinct_ids) * _FULL_READ_RATIO > count_rows(self.far_table) + 5_000:
            return read_encoder(self.far_table)[0].encode(far_ids)
        far_rows = scan(self.far_table, ["id"], pc.field("id").isin(distinct_ids), row_ids=True)
        return build_encoder(far_rows["id"], row_id_array(far_rows)).encode(far_ids)


@dataclass(slots=True, eq=False)
class BudgetedProbe:
    """An adjacency that probes the edge table while `may_probe(row_count)` is true and builds lists after that."""

    probe: Adjacency
    build_lists: Callable[[], Adjacency]
    may_probe: Callable[[int], bool]
    _built_lists: Adjacency | None = None
    _last_rows: IntArray | None = None

    def degrees(self, sources: IntArray) -> IntArray:
        """Return the number of distinct neighbors per row."""
        return self._adjacency_for(sources).degrees(sources)

    def edge_degrees(self, sources: IntArray) -> IntArray:
        """Return the number of edges per row."""
        return self._adjacency_for(sources).edge_degrees(sources)

    def expand(self, sources: IntArray, accepted_rows: Mask | None = None) -> tuple[IntArray, IntArray]:
        """Return the distinct neighbors of each row."""
        return self._adjacency_for(sources).expand(sources, accepted_rows)

    def union(self, sources: IntArray) -> IndexArray:
        """Return the neighbors of all rows."""
        return self._adjacency_for(sources).union(sources)

    @property
    def size(self) -> int:
        """An upper bound on all row ids, or 0 until the lists are built."""
        return self._built_lists.size if self._built_lists is not None else 0

    def expand_edges(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return positions, neighbors and edge row ids, with one entry per edge."""
        return self._adjacency_for(sources).expand_edges(sources)

    def contains(self, sources: IntArray, targets: IntArray) -> Mask:
        """Return whether each target is a neighbor of its source."""
        return self._adjacency_for(sources).contains(sources, targets)

    def _adjacency_for(self, sources: IntArray) -> Adjacency:
        if self._built_lists is not None:
            return self._built_lists
        if sources is not self._last_rows and not self.may_probe(len(sources)):
            self._built_lists = self.build_lists()
            return self._built_lists
        self._last_rows = sources
        return self.probe
