"""Dispatch plan operators: call each operator's function in order.

Each operator consumes the rows of the previous operator. This module does no planning, since the
rewrites in `passes` have already chosen the operators.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.physical_operators import (
    DistinctExpand,
    DistinctValueScan,
    DropVariables,
    EdgeExists,
    KeyScan,
    NoNeighbour,
    WeightByDegree,
)
from omnigraph.errors import InternalError
from omnigraph.lang.query import plan

from .distinct_value_scan import scan_distinct_values
from .expand import expand
from .expand_shortcuts import filter_linked, filter_unconnected, reachable_nodes, weight_by_degree
from .filter import filter_rows
from .find_paths import find_paths
from .join import anti_join, keep_rows_with_same_entity, left_join
from .rows import Rows
from .scan import key_scan, node_scan

OperatorFunction = Callable[[ExecutionContext, Rows, Any], Rows]


def run_operators(context: ExecutionContext, rows: Rows, operators: Sequence[Any]) -> Rows:
    """Apply all operators and return the resulting rows, releasing the memory used by intermediate rows."""
    used_bytes = context.meter.used_bytes
    for operator in operators:
        rows = run_operator(context, rows, operator)
        context.meter.used_bytes = used_bytes + rows.count * rows.bytes_per_row
    return rows


def run_operator(context: ExecutionContext, rows: Rows, operator: Any) -> Rows:
    """Apply one operator and return the resulting rows."""
    operator_function = _FUNCTION_BY_OPERATOR.get(type(operator))
    if operator_function is None:
        raise InternalError(reason=f"no function for operator {type(operator).__name__}")
    context.meter.check_timeout()
    started_at = perf_counter()
    output_rows = operator_function(context, rows, operator)
    context.record_stats(operator, output_rows.count, started_at)
    return output_rows


def _apply_filter(context: ExecutionContext, rows: Rows, operator: plan.Filter) -> Rows:
    return filter_rows(context, rows, (operator.predicate,))


def _anti_join(context: ExecutionContext, rows: Rows, operator: plan.AntiJoin) -> Rows:
    return anti_join(context, rows, operator, run_operators)


def _left_join(context: ExecutionContext, rows: Rows, operator: plan.LeftJoin) -> Rows:
    return left_join(context, rows, operator, run_operators)


def _drop_variables(context: ExecutionContext, rows: Rows, operator: DropVariables) -> Rows:
    return rows.select_variables(variable for variable in rows.bindings if variable not in operator.variables)


_FUNCTION_BY_OPERATOR: dict[type, OperatorFunction] = {
    plan.NodeScan: node_scan,
    KeyScan: key_scan,
    plan.Expand: expand,
    plan.FindPaths: find_paths,
    plan.CloseCycle: keep_rows_with_same_entity,
    plan.Filter: _apply_filter,
    plan.AntiJoin: _anti_join,
    plan.LeftJoin: _left_join,
    EdgeExists: filter_linked,
    NoNeighbour: filter_unconnected,
    WeightByDegree: weight_by_degree,
    DistinctValueScan: scan_distinct_values,
    DropVariables: _drop_variables,
    DistinctExpand: reachable_nodes,
}
