"""Breadth-first traversals: find the nodes whose shortest distance from a start node is within the hop bounds."""

from collections.abc import Sequence

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency, count_pairs
from omnigraph.engine.adjacency.neighbor_lists import IndexArray, distinct_pairs, run_starts
from omnigraph.engine.execution_context import ExecutionContext

from .rows import IntArray, Mask

# If the id range is at most 16 times the number of ids, a mask over all row ids is faster than sorting.
DENSE_FACTOR = 16
_MAX_SORTED_NODES = 4_096  # for up to 4,096 nodes, sorting is faster than hashing
BYTES_PER_PAIR = 40  # peak memory per pair in bytes: positions, list positions, neighbors


def expand_step(
    context: ExecutionContext,
    adjacencies: Sequence[Adjacency],
    source_ids: IntArray,
    pair_count: int | None = None,
    accepted_rows: Mask | None = None,
) -> tuple[IntArray, IntArray]:
    """Return the distinct neighbors of each source across all adjacencies, as (position, neighbor) pairs."""
    if pair_count is None:
        pair_count = count_pairs(adjacencies, source_ids)
    context.meter.charge_bytes(pair_count * BYTES_PER_PAIR)
    pair_blocks = [adjacency.expand(source_ids, accepted_rows) for adjacency in adjacencies]
    if len(pair_blocks) == 1:
        return pair_blocks[0]
    return distinct_pairs(
        np.concatenate([positions for positions, _ in pair_blocks]),
        np.concatenate([neighbors for _, neighbors in pair_blocks]),
    )


def walk_breadth_first(
    context: ExecutionContext, adjacencies: Sequence[Adjacency], start_ids: IntArray, min_hops: int, max_hops: int
) -> tuple[IntArray, IntArray]:
    """Traverse from all start nodes at once; return the nodes whose shortest distance is within the hop bounds.

    A node at distance `min_hops - 1` is also returned if it has a self-loop, which adds a hop. If `min_hops` is zero,
    the start nodes are returned as well.
    """
    owners = np.arange(len(start_ids), dtype=np.int64)
    is_bound = start_ids >= 0
    owners, frontier = owners[is_bound], start_ids[is_bound]
    seen_pairs = (owners, frontier)
    emitted: list[tuple[IntArray, IntArray]] = [] if min_hops else [(owners, frontier)]
    for distance in range(1, max_hops + 1):
        if distance == min_hops:
            loop_positions = _self_loop_positions(adjacencies, frontier)
            emitted.append((owners[loop_positions], frontier[loop_positions]))
        positions, neighbors = expand_step(context, adjacencies, frontier)
        owners, frontier = _subtract_pairs(distinct_pairs(owners[positions], neighbors), seen_pairs)
        if len(frontier) == 0:
            break
        seen_pairs = _merge_pairs(seen_pairs, (owners, frontier))
        if distance >= min_hops:
            emitted.append((owners, frontier))
        context.meter.check_timeout()
    empty = np.empty(0, np.int64)
    emitted_owners = [block for block, _ in emitted] or [empty]
    emitted_nodes = [block for _, block in emitted] or [empty]
    return np.concatenate(emitted_owners), np.concatenate(emitted_nodes)


def walk_each_start(
    context: ExecutionContext, adjacencies: Sequence[Adjacency], start_ids: IntArray, min_hops: int, max_hops: int
) -> tuple[IntArray, IntArray]:
    """Run a separate traversal from each start node, marking visited nodes in a boolean mask."""
    nodes_by_start = [_walk_from(context, adjacencies, int(start), min_hops, max_hops) for start in start_ids]
    owners = np.repeat(
        np.arange(len(nodes_by_start), dtype=np.int64), [len(start_nodes) for start_nodes in nodes_by_start]
    )
    return owners, np.concatenate([np.empty(0, np.int64), *nodes_by_start])


