"""Expansion: follow edges from a bound variable to new nodes.

This module defines the semantics of a traversal: each input row has a set of targets, hop bounds apply to the shortest
distance, a self-loop counts as a hop, and a named edge produces one row per edge. The `adjacency` package finds the
neighbors.
"""

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency, DirectedAdjacency, count_pairs
from omnigraph.engine.adjacency.neighbors import choose_adjacency
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .breadth_first import (
    BYTES_PER_PAIR,
    DENSE_FACTOR,
    expand_step,
    row_id_bound,
    walk_breadth_first,
    walk_each_start,
    walk_single_start,
)
from .edge_tests import choose_adjacencies
from .filter import MIN_ENTITY_ROWS, filter_rows
from .rows import NULL_ROW, IntArray, Mask, Rows, VariableBinding
from .scan import filtered_row_ids

# If the number of pairs exceeds half the number of target nodes, all target nodes are filtered at once.
_FILTER_ALL_DIVISOR = 2
# If a traversal follows at least 1/4 of the edges, all neighbor lists are filtered in advance, not just those that it
# reads.
_FULL_WALK_DIVISOR = 4
_MAX_SINGLE_WALKS = 4  # maximum number of start nodes that are processed one by one


def expand(context: ExecutionContext, rows: Rows, expansion: plan.Expand) -> Rows:
    """Join each row with the nodes that the expansion reaches from its source node and that pass `target_filters`."""
    source_binding = rows[expansion.source]
    start_ids = source_row_ids(context, source_binding, expansion)
    if expansion.edge_variable is not None:
        edge_rows = _expand_edges(context, rows, expansion, start_ids)
    else:
        positions, targets = reachable_pairs(context, start_ids, expansion, apply_filters=True)
        new_bindings = {} if expansion.target is None else {expansion.target: target_binding(expansion, targets)}
        context.meter.charge_bytes(len(positions) * (rows.bytes_per_row + 8))
        return rows.take_with(positions, new_bindings)
    return filter_rows(context, edge_rows, expansion.target_filters)


def source_row_ids(context: ExecutionContext, source_binding: VariableBinding, expansion: plan.Expand) -> IntArray:
    """Return the row ids of the nodes where the edges start, or null where the bound node has a different type."""
    edge = context.catalog.edge(expansion.steps[0].edge_type)
    if edge is None:
        return np.full(len(source_binding.row_ids), NULL_ROW, np.int64)
    table_key = TableKey.node(edge.target if expansion.steps[0].direction == "in" else edge.source)
    if source_binding.table_keys == (table_key,):
        return source_binding.row_ids
    return np.where(source_binding.is_type(table_key), source_binding.row_ids, NULL_ROW)


def reachable_pairs(
    context: ExecutionContext, start_ids: IntArray, expansion: plan.Expand, *, apply_filters: bool = False
) -> tuple[IntArray, IntArray]:
    """Return the nodes that each start reaches within the hop bounds, as parallel arrays of positions and nodes.

    Each position is an index in `start_ids`, and no node is repeated for the same position. With `apply_filters`, only
    nodes that pass the target filters of the expansion are returned.
    """
    filter_later = apply_filters and bool(expansion.target_filters) and expansion.target is not None
    adjacencies = choose_adjacencies(context, expansion.steps, expansion.edge_test, len(start_ids))
    if is_single_step(context, expansion):
        if expansion.min_hops > 1:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        pair_count = count_pairs(adjacencies, start_ids)
        accepted_rows = None
        if filter_later and pair_count > context.row_count(TableKey.node(expansion.target_type)) // _FILTER_ALL_DIVISOR:
            filter_later, accepted_rows = False, _accepted_targets(context, expansion)
            restricted = [
                _restrict_adjacency(context, step_adjacency, accepted_rows, pair_count)
                for step_adjacency in adjacencies
            ]
            accepted_rows = (
                accepted_rows
                if any(
                    step_adjacency is original for step_adjacency, original in zip(restricted, adjacencies, strict=True)
                )
                else None
            )
            adjacencies = restricted
            pair_count = count_pairs(adjacencies, start_ids)
        pairs = expand_step(context, adjacencies, start_ids, pair_count, accepted_rows)
    elif len(start_ids) == 1 and row_id_bound(adjacencies):
        pairs = walk_single_start(context, adjacencies, int(start_ids[0]), expansion.min_hops, expansion.max_hops)
    else:
        distinct_starts, start_positions = np.unique(start_ids, return_inverse=True)
        walk_function = (
            walk_each_start
            if len(distinct_starts) <= _MAX_SINGLE_WALKS and row_id_bound(adjacencies)
            else walk_breadth_first
        )
        walked_pairs = walk_function(context, adjacencies, distinct_starts, expansion.min_hops, expansion.max_hops)
        pairs = _repeat_for_positions(context, *walked_pairs, start_positions, len(distinct_starts))
    return _filter_targets(context, expansion, *pairs) if filter_later else pairs


def is_single_step(context: ExecutionContext, expansion: plan.Expand) -> bool:
    """Return whether the expansion reaches each of its targets in exactly one hop."""
    return expansion.min_hops > 0 and (expansion.max_hops == 1 or not _can_chain(context, expansion))


