"""Replaces `not { $a knows $b }` by an edge test, and `not { $a knows $_ }` by a degree test.

Otherwise the inner expansion would run for every row only to see whether it is empty.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import Alone, Linked
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR


def anti_membership(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with negated single traversals as tests."""
    operators: Any = tuple(_tested(one) for one in what.operators)
    return replace(what, operators=operators)


def _tested(operator: Any) -> Any:
    if isinstance(operator, plan.LeftJoin):
        return replace(operator, inner=tuple(_tested(one) for one in operator.inner))
    if not isinstance(operator, plan.AntiJoin):
        return operator
    match operator.inner:
        case (plan.Expand() as walk,) if walk.min_hops == 1 and not walk.target_filters:
            return Alone(replace(walk, max_hops=1, edge_variable=None))
        case (plan.Expand() as walk, plan.Close(left, right)) if (
            is_one_edge(walk) and left == walk.target and right in operator.outer
        ):
            return Linked(replace(walk, edge_variable=None), right, negated=True)
    return replace(operator, inner=tuple(_tested(one) for one in operator.inner))


def is_one_edge(walk: plan.Expand) -> bool:
    """Return whether an expansion is a single hop without filters on its target."""
    return walk.min_hops == walk.max_hops == 1 and not walk.target_filters
