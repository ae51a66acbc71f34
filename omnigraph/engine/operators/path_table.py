"""Storage for the paths that a path variable refers to: flat arrays of row ids.

This module defines the layout of the arrays. A path variable holds positions in a path table, so rows can be filtered
and repeated without copying paths. The nodes and edges of paths are loaded on first use, because many queries need only
the length or the cost. Other modules read the ids and properties of these nodes and edges.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

_Ids = npt.NDArray[np.int64]
_TypeIndexes = npt.NDArray[np.int16]
_BYTES_PER_EDGE = 18  # bytes per edge of a path: its row id, its type and one more node


@record(eq=False)
class PathBlock:
    """Paths of one length, as arrays with one row per path and one column per node or edge."""

    nodes: _Ids
    edges: _Ids
    edge_types: _TypeIndexes

    def reversed(self) -> "PathBlock":
        """Return the same paths in reverse, from the last node to the first."""
        return PathBlock(self.nodes[:, ::-1], self.edges[:, ::-1], self.edge_types[:, ::-1])

    def take(self, positions: npt.NDArray[np.bool_] | _Ids) -> "PathBlock":
        """Return the paths at the given positions, or where the mask is true."""
        return PathBlock(self.nodes[positions], self.edges[positions], self.edge_types[positions])


@record(eq=False)
class PathGroup:
    """Paths of one length. Until `load_block` is called, only their last nodes and their costs are known."""

    length: int
    ends: _Ids
    load_block: Callable[[], PathBlock]
    costs: npt.NDArray[np.float64] | None = None

    @classmethod
    def of_block(cls, block: PathBlock, costs: npt.NDArray[np.float64] | None = None) -> "PathGroup":
        """Return a group of paths whose nodes and edges are already known."""
        return cls(block.edges.shape[1], block.nodes[:, -1], lambda: block, costs)

    @property
    def nbytes(self) -> int:
        """The total size of all arrays in bytes after the block has been loaded."""
        return len(self.ends) * (16 + self.length * _BYTES_PER_EDGE)


@record(eq=False)
class PathMembers:
    """The nodes and edges of all paths, one path after another, and the index of each edge's type."""

    nodes: _Ids
    edges: _Ids
    edge_types: _TypeIndexes


@record(eq=False)
class PathTable:
    """Flat arrays of paths. Path `i` has the edges `starts[i]:starts[i + 1]`, and its nodes begin at `starts[i] + i`.

    `edge_types` holds the index of each edge's type in `edge_keys`. `costs` holds the cost of each path, or is None if
    paths have no costs.
    """

    node_key: TableKey
    edge_keys: tuple[TableKey, ...]
    starts: _Ids
    load_members: Callable[[], PathMembers]
    costs: npt.NDArray[np.float64] | None = None

    @property
    def nodes(self) -> _Ids:
        """The row ids of the nodes on all paths."""
        return self.load_members().nodes

    @property
    def edges(self) -> _Ids:
        """The row ids of the edges on all paths."""
        return self.load_members().edges

    @property
    def edge_types(self) -> _TypeIndexes:
        """The index of each edge's type in `edge_keys`."""
        return self.load_members().edge_types

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
        """The total size of all arrays in bytes after the nodes and edges have been loaded."""
        return 2 * self.starts.nbytes + int(self.starts[-1]) * _BYTES_PER_EDGE


def start_block(node_ids: _Ids) -> PathBlock:
    """Return paths without edges, one for each node."""
    path_count = len(node_ids)
    no_edges = np.empty((path_count, 0), np.int64)
    return PathBlock(node_ids.reshape(path_count, 1), no_edges, no_edges.astype(np.int16))


def build_path_table(
    node_key: TableKey,
    edge_keys: tuple[TableKey, ...],
    groups: Sequence[PathGroup],
    costs: npt.NDArray[np.float64] | None = None,
) -> PathTable:
    """Return a table with the paths of all groups, one group after another."""
    lengths = [np.full(len(group.ends), group.length, np.int64) for group in groups]
    starts = np.append(0, np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths])))
    return PathTable(node_key, edge_keys, starts, cache(lambda: _join_blocks(groups)), costs)


def _join_blocks(groups: Sequence[PathGroup]) -> PathMembers:
    no_ids = np.empty(0, np.int64)
    blocks = [group.load_block() for group in groups]
    return PathMembers(
        np.concatenate([no_ids, *(block.nodes.ravel() for block in blocks)]),
        np.concatenate([no_ids, *(block.edges.ravel() for block in blocks)]),
        np.concatenate([no_ids.astype(np.int16), *(block.edge_types.ravel() for block in blocks)]),
    )
