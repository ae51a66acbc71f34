"""Expansion: from a bound variable along edges to new nodes.

Owns the semantics of a traversal: a set of targets per input row, shortest distances within hop
bounds, self-loops, and one row per edge if the edge is named. Finding neighbours is left to
`adjacency`.
"""

from collections.abc import Sequence

import numpy as np

from omnigraph.engine.adjacency.neighbour_lists import (
    Adjacency,
    DirectedAdjacency,
    IndexArray,
    distinct_pairs,
)
from omnigraph.engine.adjacency.neighbours import choose_adjacency
from omnigraph.engine.context import ExecutionContext
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .filter import filter_rows
from .rows import NULL_ROW, IntArray, Mask, Rows, VariableBinding
from .scan import filtered_row_ids

_DENSE_FACTOR = (
    16  # a mask over all row ids beats sorting if the range is at most this many times larger
)
_FILTER_ALL_DIVISOR = (
    2  # if the pairs exceed this fraction (1/2) of the target nodes, filter all nodes at once
)
_FULL_WALK_DIVISOR = (
    4  # restrict whole lists if a walk follows at least this fraction (1/4) of the edges
)
_MAX_SINGLE_WALKS = 4  # up to this many starts are walked one by one
_BYTES_PER_PAIR = 40  # peak bytes per pair while it is built: positions, list positions, neighbours


def expand(context: ExecutionContext, rows: Rows, expansion: plan.Expand) -> Rows:
    """Join each row with every node it reaches that passes `target_filters`."""
    source_binding = rows[expansion.source]
    start_ids = source_row_ids(context, source_binding, expansion)
    if expansion.edge_variable is not None:
        edge_rows = _expand_edges(context, rows, expansion, start_ids)
    else:
        positions, targets = reachable_pairs(context, start_ids, expansion, apply_filters=True)
        new_bindings = (
            {}
            if expansion.target is None
            else {expansion.target: target_binding(expansion, targets)}
        )
        context.meter.charge_bytes(len(positions) * (rows.bytes_per_row + 8))
        return rows.take_with(positions, new_bindings)
    return filter_rows(context, edge_rows, expansion.target_filters)


def source_row_ids(
    context: ExecutionContext, source_binding: VariableBinding, expansion: plan.Expand
) -> IntArray:
    """Return the row ids that edges start from; null where the variable has another type."""
    edge = context.catalog.edge(expansion.steps[0].edge_type)
    if edge is None:
        return np.full(len(source_binding.row_ids), NULL_ROW, np.int64)
    table_key = TableKey.node(edge.target if expansion.steps[0].direction == "in" else edge.source)
    if source_binding.table_keys == (table_key,):
        return source_binding.row_ids
    return np.where(source_binding.is_type(table_key), source_binding.row_ids, NULL_ROW)


def reachable_pairs(
    context: ExecutionContext,
    start_ids: IntArray,
    expansion: plan.Expand,
    *,
    apply_filters: bool = False,
) -> tuple[IntArray, IntArray]:
    """Return (positions into `start_ids`, nodes): the set reached from each start within bounds.

    With `apply_filters`, only nodes that pass the target filters of the expansion.
    """
    filter_later = apply_filters and bool(expansion.target_filters) and expansion.target is not None
    adjacencies = [
        choose_adjacency(context, step.edge_type, step.direction, len(start_ids))
        for step in expansion.steps
    ]
    if expansion.max_hops == 1 or not _can_chain(context, expansion):
        if expansion.min_hops > 1:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        pair_count = sum(
            int(step_adjacency.degrees(start_ids).sum()) for step_adjacency in adjacencies
        )
        accepted_rows = None
        if (
            filter_later
            and pair_count
            > context.row_count(TableKey.node(expansion.target_type)) // _FILTER_ALL_DIVISOR
        ):
            filter_later, accepted_rows = False, _accepted_targets(context, expansion)
            restricted = [
                _restrict_adjacency(context, step_adjacency, accepted_rows, pair_count)
                for step_adjacency in adjacencies
            ]
            accepted_rows = (
                accepted_rows
                if any(
                    step_adjacency is original
                    for step_adjacency, original in zip(restricted, adjacencies, strict=True)
                )
                else None
            )
            adjacencies = restricted
            pair_count = sum(
                int(step_adjacency.degrees(start_ids).sum()) for step_adjacency in adjacencies
            )
        pairs = _expand_step(context, adjacencies, start_ids, pair_count, accepted_rows)
    else:
        distinct_starts, start_positions = np.unique(start_ids, return_inverse=True)
        walk_function = (
            _walk_each_start
            if len(distinct_starts) <= _MAX_SINGLE_WALKS and _row_id_bound(adjacencies)
            else _walk_breadth_first
        )
        walked_pairs = walk_function(
            context, adjacencies, distinct_starts, expansion.min_hops, expansion.max_hops
        )
        pairs = _repeat_for_positions(context, *walked_pairs, start_positions, len(distinct_starts))
    return _filter_targets(context, expansion, *pairs) if filter_later else pairs


