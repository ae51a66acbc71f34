"""Shortcuts for expansions whose targets only need to exist, be counted, or be returned as a set.

This module implements row weights, node sets, and edge tests between bound variables. The operators never materialize a
row per neighbor; instead, they probe or concatenate lists and multiply degrees.
"""

import numpy as np

from omnigraph.engine.adjacency.adjacency import count_pairs
from omnigraph.engine.adjacency.neighbor_lists import IndexArray
from omnigraph.engine.adjacency.neighbors import choose_adjacency
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.physical_operators import DistinctExpand, EdgeExists, NoNeighbor, WeightByDegree
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .expand import expand, reachable_pairs, source_row_ids, target_binding
from .rows import NULL_ROW, IntArray, Mask, Rows

_MAX_WEIGHT = 1 << 62
_BYTES_PER_NODE = 16  # peak memory per node in bytes while the set is built


def filter_linked(context: ExecutionContext, rows: Rows, link_test: EdgeExists) -> Rows:
    """Return the rows in which an edge joins the two variables, or all other rows if the test is negated."""
    source_ids = source_row_ids(context, rows[link_test.expansion.source], link_test.expansion)
    right_binding = rows[link_test.target_variable]
    table_key = TableKey.node(link_test.expansion.target_type)
    target_ids = (
        right_binding.row_ids
        if right_binding.table_keys == (table_key,)
        else np.where(right_binding.is_type(table_key), right_binding.row_ids, NULL_ROW)
    )
    is_linked = np.zeros(rows.count, np.bool_)
    for step in link_test.expansion.steps:
        step_adjacency = choose_adjacency(context, step.edge_type, step.direction, rows.count)
        is_linked |= step_adjacency.contains(source_ids, target_ids)
    return rows.filter(~is_linked if link_test.negated else is_linked)


def filter_unconnected(context: ExecutionContext, rows: Rows, isolation_test: NoNeighbor) -> Rows:
    """Return the rows in which the source node has no neighbor that the expansion reaches."""
    return rows.filter(_expansion_degrees(context, rows, isolation_test.expansion.source, isolation_test) == 0)


def weight_by_degree(context: ExecutionContext, rows: Rows, weighting: WeightByDegree) -> Rows:
    """Return the rows whose source node has neighbors, weighted by the number of neighbors."""
    degrees = _expansion_degrees(context, rows, weighting.expansion.source, weighting)
    has_neighbors: Mask = degrees > 0
    connected_rows = rows.filter(has_neighbors)
    degrees = degrees[has_neighbors] if connected_rows.count < rows.count else degrees
    if connected_rows.weights is not None and connected_rows.count and _would_overflow(connected_rows.weights, degrees):
        return expand(context, rows, weighting.expansion)  # the weights would overflow, so materialize the rows
    return connected_rows.scale_weights(degrees)


def reachable_nodes(context: ExecutionContext, rows: Rows, reach_operator: DistinctExpand) -> Rows:
    """Return the nodes that an expansion reaches, without the other variables and possibly with some duplicates."""
    expansion = reach_operator.expansion
    start_ids = source_row_ids(context, rows[expansion.source], expansion)
    if expansion.min_hops == expansion.max_hops == 1 and not expansion.target_filters:
        node_ids = _concat_neighbors(context, start_ids, expansion)
    else:
        node_ids = reachable_pairs(context, start_ids, expansion, apply_filters=True)[1]
    if len(node_ids) > context.row_count(TableKey.node(expansion.target_type)):
        node_ids = _distinct_nodes(node_ids)  # if there are few duplicates, building a set costs more than it saves
    return Rows.from_bindings({str(expansion.target): target_binding(expansion, node_ids.astype(np.int64, copy=False))})


def _concat_neighbors(context: ExecutionContext, start_ids: IntArray, expansion: plan.Expand) -> IndexArray:
    """Return the concatenated neighbor lists of all start nodes."""
    neighbor_blocks = []
    for step in expansion.steps:
        step_adjacency = choose_adjacency(context, step.edge_type, step.direction, len(start_ids))
        context.meter.charge_bytes(count_pairs([step_adjacency], start_ids) * _BYTES_PER_NODE)
        neighbor_blocks.append(step_adjacency.union(start_ids))
    return neighbor_blocks[0] if len(neighbor_blocks) == 1 else np.concatenate(neighbor_blocks)


def _distinct_nodes(node_ids: IndexArray) -> IntArray:
    """Return the distinct node ids in ascending order."""
    is_present = np.zeros(int(node_ids.max()) + 1, np.bool_)
    is_present[node_ids] = True
    return np.flatnonzero(is_present)


def _would_overflow(weights: IntArray, degrees: IntArray) -> bool:
    return int(weights.max()) * int(degrees.max()) > _MAX_WEIGHT


def _expansion_degrees(
    context: ExecutionContext, rows: Rows, source_variable: str, degree_operator: NoNeighbor | WeightByDegree
) -> IntArray:
    start_ids = source_row_ids(context, rows[source_variable], degree_operator.expansion)
    adjacencies = [
        choose_adjacency(context, step.edge_type, step.direction, len(start_ids))
        for step in degree_operator.expansion.steps
    ]
    if len(adjacencies) == 1:
        return adjacencies[0].degrees(start_ids)
    if isinstance(degree_operator, NoNeighbor):
        summed_degrees: IntArray = np.sum(
            [step_adjacency.degrees(start_ids) for step_adjacency in adjacencies], axis=0, dtype=np.int64
        )
        return summed_degrees
    positions, _ = reachable_pairs(context, start_ids, degree_operator.expansion)
    return np.bincount(positions, minlength=len(start_ids)).astype(np.int64)