def _can_chain(context: ExecutionContext, expansion: plan.Expand) -> bool:
    """Return whether the expansion can take a second hop, which requires that both endpoints have the same type."""
    edge = context.catalog.edge(expansion.steps[0].edge_type)
    return edge is not None and edge.source == edge.target


def _accepted_targets(context: ExecutionContext, expansion: plan.Expand) -> Mask:
    """Return a mask, indexed by row id, of the target nodes that pass the filters. The last entry is False."""
    target_ids = filtered_row_ids(context, TableKey.node(expansion.target_type), expansion.target_filters)
    is_accepted = np.zeros(int(target_ids.max()) + 2 if len(target_ids) else 1, np.bool_)
    is_accepted[target_ids] = True
    return is_accepted


def _restrict_adjacency(
    context: ExecutionContext, full_adjacency: Adjacency, accepted_rows: Mask, pair_count: int
) -> Adjacency:
    """Restrict all lists to the accepted nodes and cache the result, but only if the traversal follows many edges."""
    if not isinstance(full_adjacency, DirectedAdjacency) or pair_count * _FULL_WALK_DIVISOR < len(
        full_adjacency.lists.values
    ):
        return full_adjacency
    restricted_cache: list[tuple[DirectedAdjacency, Mask, DirectedAdjacency]] = context.adjacency_cache.setdefault(
        "thinned", []
    )
    for cached_full, cached_rows, restricted in restricted_cache:
        if cached_full is full_adjacency and np.array_equal(cached_rows, accepted_rows):
            return restricted
    context.meter.charge_bytes(len(full_adjacency.lists.values) * 9)
    restricted = DirectedAdjacency(full_adjacency.lists.restrict_to(accepted_rows))
    restricted_cache.append((full_adjacency, accepted_rows, restricted))
    return restricted


def _repeat_for_positions(
    context: ExecutionContext, owners: IntArray, nodes: IntArray, start_positions: IntArray, start_count: int
) -> tuple[IntArray, IntArray]:
    """For every position, repeat the nodes reached from the start at that position."""
    from omnigraph.engine.adjacency.neighbor_lists import NeighborLists

    owner_order = np.lexsort((nodes, owners))
    list_starts = np.zeros(start_count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=start_count), out=list_starts[1:])
    reached_lists = NeighborLists(list_starts, nodes[owner_order])
    context.meter.charge_bytes(int(reached_lists.bounds(start_positions)[1].sum()) * BYTES_PER_PAIR)
    return reached_lists.expand(start_positions)


def _expand_edges(context: ExecutionContext, rows: Rows, expansion: plan.Expand, start_ids: IntArray) -> Rows:
    """Return one row per edge. For an alternation of edge types, the edges of all these types are concatenated."""
    step_results = []
    for step in expansion.steps:
        step_adjacency = choose_adjacency(context, step.edge_type, step.direction, len(start_ids), with_edges=True)
        context.meter.charge_bytes(int(step_adjacency.edge_degrees(start_ids).sum()) * BYTES_PER_PAIR)
        step_results.append(step_adjacency.expand_edges(start_ids))
    positions = np.concatenate([step_result[0] for step_result in step_results])
    targets = np.concatenate([step_result[1] for step_result in step_results])
    edges = np.concatenate([step_result[2] for step_result in step_results])
    edge_table_keys = tuple(TableKey.edge(step.edge_type) for step in expansion.steps)
    type_indexes = np.repeat(
        np.arange(len(step_results), dtype=np.int16), [len(step_result[0]) for step_result in step_results]
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
    """Bind the target variable to the nodes that an expansion reached."""
    return VariableBinding((TableKey.node(expansion.target_type),), targets)


def _filter_targets(
    context: ExecutionContext, expansion: plan.Expand, positions: IntArray, targets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the pairs whose target passes the filters, testing each node once."""
    if len(targets) == 0:
        return positions, targets
    if len(targets) <= MIN_ENTITY_ROWS:  # deduplicating the nodes would cost more than it saves
        pairs = {str(expansion.target): target_binding(expansion, targets), "": VariableBinding((), positions)}
        accepted = filter_rows(context, Rows(len(targets), pairs), expansion.target_filters)
        return accepted[""].row_ids, accepted[str(expansion.target)].row_ids
    row_bound = int(targets.max()) + 1
    if row_bound > DENSE_FACTOR * len(targets):
        distinct_targets = np.unique(targets)
    else:
        is_target = np.zeros(row_bound, np.bool_)
        is_target[targets] = True
        distinct_targets = np.flatnonzero(is_target)
    variable = str(expansion.target)
    accepted_ids = filter_rows(
        context, Rows.from_bindings({variable: target_binding(expansion, distinct_targets)}), expansion.target_filters
    )[variable].row_ids
    if len(accepted_ids) == len(distinct_targets):
        return positions, targets
    is_accepted = np.zeros(row_bound, np.bool_)
    is_accepted[accepted_ids] = True
    is_pair_accepted = is_accepted[targets]
    return positions[is_pair_accepted], targets[is_pair_accepted]