def _can_chain(context: ExecutionContext, expansion: plan.Expand) -> bool:
    """Return whether a second hop can follow the first: only within one node type."""
    edge = context.catalog.edge(expansion.steps[0].edge_type)
    return edge is not None and edge.source == edge.target


def _accepted_targets(context: ExecutionContext, expansion: plan.Expand) -> Mask:
    """Return a mask by row id of target nodes that pass the filters; its last entry is False."""
    target_ids = filtered_row_ids(
        context, TableKey.node(expansion.target_type), expansion.target_filters
    )
    is_accepted = np.zeros(int(target_ids.max()) + 2 if len(target_ids) else 1, np.bool_)
    is_accepted[target_ids] = True
    return is_accepted


def _restrict_adjacency(
    context: ExecutionContext, full_adjacency: Adjacency, accepted_rows: Mask, pair_count: int
) -> Adjacency:
    """Restrict the lists to accepted nodes if a walk follows most edges; cached for later walks."""
    if not isinstance(full_adjacency, DirectedAdjacency) or pair_count * _FULL_WALK_DIVISOR < len(
        full_adjacency.lists.values
    ):
        return full_adjacency
    restricted_cache: list[tuple[DirectedAdjacency, Mask, DirectedAdjacency]] = (
        context.adjacency_cache.setdefault("thinned", [])
    )
    for cached_full, cached_rows, restricted in restricted_cache:
        if cached_full is full_adjacency and np.array_equal(cached_rows, accepted_rows):
            return restricted
    context.meter.charge_bytes(len(full_adjacency.lists.values) * 9)
    restricted = DirectedAdjacency(full_adjacency.lists.restrict_to(accepted_rows))
    restricted_cache.append((full_adjacency, accepted_rows, restricted))
    return restricted


def _expand_step(
    context: ExecutionContext,
    adjacencies: Sequence[Adjacency],
    source_ids: IntArray,
    pair_count: int | None = None,
    accepted_rows: Mask | None = None,
) -> tuple[IntArray, IntArray]:
    """Return the set of neighbours of each source over all adjacencies."""
    if pair_count is None:
        pair_count = sum(int(adjacency.degrees(source_ids).sum()) for adjacency in adjacencies)
    context.meter.charge_bytes(pair_count * _BYTES_PER_PAIR)
    pair_blocks = [adjacency.expand(source_ids, accepted_rows) for adjacency in adjacencies]
    if len(pair_blocks) == 1:
        return pair_blocks[0]
    return distinct_pairs(
        np.concatenate([adjacency for adjacency, _ in pair_blocks]),
        np.concatenate([adjacency for _, adjacency in pair_blocks]),
    )


