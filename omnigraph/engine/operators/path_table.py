"""Storage for the paths that a path variable refers to: flat arrays of row ids.

A path variable holds positions in a path table, so rows can be filtered and repeated without copying paths. This module
defines only the array layout; other modules read ids and properties.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

_Ids = npt.NDArray[np.int64]
_TypeIndexes = npt.NDArray[np.int16]


@record(eq=False)
class PathTable:
    """Flat path arrays. Path `i` has the edges `starts[i]:starts[i + 1]`; its nodes begin at `starts[i] + i`.

    `edge_types` holds each edge's index in `edge_keys`, and `costs` holds the cost of each path, if paths have costs.
    """

    node_key: TableKey
    edge_keys: tuple[TableKey, ...]
    starts: _Ids
    nodes: _Ids
    edges: _Ids
    edge_types: _TypeIndexes
    costs: npt.NDArray[np.float64] | None = None

    @property
    def lengths(self) -> _Ids:
        """The number of edges on each path."""
        return np.diff(self.starts)

    @property
    def node_starts(self) -> _Ids:
        """The position of each path's first node, followed by the end position of the last path."""
        return self.starts + np.arange(len(self.starts))

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes."""
        return self.starts.nbytes + self.nodes.nbytes + self.edges.nbytes + self.edge_types.nbytes


@record(eq=False)
class PathBlock:
    """Paths of equal length, with one row per path and one column per node or edge."""

    nodes: _Ids
    edges: _Ids
    edge_types: _TypeIndexes

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes."""
        return self.nodes.nbytes + self.edges.nbytes + self.edge_types.nbytes

    def reversed(self) -> "PathBlock":
        """Return the same paths in reverse, from the last node to the first."""
        return PathBlock(self.nodes[:, ::-1], self.edges[:, ::-1], self.edge_types[:, ::-1])

    def take(self, positions: npt.NDArray[np.bool_] | _Ids) -> "PathBlock":
        """Return the paths at the given positions, or where the mask is true."""
        return PathBlock(self.nodes[positions], self.edges[positions], self.edge_types[positions])


def start_block(node_ids: _Ids) -> PathBlock:
    """Return paths without edges, one for each node."""
    path_count = len(node_ids)
    no_edges = np.empty((path_count, 0), np.int64)
    return PathBlock(node_ids.reshape(path_count, 1), no_edges, no_edges.astype(np.int16))


def build_path_table(node_key: TableKey, edge_keys: tuple[TableKey, ...], blocks: Sequence[PathBlock]) -> PathTable:
    """Return a table with the paths of all blocks, in order."""
    no_ids = np.empty(0, np.int64)
    lengths = [np.full(len(block.nodes), block.edges.shape[1], np.int64) for block in blocks]
    starts = np.append(0, np.cumsum(np.concatenate([no_ids, *lengths])))
    return PathTable(
        node_key,
        edge_keys,
        starts,
        np.concatenate([no_ids, *(block.nodes.ravel() for block in blocks)]),
        np.concatenate([no_ids, *(block.edges.ravel() for block in blocks)]),
        np.concatenate([no_ids.astype(np.int16), *(block.edge_types.ravel() for block in blocks)]),
    )