def walk_single_start(
    context: ExecutionContext, adjacencies: Sequence[Adjacency], start_id: int, min_hops: int, max_hops: int
) -> tuple[IntArray, IntArray]:
    """Traverse from one start node. Return the reached nodes in ascending order, each with the start position 0."""
    nodes = _walk_from(context, adjacencies, start_id, min_hops, max_hops)
    context.meter.charge_bytes(len(nodes) * BYTES_PER_PAIR)
    nodes.sort()
    return np.zeros(len(nodes), np.int64), nodes


def _walk_from(
    context: ExecutionContext, adjacencies: Sequence[Adjacency], start_id: int, min_hops: int, max_hops: int
) -> IntArray:
    row_bound = row_id_bound(adjacencies)
    if not 0 <= start_id < row_bound:
        return np.full(0 if min_hops or start_id < 0 else 1, start_id, np.int64)
    is_seen = np.zeros(row_bound, np.bool_)
    is_seen[start_id] = True
    frontier = np.array([start_id], np.int64)
    emitted = [frontier if min_hops == 0 else frontier[:0]]
    for distance in range(1, max_hops + 1):
        if distance == min_hops:
            emitted.append(frontier[_self_loop_positions(adjacencies, frontier)])
        pair_count = count_pairs(adjacencies, frontier)
        context.meter.charge_bytes(pair_count * 16)
        neighbor_blocks = [adjacency.union(frontier) for adjacency in adjacencies]
        neighbors = neighbor_blocks[0] if len(neighbor_blocks) == 1 else np.concatenate(neighbor_blocks)
        context.meter.release_bytes(pair_count * 16)
        frontier = unseen_nodes(neighbors, is_seen)
        if len(frontier) == 0:
            break
        is_seen[frontier] = True
        if distance >= min_hops:
            emitted.append(frontier)
    return np.concatenate(emitted)


def unseen_nodes(neighbors: IndexArray, is_seen: Mask) -> IntArray:
    """Return the distinct neighbors that have not been seen yet, sorted."""
    if len(neighbors) * DENSE_FACTOR > len(is_seen):
        is_unseen = np.zeros(len(is_seen), np.bool_)
        is_unseen[neighbors] = True
        is_unseen &= ~is_seen
        return np.flatnonzero(is_unseen)
    unseen_nodes = neighbors[~is_seen[neighbors]]
    if len(unseen_nodes) > _MAX_SORTED_NODES:
        return np.unique(unseen_nodes).astype(np.int64, copy=False)
    unseen_nodes.sort()  # sorting in place is safe, because indexing returned a copy
    return unseen_nodes[run_starts(unseen_nodes)].astype(np.int64, copy=False)


def row_id_bound(adjacencies: Sequence[Adjacency]) -> int:
    """Return an upper bound on all reachable row ids, or 0 if it is unknown."""
    return max(adjacency.size for adjacency in adjacencies) if all(adjacency.size for adjacency in adjacencies) else 0


def _self_loop_positions(adjacencies: Sequence[Adjacency], nodes: IntArray) -> IntArray:
    has_loop = np.zeros(len(nodes), np.bool_)
    for adjacency in adjacencies:
        has_loop |= adjacency.contains(nodes, nodes)
    return np.flatnonzero(has_loop)


def _subtract_pairs(
    new_pairs: tuple[IntArray, IntArray], known_pairs: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the new pairs that are not among the known pairs. Both sets of pairs must be sorted."""
    new_keys, known_keys = _pack_pairs(*new_pairs), _pack_pairs(*known_pairs)
    key_positions = np.searchsorted(known_keys, new_keys)
    key_positions[key_positions == len(known_keys)] = 0
    is_unknown = known_keys[key_positions] != new_keys if len(known_keys) else np.ones(len(new_keys), np.bool_)
    return new_pairs[0][is_unknown], new_pairs[1][is_unknown]


def _merge_pairs(
    first_pairs: tuple[IntArray, IntArray], second_pairs: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    return distinct_pairs(
        np.concatenate([first_pairs[0], second_pairs[0]]), np.concatenate([first_pairs[1], second_pairs[1]])
    )


def _pack_pairs(owners: IntArray, nodes: IntArray) -> IntArray:
    return (owners << 32) | nodes
