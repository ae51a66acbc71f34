"""Choose one path to each end from the shortest or cheapest paths.

Ties are broken by the ids of the nodes, and then by the ids of the edges. Ids are read only where there is a choice:
node ids if a node can be reached from several other nodes, and edge ids if parallel edges join two nodes on a chosen
path.
"""

import numpy as np

from omnigraph.engine.adjacency.neighbor_lists import run_starts
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import Codes, dense_ranks
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .order import id_order
from .path_layers import EdgeLayer, PathLayers, prune_layers
from .path_order import type_name_ranks
from .path_table import PathBlock
from .rows import IntArray, VariableBinding


@record
class PathTables:
    """The tables that contain the nodes and edges of paths, and whether a search runs backward from the last nodes.

    The number `p` encodes the node `p % stride`, reached from the start with number `p // stride`.
    """

    node_key: TableKey
    edge_keys: tuple[TableKey, ...]
    backward: bool = False
    stride: int = 1 << 62


def choose_paths(context: ExecutionContext, tables: PathTables, found: PathLayers) -> list[PathBlock]:
    """Return one path to each end, grouped by length.

    Ids are compared starting at the first node of a path, even if the search runs backward from the last node.
    """
    pruned = prune_layers(found)
    chosen = _choose_sources(context, tables, pruned)
    node_blocks = [_trace_nodes(chosen[:length], ends) for length, ends in enumerate(pruned.ends)]
    chosen = _choose_edges(context, tables, pruned, chosen, node_blocks)
    return [_add_edges(nodes, chosen) for nodes in node_blocks]


def _choose_sources(context: ExecutionContext, tables: PathTables, pruned: PathLayers) -> list[EdgeLayer]:
    """Return one edge to each target in a layer, sorted by target.

    If several sources lead to a target, their ids determine which edge is chosen.
    """
    ranking = _NodeRanking.of_layers(context, tables, pruned)
    places, path_ranks = pruned.starts, np.zeros(len(pruned.starts), np.int64)
    chosen: list[EdgeLayer] = []
    for layer in pruned.layers:
        source_positions = np.searchsorted(places, layer.sources)
        source_ranks = ranking.of(layer.sources) if tables.backward else path_ranks[source_positions]
        order = np.lexsort((source_ranks, layer.targets))
        order = order[run_starts(layer.targets[order])]
        chosen.append(layer.take(order))
        places = chosen[-1].targets
        path_ranks = _rank_pairs(source_ranks[order], ranking.of(places))
    return chosen


def _rank_pairs(first: Codes, second: Codes) -> Codes:
    order = np.lexsort((second, first))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _trace_nodes(chosen: list[EdgeLayer], ends: IntArray) -> IntArray:
    """Return the nodes on the chosen paths to the given ends, with one row per path and one column per node."""
    nodes = np.empty((len(ends), len(chosen) + 1), np.int64)
    nodes[:, len(chosen)] = ends
    for column in range(len(chosen) if len(ends) else 0, 0, -1):
        edges = chosen[column - 1]
        nodes[:, column - 1] = edges.sources[np.searchsorted(edges.targets, nodes[:, column])]
    return nodes


def _choose_edges(
    context: ExecutionContext,
    tables: PathTables,
    pruned: PathLayers,
    chosen: list[EdgeLayer],
    node_blocks: list[IntArray],
) -> list[EdgeLayer]:
    """Return the chosen edges; among parallel edges on a chosen path, choose the one with the lowest id."""
    candidates = {}
    for number, (layer, edges) in enumerate(zip(pruned.layers, chosen, strict=True)):
        is_candidate = edges.sources[np.searchsorted(edges.targets, layer.targets)] == layer.sources
        if np.count_nonzero(is_candidate) > len(edges.targets):
            used_places = np.concatenate([nodes[:, number + 1] for nodes in node_blocks[number + 1 :]])
            candidates[number] = layer.take(is_candidate & np.isin(layer.targets, used_places))
    if not candidates:
        return chosen
    ranking = _EdgeRanking.of(context, tables, [_parallel_edges(layer) for layer in candidates.values()])
    return [
        _first_edges(candidates[number], ranking) if number in candidates else edges
        for number, edges in enumerate(chosen)
    ]


