"""Drop variables after their last use, so that later operators do not copy them.

Only grouped queries can drop variables, because the order of ungrouped rows depends on the ids of all variables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.engine.physical_operators import (
    DistinctValueScan,
    DropVariables,
    EdgeExists,
    KeyScan,
    NoNeighbor,
    WeightByDegree,
)
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_values import result_values
from omnigraph.lang.query.plan_variables import contains_aggregate, contains_collect, variables_needed_by, variables_of
from omnigraph.lang.schema.ir import SchemaIR


def drop_variables(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Drop variables after their last use."""
    if not read_plan.aggregated or _needs_all_variables(read_plan):
        return read_plan
    result_variables = frozenset(variable for value in result_values(read_plan) for variable in variables_of(value))
    operators: Any = tuple(_with_drops(read_plan.operators, result_variables))
    return replace(read_plan, operators=operators)


def _needs_all_variables(read_plan: plan.ReadPlan) -> bool:
    """Return whether row order affects the result, as it does for collected lists and groups without `order`."""
    group_columns = [column for column in read_plan.columns if not contains_aggregate(column.value)]
    collects_rows = any(map(contains_collect, result_values(read_plan)))
    return collects_rows or (bool(group_columns) and not read_plan.order)


def _with_drops(operators: Sequence[Any], result_variables: frozenset[str]) -> Iterator[Any]:
    bound_variables: set[str] = set()
    for position, operator in enumerate(operators):
        yield operator
        bound_variables |= variables_bound_by(operator)
        if isinstance(operator, plan.CloseCycle):
            bound_variables.discard(operator.left)  # `CloseCycle` has already removed this variable
        needed_later = result_variables.union(*map(_variables_read_by, operators[position + 1 :]))
        unused_variables = bound_variables - needed_later
        if unused_variables:
            bound_variables -= unused_variables
            yield DropVariables(tuple(sorted(unused_variables)))


def variables_bound_by(operator: Any) -> set[str]:
    """Return the variables that an operator binds."""
    match operator:
        case plan.NodeScan():
            return {operator.variable}
        case KeyScan() | DistinctValueScan():
            return {operator.scan.variable}
        case plan.Expand():
            new_variables = (operator.target, operator.edge_variable)
            return {variable for variable in new_variables if variable is not None}
        case plan.FindPaths():
            return {variable for variable in (operator.target, operator.path) if variable is not None}
        case plan.LeftJoin():
            return set(operator.introduced)
    return set()


def _variables_read_by(operator: Any) -> frozenset[str]:
    match operator:
        case KeyScan():
            return frozenset()
        case EdgeExists():
            return frozenset({operator.expansion.source, operator.target_variable})
        case NoNeighbor() | WeightByDegree():
            return frozenset({operator.expansion.source})
    return variables_needed_by((operator,))
