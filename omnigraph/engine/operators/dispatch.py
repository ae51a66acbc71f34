"""Dispatch plan operators: call each operator's function in order.

Each operator consumes the rows that the previous operator returned. This module does no planning; the rewrites in
`passes` have already chosen the operators.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.physical_operators import (
    DistinctExpand,
    DistinctValueScan,
    DropVariables,
    EdgeExists,
    KeyScan,
    NoNeighbor,
    WeightByDegree,
)
from omnigraph.errors import InternalError
from omnigraph.lang.query import plan

from .distinct_value_scan import scan_distinct_values
from .filter import filter_rows
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
    operator_function = _FUNCTION_BY_OPERATOR.get(type(operator)) or _load_function(type(operator))
    context.meter.check_timeout()
    started_at = perf_counter()
    output_rows = operator_function(context, rows, operator)
    context.record_stats(operator, output_rows.count, started_at)
    return output_rows


def _load_function(operator_type: type) -> OperatorFunction:
    """Import the function for an operator that many queries never use, and cache it for later calls."""
    location = _LOCATION_BY_OPERATOR.get(operator_type)
    if location is None:
        raise InternalError(reason=f"no function implements operator {operator_type.__name__}")
    module_name, _, function_name = location.partition(":")
    loaded_function: OperatorFunction = getattr(import_module(f".{module_name}", __package__), function_name)
    _FUNCTION_BY_OPERATOR[operator_type] = loaded_function
    return loaded_function


def _apply_filter(context: ExecutionContext, rows: Rows, operator: plan.Filter) -> Rows:
    return filter_rows(context, rows, (operator.predicate,))


def _anti_join(context: ExecutionContext, rows: Rows, operator: plan.AntiJoin) -> Rows:
    from .join import anti_join

    return anti_join(context, rows, operator, run_operators)


def _left_join(context: ExecutionContext, rows: Rows, operator: plan.LeftJoin) -> Rows:
    from .join import left_join

    return left_join(context, rows, operator, run_operators)


def _drop_variables(context: ExecutionContext, rows: Rows, operator: DropVariables) -> Rows:
    return rows.select_variables(variable for variable in rows.bindings if variable not in operator.variables)


_FUNCTION_BY_OPERATOR: dict[type, OperatorFunction] = {
    plan.NodeScan: node_scan,
    KeyScan: key_scan,
    plan.Filter: _apply_filter,
    plan.AntiJoin: _anti_join,
    plan.LeftJoin: _left_join,
    DistinctValueScan: scan_distinct_values,
    DropVariables: _drop_variables,
}
_LOCATION_BY_OPERATOR: dict[type, str] = {
    plan.Expand: "expand:expand",
    plan.FindPaths: "find_paths:find_paths",
    plan.CloseCycle: "join:keep_rows_with_same_entity",
    EdgeExists: "expand_shortcuts:filter_linked",
    NoNeighbor: "expand_shortcuts:filter_unconnected",
    WeightByDegree: "expand_shortcuts:weight_by_degree",
    DistinctExpand: "expand_shortcuts:reachable_nodes",
}