def _walk_breadth_first(
    context: ExecutionContext,
    adjacencies: Sequence[Adjacency],
    start_ids: IntArray,
    min_hops: int,
    max_hops: int,
) -> tuple[IntArray, IntArray]:
    """Walk from all starts at once; return the nodes whose shortest distance is within bounds.

    A node with a self-loop that was reached one hop before `min_hops` is emitted through its loop.
    """
    owners = np.arange(len(start_ids), dtype=np.int64)
    is_bound = start_ids >= 0
    owners, frontier = owners[is_bound], start_ids[is_bound]
    seen_pairs = (owners, frontier)
    emitted: list[tuple[IntArray, IntArray]] = []
    for distance in range(1, max_hops + 1):
        if distance == min_hops:
            loop_positions = _self_loop_positions(adjacencies, frontier)
            emitted.append((owners[loop_positions], frontier[loop_positions]))
        positions, neighbours = _expand_step(context, adjacencies, frontier)
        owners, frontier = _subtract_pairs(
            distinct_pairs(owners[positions], neighbours), seen_pairs
        )
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


def _walk_each_start(
    context: ExecutionContext,
    adjacencies: Sequence[Adjacency],
    start_ids: IntArray,
    min_hops: int,
    max_hops: int,
) -> tuple[IntArray, IntArray]:
    """Walk from one start after another, with a mask of the nodes seen so far."""
    nodes_by_start = [
        _walk_from(context, adjacencies, int(start), min_hops, max_hops) for start in start_ids
    ]
    owners = np.repeat(
        np.arange(len(nodes_by_start), dtype=np.int64),
        [len(start_nodes) for start_nodes in nodes_by_start],
    )
    return owners, np.concatenate([np.empty(0, np.int64), *nodes_by_start])


def _walk_from(
    context: ExecutionContext,
    adjacencies: Sequence[Adjacency],
    start_id: int,
    min_hops: int,
    max_hops: int,
) -> IntArray:
    row_id_bound = _row_id_bound(adjacencies)
    if not 0 <= start_id < row_id_bound:
        return np.empty(0, np.int64)
    is_seen = np.zeros(row_id_bound, np.bool_)
    is_seen[start_id] = True
    frontier = np.array([start_id], np.int64)
    emitted = [np.empty(0, np.int64)]
    for distance in range(1, max_hops + 1):
        if distance == min_hops:
            emitted.append(frontier[_self_loop_positions(adjacencies, frontier)])
        pair_count = sum(int(adjacency.degrees(frontier).sum()) for adjacency in adjacencies)
        context.meter.charge_bytes(pair_count * 16)
        neighbours = np.concatenate([adjacency.union(frontier) for adjacency in adjacencies])
        context.meter.release_bytes(pair_count * 16)
        frontier = _unseen_nodes(neighbours, is_seen)
        if len(frontier) == 0:
            break
        is_seen[frontier] = True
        if distance >= min_hops:
            emitted.append(frontier)
    return np.concatenate(emitted)


def _unseen_nodes(neighbours: IndexArray, is_seen: Mask) -> IntArray:
    """Return the distinct neighbours that were not seen yet, sorted."""
    if len(neighbours) * _DENSE_FACTOR > len(is_seen):
        is_unseen = np.zeros(len(is_seen), np.bool_)
        is_unseen[neighbours] = True
        is_unseen &= ~is_seen
        return np.flatnonzero(is_unseen)
    return np.unique(neighbours[~is_seen[neighbours]]).astype(np.int64, copy=False)


def _row_id_bound(adjacencies: Sequence[Adjacency]) -> int:
    """Return an upper bound of all reachable row ids; 0 if unknown."""
    return (
        max(adjacency.size for adjacency in adjacencies)
        if all(adjacency.size for adjacency in adjacencies)
        else 0
    )


def _self_loop_positions(adjacencies: Sequence[Adjacency], nodes: IntArray) -> IntArray:
    has_loop = np.zeros(len(nodes), np.bool_)
    for adjacency in adjacencies:
        has_loop |= adjacency.contains(nodes, nodes)
    return np.flatnonzero(has_loop)


