"""Row count estimates for operators, based on table sizes and rules of thumb.

Use these estimates only in explained plans and for choices that cannot change a result.
"""

from typing import Any

from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .execution_context import ExecutionContext
from .physical_operators import DistinctExpand, DistinctValueScan, EdgeExists, NoNeighbor

_EQUALITY_SELECTIVITY, _RANGE_SELECTIVITY = (0.01, 0.3)  # the fraction of rows that are expected to pass a predicate


def estimate_rows(context: ExecutionContext, operator: Any, input_rows: float) -> float:
    """Return the estimated number of rows that an operator produces from the given number of input rows."""
    match operator:
        case plan.NodeScan():
            type_names = operator.implementers or (operator.type_name,)
            node_count = sum(_table_rows(context, TableKey.node(type_name)) for type_name in type_names)
            input_rows *= node_count * _selectivity(operator.filters)
        case DistinctValueScan():
            return estimate_rows(context, operator.scan, input_rows)
        case DistinctExpand():
            return min(
                estimate_rows(context, operator.expansion, input_rows), _max_targets(context, operator.expansion)
            )
        case plan.Expand():
            input_rows *= _expansion_fan_out(context, operator) * _selectivity(operator.target_filters)
        case plan.FindPaths():
            input_rows *= _expansion_fan_out(context, operator) * _selectivity(operator.target_filters)
            input_rows *= _EQUALITY_SELECTIVITY if operator.closing is not None else 1.0
        case plan.CloseCycle() | EdgeExists():
            input_rows *= _EQUALITY_SELECTIVITY
        case plan.Filter():
            input_rows *= _selectivity((operator.predicate,))
        case plan.AntiJoin() | NoNeighbor():
            input_rows *= 0.5
    return input_rows  # a key lookup returns one node per row, and `optional` keeps every row


def _table_rows(context: ExecutionContext, table_key: TableKey) -> int:
    table_entry = context.snapshot.tables.get(table_key)
    return table_entry.row_count if table_entry is not None else 0


def _expansion_fan_out(context: ExecutionContext, expansion: plan.Expand | plan.FindPaths) -> float:
    """Return the estimated number of nodes that an expansion reaches from one node."""
    mean_degree = 0.0
    for step in expansion.steps:
        edge = context.catalog.edge(step.edge_type)
        if edge is not None:
            start_type = edge.target if step.direction == "in" else edge.source
            edges_per_node = _table_rows(context, TableKey.edge(edge.name)) / max(
                _table_rows(context, TableKey.node(start_type)), 1
            )
            mean_degree += edges_per_node * (2 if step.direction == "both" else 1)
    reached_nodes = sum(
        mean_degree**hop_count for hop_count in range(expansion.min_hops, min(expansion.max_hops, 8) + 1)
    )
    target_type = expansion.node_type if isinstance(expansion, plan.FindPaths) else expansion.target_type
    return min(reached_nodes, float(_table_rows(context, TableKey.node(target_type)) or reached_nodes))


def _max_targets(context: ExecutionContext, expansion: plan.Expand) -> float:
    """Return the maximum number of nodes that an expansion can reach."""
    return float(_table_rows(context, TableKey.node(expansion.target_type)))


def _selectivity(filters: tuple[plan.Predicate, ...]) -> float:
    selectivity = 1.0
    for predicate in filters:
        is_equality = isinstance(predicate, plan.Compare) and predicate.operator == "="
        selectivity *= _EQUALITY_SELECTIVITY if is_equality else _RANGE_SELECTIVITY
    return selectivity
