"""Moves filters on one variable to the operator that introduces it.

Filters only remove rows, so they may run as soon as their variable is bound. Filters on a variable
that an `optional` introduces stay in place: there, null is part of the result.
"""

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.lang.query import plan
from omnigraph.lang.query.free import variables_of
from omnigraph.lang.schema.ir import SchemaIR

Operators = tuple[plan.Operator, ...]


def push_filters(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with its filters moved to where their variables are introduced."""
    return replace(what, operators=_pushed(what.operators))


def _pushed(operators: Operators) -> Operators:
    homes = {name: at for at, one in enumerate(operators) if (name := _introduced(one))}
    moved: dict[int, tuple[plan.Predicate, ...]] = {}
    kept: list[tuple[int, plan.Operator]] = []
    for at, one in enumerate(operators):
        if not isinstance(one, plan.Filter):
            kept.append((at, one))
            continue
        for predicate in _conjuncts(one.predicate):
            home = _home(predicate, homes)
            if home is None:
                kept.append((at, plan.Filter(predicate)))
            else:
                moved[home] = (*moved.get(home, ()), predicate)
    return tuple(_with(one, moved.get(at, ())) for at, one in kept)


def _conjuncts(predicate: plan.Predicate) -> Iterator[plan.Predicate]:
    if isinstance(predicate, plan.And):
        for one in predicate.items:
            yield from _conjuncts(one)
    else:
        yield predicate


def _introduced(operator: plan.Operator) -> str | None:
    match operator:
        case plan.NodeScan():
            return operator.variable
        case plan.Expand():
            return operator.target
    return None


def _home(predicate: plan.Predicate, homes: dict[str, int]) -> int | None:
    names = variables_of(predicate)
    if len(names) != 1 or _tests_type(predicate):
        return None
    return homes.get(next(iter(names)))


def _tests_type(predicate: plan.Predicate) -> bool:
    match predicate:
        case plan.OfType():
            return True
        case plan.Not():
            return _tests_type(predicate.item)
        case plan.And() | plan.Or():
            return any(map(_tests_type, predicate.items))
    return False


def _with(operator: plan.Operator, more: tuple[plan.Predicate, ...]) -> plan.Operator:
    match operator:
        case plan.NodeScan():
            return replace(operator, filters=operator.filters + more)
        case plan.Expand():
            return replace(operator, target_filters=operator.target_filters + more)
        case plan.AntiJoin() | plan.LeftJoin():
            return replace(operator, inner=_pushed(operator.inner))
    return operator