def _subtract_pairs(
    new_pairs: tuple[IntArray, IntArray], known_pairs: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the new pairs that are not among the known pairs; both inputs are sorted."""
    new_keys, known_keys = _pack_pairs(*new_pairs), _pack_pairs(*known_pairs)
    key_positions = np.searchsorted(known_keys, new_keys)
    key_positions[key_positions == len(known_keys)] = 0
    is_unknown = (
        known_keys[key_positions] != new_keys
        if len(known_keys)
        else np.ones(len(new_keys), np.bool_)
    )
    return new_pairs[0][is_unknown], new_pairs[1][is_unknown]


def _merge_pairs(
    first_pairs: tuple[IntArray, IntArray], second_pairs: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    return distinct_pairs(
        np.concatenate([first_pairs[0], second_pairs[0]]),
        np.concatenate([first_pairs[1], second_pairs[1]]),
    )


def _pack_pairs(owners: IntArray, nodes: IntArray) -> IntArray:
    return (owners << 32) | nodes


def _repeat_for_positions(
    context: ExecutionContext,
    owners: IntArray,
    nodes: IntArray,
    start_positions: IntArray,
    start_count: int,
) -> tuple[IntArray, IntArray]:
    """Repeat the nodes reached from each distinct start for every position with this start."""
    from omnigraph.engine.adjacency.neighbour_lists import NeighbourLists

    owner_order = np.lexsort((nodes, owners))
    list_starts = np.zeros(start_count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=start_count), out=list_starts[1:])
    reached_lists = NeighbourLists(list_starts, nodes[owner_order])
    context.meter.charge_bytes(
        int(reached_lists.bounds(start_positions)[1].sum()) * _BYTES_PER_PAIR
    )
    return reached_lists.expand(start_positions)


def _expand_edges(
    context: ExecutionContext, rows: Rows, expansion: plan.Expand, start_ids: IntArray
) -> Rows:
    """Return one row per edge; an alternation concatenates the edges of its types."""
    step_results = []
    for step in expansion.steps:
        step_adjacency = choose_adjacency(
            context, step.edge_type, step.direction, len(start_ids), with_edges=True
        )
        context.meter.charge_bytes(
            int(step_adjacency.edge_degrees(start_ids).sum()) * _BYTES_PER_PAIR
        )
        step_results.append(step_adjacency.expand_edges(start_ids))
    positions = np.concatenate([step_result[0] for step_result in step_results])
    targets = np.concatenate([step_result[1] for step_result in step_results])
    edges = np.concatenate([step_result[2] for step_result in step_results])
    edge_table_keys = tuple(TableKey.edge(step.edge_type) for step in expansion.steps)
    type_indexes = np.repeat(
        np.arange(len(step_results), dtype=np.int16),
        [len(step_result[0]) for step_result in step_results],
    )
    new_bindings = {
        str(expansion.edge_variable): VariableBinding(
            edge_table_keys, edges, type_indexes if len(edge_table_keys) > 1 else None
        )
    }
    if expansion.target is not None:
        new_bindings[expansion.target] = target_binding(expansion, targets)
    context.meter.charge_bytes(len(positions) * (rows.bytes_per_row + 8 * len(new_bindings)))
    return rows.take_with(positions, new_bindings)


def target_binding(expansion: plan.Expand, targets: IntArray) -> VariableBinding:
    """Return the nodes emitted by an expansion as a variable binding."""
    return VariableBinding((TableKey.node(expansion.target_type),), targets)


def _filter_targets(
    context: ExecutionContext, expansion: plan.Expand, positions: IntArray, targets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the pairs whose target passes the filters; each node is tested once."""
    if len(targets) == 0:
        return positions, targets
    row_id_bound = int(targets.max()) + 1
    if row_id_bound > _DENSE_FACTOR * len(targets):
        distinct_targets = np.unique(targets)
    else:
        is_target = np.zeros(row_id_bound, np.bool_)
        is_target[targets] = True
        distinct_targets = np.flatnonzero(is_target)
    variable = str(expansion.target)
    accepted_ids = filter_rows(
        context,
        Rows.from_bindings({variable: target_binding(expansion, distinct_targets)}),
        expansion.target_filters,
    )[variable].row_ids
    if len(accepted_ids) == len(distinct_targets):
        return positions, targets
    is_accepted = np.zeros(row_id_bound, np.bool_)
    is_accepted[accepted_ids] = True
    is_pair_accepted = is_accepted[targets]
    return positions[is_pair_accepted], targets[is_pair_accepted]
