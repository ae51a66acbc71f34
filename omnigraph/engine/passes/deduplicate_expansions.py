"""Let expansions drop duplicate nodes if duplicates cannot affect the result.

`count(distinct ..)`, `min` and `max` over all rows do not depend on how often a row occurs. If only the target of an
expansion stays bound, the expansion returns a set of nodes, and the next expansion starts from that set.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.engine.physical_operators import DistinctExpand, DropVariables, WeightByDegree
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_values import values_in
from omnigraph.lang.schema.ir import SchemaIR

from .drop_variables import variables_bound_by


def deduplicate_expansions(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Let the plan's expansions drop duplicate nodes if repeated rows do not matter."""
    if not _ignores_repeated_rows(read_plan):
        return read_plan
    operators: Any = tuple(_replace_expansions(read_plan.operators))
    return replace(read_plan, operators=operators)


def _ignores_repeated_rows(read_plan: plan.ReadPlan) -> bool:
    has_weights = any(isinstance(operator, WeightByDegree) for operator in read_plan.operators)
    is_plain_aggregate = read_plan.aggregated and not read_plan.order and read_plan.ranking is None and not has_weights
    having_values = () if read_plan.having is None else values_in(read_plan.having)
    tested_values = [value for value in having_values if not isinstance(value, plan.Constant | plan.Parameter)]
    result_values = [*(column.value for column in read_plan.columns), *tested_values]
    return is_plain_aggregate and all(map(_is_duplicate_insensitive, result_values))


def _is_duplicate_insensitive(value: plan.Value) -> bool:
    if not isinstance(value, plan.Aggregate):
        return False
    return value.function in ("min", "max") or (value.function == "count" and value.distinct)


def _replace_expansions(operators: Sequence[Any]) -> Iterator[Any]:
    bound_variables: set[str] = set()
    skip_next = False
    for position, operator in enumerate(operators):
        if skip_next:
            skip_next = False
            continue
        next_operator = operators[position + 1] if position + 1 < len(operators) else None
        bound_variables |= variables_bound_by(operator)
        if isinstance(next_operator, DropVariables):
            bound_variables -= set(next_operator.variables)
        skip_next = _leaves_only_target(operator, next_operator, bound_variables)
        yield DistinctExpand(operator) if skip_next else operator


def _leaves_only_target(operator: Any, next_operator: Any, bound_variables: set[str]) -> bool:
    """Return whether the target of an expansion is the only variable that stays bound after the expansion."""
    return (
        isinstance(operator, plan.Expand)
        and isinstance(next_operator, DropVariables)
        and operator.edge_variable is None
        and operator.target is not None
        and bound_variables == {operator.target}
    )
