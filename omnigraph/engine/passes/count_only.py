"""Count rows without producing them if the aggregates need only the number of rows.

An expansion to nodes that are never read is replaced by a weight. The weight is the number of distinct neighbors,
because a traversal without an edge variable returns each neighbor once. If the scanned nodes are used only to reach
the next variable, the scan starts at that variable instead.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnigraph.engine.physical_operators import EdgeExists, NoNeighbor, WeightByDegree
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_values import replace_values, result_values
from omnigraph.lang.query.plan_variables import contains_aggregate, contains_collect, variables_needed_by, variables_of
from omnigraph.lang.schema.ir import SchemaIR

_REVERSED_DIRECTION: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}
_OperatorTuple = tuple[Any, ...]


def count_only(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Replace expansions to unread nodes with weights."""
    if not allows_weights(read_plan):
        return read_plan
    operators = _weigh_unread_expansions(read_plan, _reverse_first_expansion(read_plan))
    weighted_expansions = [operator.expansion for operator in operators if isinstance(operator, WeightByDegree)]
    if not weighted_expansions:
        return read_plan
    new_operators: Any = operators
    dropped_variables = {expansion.target for expansion in weighted_expansions}
    counted_entity = _entity_in_every_row(weighted_expansions[0], schema_ir)

    def replace_count(value: plan.Value) -> plan.Value:
        return _count_other_entity(value, dropped_variables, counted_entity)

    return replace(
        read_plan,
        operators=new_operators,
        columns=tuple(replace(column, value=replace_count(column.value)) for column in read_plan.columns),
        order=tuple(replace(sort_key, value=replace_count(sort_key.value)) for sort_key in read_plan.order),
        variables=tuple(variable for variable in read_plan.variables if variable not in dropped_variables),
        having=replace_values(read_plan.having, replace_count) if read_plan.having is not None else None,
    )


def allows_weights(read_plan: plan.ReadPlan) -> bool:
    """Return whether rows may have weights.

    Weights are allowed if row order does not matter and no values are collected into lists.
    """
    values = result_values(read_plan)
    group_columns = [column for column in read_plan.columns if not contains_aggregate(column.value)]
    has_own_order = bool(read_plan.order) or not group_columns
    collects_rows = any(map(contains_collect, values))
    if any(contains_aggregate(value) and not isinstance(value, plan.Aggregate) for value in values):
        return False  # only whole aggregates are rewritten
    return read_plan.aggregated and has_own_order and not collects_rows and read_plan.ranking is None


def _variables_read(read_plan: plan.ReadPlan) -> set[str]:
    """Return the variables whose entities affect the result. A row count does not read any entity."""
    variables: set[str] = set()
    for value in result_values(read_plan):
        if not counts_rows(value):
            variables |= variables_of(value)
    return variables


def counts_rows(value: plan.Value) -> bool:
    """Return whether a value is a plain row count, which does not depend on the values in the rows."""
    return (
        isinstance(value, plan.Aggregate)
        and value.function == "count"
        and not value.distinct
        and isinstance(value.argument, plan.Entity)
    )


def _reverse_first_expansion(read_plan: plan.ReadPlan) -> _OperatorTuple:
    """Start at the target of the first expansion if the scanned nodes are used only to reach that target."""
    operators: _OperatorTuple = read_plan.operators
    while len(operators) > 1:
        scan, expansion, *later_operators = operators
        if not _only_leads_to_target(scan, expansion) or scan.variable in _variables_needed(
            later_operators
        ) | _variables_read(read_plan):
            break
        reverse_expansion = plan.Expand(
            expansion.target,
            scan.variable,
            tuple(plan.PlanStep(step.edge_type, _REVERSED_DIRECTION[step.direction]) for step in expansion.steps),
            scan.type_name,
        )
        target_scan = plan.NodeScan(expansion.target, expansion.target_type, expansion.target_filters)
        operators = (target_scan, WeightByDegree(reverse_expansion), *later_operators)
        break
    return operators


def _only_leads_to_target(scan: Any, expansion: Any) -> bool:
    return (
        isinstance(scan, plan.NodeScan)
        and not scan.filters
        and not scan.implementers
        and _is_plain_single_hop(expansion)
        and expansion.target is not None
        and expansion.source == scan.variable
    )


def _is_plain_single_hop(operator: Any) -> bool:
    return (
        isinstance(operator, plan.Expand)
        and operator.edge_variable is None
        and operator.min_hops == operator.max_hops == 1
    )


def _weigh_unread_expansions(read_plan: plan.ReadPlan, operators: _OperatorTuple) -> _OperatorTuple:
    """Replace expansions to nodes that are never read with weights."""
    result_variables = _variables_read(read_plan)
    rewritten: list[Any] = list(operators)
    for position in reversed(range(len(rewritten))):
        operator = rewritten[position]
        is_candidate = _is_plain_single_hop(operator) and not operator.target_filters
        if is_candidate and operator.target not in result_variables | _variables_needed(rewritten[position + 1 :]):
            rewritten[position] = WeightByDegree(operator)
    return tuple(rewritten)


def _variables_needed(operators: Sequence[Any]) -> set[str]:
    """Return the variables that the given operators, logical or physical, read."""
    variables: set[str] = set()
    for operator in operators:
        match operator:
            case EdgeExists():
                variables |= {operator.expansion.source, operator.target_variable}
            case NoNeighbor() | WeightByDegree():
                variables.add(operator.expansion.source)
            case _:
                variables |= variables_needed_by((operator,))
    return variables


def _entity_in_every_row(expansion: plan.Expand, schema_ir: SchemaIR) -> plan.Entity:
    """Return the source of an expansion. It is bound in every row and can therefore be used to count rows."""
    step = expansion.steps[0]
    edge_type = schema_ir.catalog.edge(step.edge_type)
    endpoint_types = (edge_type.source, edge_type.target) if edge_type is not None else ("", "")
    return plan.Entity(expansion.source, endpoint_types[step.direction == "in"])


def _count_other_entity(
    value: plan.Value, dropped_variables: set[str | None], counted_entity: plan.Entity
) -> plan.Value:
    if counts_rows(value) and variables_of(value) & dropped_variables and isinstance(value, plan.Aggregate):
        return replace(value, argument=counted_entity)
    return value
