"""Find the values that a read computes for its result, and replace values in predicates.

The engine uses this module to rewrite columns, sort keys and `having` operands in the same way.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from . import plan


def result_values(read_plan: plan.ReadPlan) -> list[plan.Value]:
    """Return the values in a read's columns, sort keys and `having` predicate.

    >>> column = plan.PlanColumn("p", plan.Entity("p", "Person"), None)
    >>> result_values(plan.ReadPlan((), (column,), ("p",)))
    [Entity(variable='p', type_name='Person', edge_types=())]
    """
    values = [column.value for column in read_plan.columns] + [sort_key.value for sort_key in read_plan.order]
    return values if read_plan.having is None else [*values, *values_in(read_plan.having)]


def values_in(predicate: plan.Predicate) -> Iterator[plan.Value]:
    """Yield the values that a predicate compares or tests, from left to right."""
    match predicate:
        case plan.And() | plan.Or():
            for item in predicate.items:
                yield from values_in(item)
        case plan.Not():
            yield from values_in(predicate.item)
        case plan.Compare() | plan.TextTest():
            yield from (predicate.left, predicate.right)
        case plan.InList():
            yield from (predicate.operand, predicate.items)
        case plan.IsNull():
            yield predicate.operand
        case plan.Truth():
            yield predicate.value
        case plan.TextSearch():
            yield from (predicate.field, predicate.query)


def replace_values(  # noqa: PLR0911 - one return per kind
    predicate: plan.Predicate, replace_value: Callable[[plan.Value], plan.Value]
) -> plan.Predicate:
    """Apply `replace_value` to each value in a predicate. Searches and type tests stay unchanged."""
    match predicate:
        case plan.And() | plan.Or():
            return replace(predicate, items=tuple(replace_values(item, replace_value) for item in predicate.items))
        case plan.Not():
            return plan.Not(replace_values(predicate.item, replace_value))
        case plan.Compare() | plan.TextTest():
            return replace(predicate, left=replace_value(predicate.left), right=replace_value(predicate.right))
        case plan.InList():
            return plan.InList(replace_value(predicate.operand), replace_value(predicate.items))
        case plan.IsNull():
            return plan.IsNull(replace_value(predicate.operand), predicate.negated)
        case plan.Truth():
            return plan.Truth(replace_value(predicate.value))
    return predicate