def _first_edges(layer: EdgeLayer, ranking: "_EdgeRanking") -> EdgeLayer:
    order = np.lexsort((ranking.of_edges(layer), layer.targets))
    return layer.take(order[run_starts(layer.targets[order])])


def _parallel_edges(layer: EdgeLayer) -> EdgeLayer:
    """Return the edges whose target is also the target of another edge in the layer."""
    order = np.argsort(layer.targets, kind="stable")
    is_first = run_starts(layer.targets[order])
    is_single = is_first & np.append(is_first[1:], True)
    return layer.take(order[~is_single])


def _add_edges(nodes: IntArray, chosen: list[EdgeLayer]) -> PathBlock:
    path_count, length = len(nodes), nodes.shape[1] - 1
    edge_ids, edge_types = np.empty((path_count, length), np.int64), np.empty((path_count, length), np.int16)
    for column in range(length if path_count else 0):
        positions = np.searchsorted(chosen[column].targets, nodes[:, column + 1])
        edge_ids[:, column] = chosen[column].edges[positions]
        edge_types[:, column] = chosen[column].edge_types[positions]
    return PathBlock(nodes, edge_ids, edge_types)


@record(eq=False)
class _NodeRanking:
    """Ranks of nodes by id. If no choice depends on ids, no ids are read and all ranks are equal."""

    nodes: IntArray
    ranks: Codes
    stride: int

    @classmethod
    def of_layers(cls, context: ExecutionContext, tables: PathTables, pruned: PathLayers) -> "_NodeRanking":
        """Return the ranks needed to choose between the sources of the layers."""
        if not any(map(_has_choice, pruned.layers)):
            no_ids = np.empty(0, np.int64)
            return cls(no_ids, no_ids, tables.stride)
        places = np.concatenate([pruned.starts, *(layer.targets for layer in pruned.layers)])
        nodes = np.unique(places % tables.stride)
        ranks = dense_ranks(id_order(context, VariableBinding((tables.node_key,), nodes)))
        return cls(nodes, ranks, tables.stride)

    def of(self, places: IntArray) -> Codes:
        """Return the rank of the node in each (start, node) pair."""
        if len(self.nodes) == 0:
            return np.zeros(len(places), np.int64)
        return self.ranks[np.searchsorted(self.nodes, places % self.stride)]


def _has_choice(layer: EdgeLayer) -> bool:
    """Return whether edges from different sources lead to the same target."""
    if len(np.unique(layer.targets)) == len(layer.targets):
        return False
    order = np.lexsort((layer.sources, layer.targets))
    return bool((~run_starts(layer.targets[order]) & run_starts(layer.sources[order])).any())


@record(eq=False)
class _EdgeRanking:
    """Ranks of parallel edges by id. The rank of an edge without parallel edges is arbitrary."""

    edges: IntArray
    ranks: Codes
    type_count: int

    @classmethod
    def of(cls, context: ExecutionContext, tables: PathTables, parallel: list[EdgeLayer]) -> "_EdgeRanking":
        """Return the ranks of the given edges. If there are no parallel edges, no ids are read."""
        edge_keys, no_ids = tables.edge_keys, np.empty(0, np.int64)
        edges = np.concatenate([no_ids, *(layer.edges for layer in parallel)])
        edge_types = np.concatenate([no_ids.astype(np.int16), *(layer.edge_types for layer in parallel)])
        numbers, first_positions = np.unique(edges * len(edge_keys) + edge_types, return_index=True)
        if len(numbers) == 0:
            return cls(no_ids, no_ids, len(edge_keys))
        distinct_types = edge_types[first_positions]
        binding = VariableBinding(edge_keys, edges[first_positions], distinct_types if len(edge_keys) > 1 else None)
        id_ranks = dense_ranks(id_order(context, binding))
        return cls(numbers, id_ranks * len(edge_keys) + type_name_ranks(edge_keys)[distinct_types], len(edge_keys))

    def of_edges(self, layer: EdgeLayer) -> Codes:
        """Return the rank of each edge."""
        if len(self.edges) == 0:
            return np.zeros(len(layer.edges), np.int64)
        positions = np.searchsorted(self.edges, layer.edges * self.type_count + layer.edge_types)
        return self.ranks[np.minimum(positions, len(self.edges) - 1)]
