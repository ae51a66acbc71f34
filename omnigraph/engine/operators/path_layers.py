"""Layers of edges between start nodes and path ends, and functions that select paths through them.

Layer `h` holds the edges that can be the `h`-th edge on a shortest path. This module chooses one path by comparing ids,
or enumerates all paths; other modules find the layers. Because many starts are searched at once, layers hold places
instead of row ids. A place is a number that encodes a (start, node) pair.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.neighbour_lists import expand_ranges, run_starts
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import Codes, dense_ranks
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .order import id_order
from .path_order import type_name_ranks
from .path_table import PathBlock, start_block
from .rows import IntArray, Mask, VariableBinding

BYTES_PER_EDGE = 48  # peak memory per followed edge in bytes: positions, neighbours, edges and types
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
    """The layers found from the given starts; `ends[h]` holds the ends of the paths with `h` edges."""

    starts: IntArray
    layers: list[EdgeLayer]
    ends: list[IntArray]


@record
class PathTables:
    """The tables for a path's nodes and edges, and whether the search runs backward from the path's last node.

    Place `p` encodes the node `p % stride`, reached from start number `p // stride`.
    """

    node_key: TableKey
    edge_keys: tuple[TableKey, ...]
    backward: bool = False
    stride: int = 1 << 62


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


def best_paths(context: ExecutionContext, tables: PathTables, found: PathLayers) -> list[PathBlock]:
    """Return one path to each end, grouped by length; ties are broken by node ids, then by edge ids.

    Ids are compared starting at a path's first node, even if the search runs backward from the last node.
    """
    pruned = prune_layers(found)
    ranking = _IdRanking.of(context, tables, pruned)
    level_places = [pruned.starts]
    chosen_edges: list[EdgeLayer] = []
    path_ranks = np.zeros(len(pruned.starts), np.int64)
    blocks = [_trace_paths(level_places, chosen_edges, pruned.ends[0])]
    for length, layer in enumerate(pruned.layers, 1):
        source_positions = np.searchsorted(level_places[-1], layer.sources)
        source_ranks = ranking.of_nodes(layer.sources) if tables.backward else path_ranks[source_positions]
        order = np.lexsort((ranking.of_edges(layer), source_ranks, layer.targets))
        order = order[run_starts(layer.targets[order])]
        chosen = layer.take(order)
        level_places.append(chosen.targets)
        chosen_edges.append(chosen)
        path_ranks = _rank_pairs(source_ranks[order], ranking.of_nodes(chosen.targets))
        blocks.append(_trace_paths(level_places, chosen_edges, pruned.ends[length]))
    return blocks


def _rank_pairs(first: Codes, second: Codes) -> Codes:
    order = np.lexsort((second, first))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _trace_paths(level_places: list[IntArray], chosen_edges: list[EdgeLayer], ends: IntArray) -> PathBlock:
    """Follow the chosen edges back from the given ends."""
    length = len(chosen_edges)
    nodes, edges = np.empty((len(ends), length + 1), np.int64), np.empty((len(ends), length), np.int64)
    edge_types = np.empty((len(ends), length), np.int16)
    nodes[:, length] = ends
    for position in range(length - 1, -1, -1):
        chosen = chosen_edges[position]
        chosen_positions = np.searchsorted(level_places[position + 1], nodes[:, position + 1])
        nodes[:, position] = chosen.sources[chosen_positions]
        edges[:, position] = chosen.edges[chosen_positions]
        edge_types[:, position] = chosen.edge_types[chosen_positions]
    return PathBlock(nodes, edges, edge_types)


@record(eq=False)
class _IdRanking:
    """Nodes and edges ranked by id; if no choice depends on ids, no ids are read and all ranks are equal."""

    nodes: IntArray
    node_ranks: Codes
    edges: IntArray
    edge_ranks: Codes
    type_count: int
    stride: int

    @classmethod
    def of(cls, context: ExecutionContext, tables: PathTables, pruned: PathLayers) -> "_IdRanking":
        """Return the ranks needed to choose between the edges of the layers."""
        no_ids = np.empty(0, np.int64)
        has_choice = any(len(np.unique(layer.targets)) < len(layer.targets) for layer in pruned.layers)
        if not has_choice:
            return cls(no_ids, no_ids, no_ids, no_ids, len(tables.edge_keys), tables.stride)
        places = np.concatenate([pruned.starts, *(layer.targets for layer in pruned.layers)])
        nodes = np.unique(places % tables.stride)
        node_ranks = dense_ranks(id_order(context, VariableBinding((tables.node_key,), nodes)))
        parallel = [_parallel_edges(layer) for layer in pruned.layers]
        edges, edge_ranks = _rank_edges(context, tables.edge_keys, parallel)
        return cls(nodes, node_ranks, edges, edge_ranks, len(tables.edge_keys), tables.stride)

    def of_nodes(self, places: IntArray) -> Codes:
        """Return the rank of each (start, node) pair's node."""
        if len(self.nodes) == 0:
            return np.zeros(len(places), np.int64)
        return self.node_ranks[np.searchsorted(self.nodes, places % self.stride)]

    def of_edges(self, layer: EdgeLayer) -> Codes:
        """Return a rank for each edge; edges without a parallel edge get an arbitrary rank."""
        if len(self.edges) == 0:
            return np.zeros(len(layer.edges), np.int64)
        positions = np.searchsorted(self.edges, layer.edges * self.type_count + layer.edge_types)
        return self.edge_ranks[np.minimum(positions, len(self.edges) - 1)]


def _parallel_edges(layer: EdgeLayer) -> EdgeLayer:
    """Return the edges that join the same two nodes as another edge in the layer."""
    order = np.lexsort((layer.targets, layer.sources))
    is_first = run_starts(layer.sources[order]) | run_starts(layer.targets[order])
    is_single = is_first & np.append(is_first[1:], True)
    return layer.take(order[~is_single])


def _rank_edges(
    context: ExecutionContext, edge_keys: tuple[TableKey, ...], layers: Sequence[EdgeLayer]
) -> tuple[IntArray, Codes]:
    edges = np.concatenate([np.empty(0, np.int64), *(layer.edges for layer in layers)])
    edge_types = np.concatenate([np.empty(0, np.int16), *(layer.edge_types for layer in layers)])
    numbers, first_positions = np.unique(edges * len(edge_keys) + edge_types, return_index=True)
    if len(numbers) == 0:
        return numbers, numbers
    distinct_types = edge_types[first_positions]
    binding = VariableBinding(edge_keys, edges[first_positions], distinct_types if len(edge_keys) > 1 else None)
    id_ranks = dense_ranks(id_order(context, binding))
    return numbers, id_ranks * len(edge_keys) + type_name_ranks(edge_keys)[distinct_types]
