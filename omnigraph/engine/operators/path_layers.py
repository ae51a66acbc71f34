"""Layers of edges between start nodes and the ends of shortest paths, and all paths through the layers.

Layer `h` holds the edges that can be the `h`-th edge of a shortest path. Other modules find the layers and choose
individual paths. Many starts are searched at once, so layers hold places instead of row ids. A place is a number that
encodes a (start, node) pair.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.neighbor_lists import expand_ranges
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.records.frozen import record

from .path_table import PathBlock, start_block
from .rows import IntArray, Mask

BYTES_PER_EDGE = 48  # peak memory per followed edge in bytes: positions, neighbors, edges and types
_BYTES_PER_MEMBER = 24  # bytes per node on an enumerated path, including its edge and edge type


@record(eq=False)
class EdgeLayer:
    """Edges as parallel arrays: source and target (as encoded (start, node) pairs), row id, and edge type index."""

    sources: IntArray
    targets: IntArray
    edges: IntArray
    edge_types: npt.NDArray[np.int16]

    def take(self, positions: Mask | IntArray) -> "EdgeLayer":
        """Return the edges at the given positions, or where the mask is true."""
        return EdgeLayer(
            self.sources[positions], self.targets[positions], self.edges[positions], self.edge_types[positions]
        )

    def reversed(self) -> "EdgeLayer":
        """Return the same edges with sources and targets swapped."""
        return EdgeLayer(self.targets, self.sources, self.edges, self.edge_types)


@record(eq=False)
class PathLayers:
    """The layers found by a search from the given starts; `ends[h]` holds the ends of the paths with `h` edges."""

    starts: IntArray
    layers: list[EdgeLayer]
    ends: list[IntArray]


def follow_edges(
    context: ExecutionContext, adjacencies: Sequence[Adjacency], places: IntArray, stride: int
) -> EdgeLayer:
    """Return all edges that leave the given (start, node) pairs."""
    nodes = places % stride
    edge_count = sum(int(adjacency.edge_degrees(nodes).sum()) for adjacency in adjacencies)
    context.meter.charge_bytes(edge_count * BYTES_PER_EDGE)
    steps = [adjacency.expand_edges(nodes) for adjacency in adjacencies]
    edge_types = np.repeat(np.arange(len(steps), dtype=np.int16), [len(step[0]) for step in steps])
    sources = places[np.concatenate([step[0] for step in steps])]
    targets = np.concatenate([step[1] for step in steps])
    return EdgeLayer(
        sources, sources - sources % stride + targets, np.concatenate([step[2] for step in steps]), edge_types
    )


def prune_layers(found: PathLayers) -> PathLayers:
    """Return only the edges that can lead to an end."""
    layers: list[EdgeLayer] = []
    needed = np.empty(0, np.int64)
    for length in range(len(found.layers), 0, -1):
        needed = np.union1d(needed, found.ends[length])
        layer = found.layers[length - 1]
        layers.append(layer.take(np.isin(layer.targets, needed)))
        needed = np.unique(layers[-1].sources)
    return PathLayers(found.starts, layers[::-1], found.ends)


def all_paths(context: ExecutionContext, found: PathLayers) -> list[PathBlock]:
    """Return all paths to the ends, grouped by length."""
    pruned = prune_layers(found)
    paths = start_block(pruned.starts)
    blocks = [paths.take(np.isin(paths.nodes[:, -1], pruned.ends[0]))]
    for length, layer in enumerate(pruned.layers, 1):
        paths = _extend_paths(context, paths, layer)
        blocks.append(paths.take(np.isin(paths.nodes[:, -1], pruned.ends[length])))
    return blocks


def _extend_paths(context: ExecutionContext, paths: PathBlock, layer: EdgeLayer) -> PathBlock:
    layer = layer.take(np.argsort(layer.sources, kind="stable"))
    first = np.searchsorted(layer.sources, paths.nodes[:, -1], side="left")
    counts = np.searchsorted(layer.sources, paths.nodes[:, -1], side="right") - first
    context.meter.charge_bytes(int(counts.sum()) * (paths.nodes.shape[1] + 1) * _BYTES_PER_MEMBER)
    return append_edges(paths, np.repeat(np.arange(len(counts)), counts), layer.take(expand_ranges(first, counts)))


def append_edges(paths: PathBlock, positions: IntArray, layer: EdgeLayer) -> PathBlock:
    """Return the paths at the given positions, each extended by one edge."""
    return PathBlock(
        np.column_stack([paths.nodes[positions], layer.targets]),
        np.column_stack([paths.edges[positions], layer.edges]),
        np.column_stack([paths.edge_types[positions], layer.edge_types]),
    )
