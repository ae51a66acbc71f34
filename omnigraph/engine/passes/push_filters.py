"""Move each filter on a single variable to the operator that introduces the variable.

Filters only remove rows, so they can run as soon as their variable is bound. Filters on a variable that an `optional`
block introduces stay in place, because the block may leave the variable null.
"""

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_variables import variables_of
from omnigraph.lang.schema.ir import SchemaIR

PlanOperators = tuple[plan.Operator, ...]


def push_filters(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Move filters to the operators that introduce their variables."""
    return replace(read_plan, operators=_move_filters(read_plan.operators))


def _move_filters(operators: PlanOperators) -> PlanOperators:
    position_by_variable = {
        variable: position
        for position, operator in enumerate(operators)
        if (variable := _introduced_variable(operator))
    }
    moved_filters: dict[int, tuple[plan.Predicate, ...]] = {}
    kept_operators: list[tuple[int, plan.Operator]] = []
    for position, operator in enumerate(operators):
        if not isinstance(operator, plan.Filter):
            kept_operators.append((position, operator))
            continue
        for predicate in _split_conjuncts(operator.predicate):
            target_position = _target_position(predicate, position_by_variable)
            if target_position is None:
                kept_operators.append((position, plan.Filter(predicate)))
            else:
                moved_filters[target_position] = (*moved_filters.get(target_position, ()), predicate)
    return tuple(_add_filters(operator, moved_filters.get(position, ())) for position, operator in kept_operators)


def _split_conjuncts(predicate: plan.Predicate) -> Iterator[plan.Predicate]:
    if isinstance(predicate, plan.And):
        for conjunct in predicate.items:
            yield from _split_conjuncts(conjunct)
    else:
        yield predicate


def _introduced_variable(operator: plan.Operator) -> str | None:
    match operator:
        case plan.NodeScan():
            return operator.variable
        case plan.Expand() | plan.FindPaths():
            return operator.target
    return None


def _target_position(predicate: plan.Predicate, position_by_variable: dict[str, int]) -> int | None:
    variables = variables_of(predicate)
    if len(variables) != 1 or _tests_type(predicate):
        return None
    return position_by_variable.get(next(iter(variables)))


def _tests_type(predicate: plan.Predicate) -> bool:
    match predicate:
        case plan.OfType():
            return True
        case plan.Not():
            return _tests_type(predicate.item)
        case plan.And() | plan.Or():
            return any(map(_tests_type, predicate.items))
    return False


def _add_filters(operator: plan.Operator, moved_filters: tuple[plan.Predicate, ...]) -> plan.Operator:
    match operator:
        case plan.NodeScan():
            return replace(operator, filters=operator.filters + moved_filters)
        case plan.Expand() | plan.FindPaths():
            return replace(operator, target_filters=operator.target_filters + moved_filters)
        case plan.AntiJoin() | plan.LeftJoin():
            return replace(operator, inner=_move_filters(operator.inner))
    return operator
