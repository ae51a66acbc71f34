"""Turns an expansion that must end at a bound node into a test of that one edge.

The expansion would make all neighbours of every row, and `Close` keep at most one of them.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import Linked
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR

from .anti_membership import is_one_edge


def close_by_probe(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """The plan with its cycles closed by tests."""
    return replace(what, operators=_probed(what.operators))


def _probed(operators: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for one in operators:
        last = found[-1] if found else None
        if isinstance(one, plan.Close) and isinstance(last, plan.Expand) and _fits(last, one):
            found[-1] = Linked(last, one.right)
        elif isinstance(one, plan.AntiJoin | plan.LeftJoin):
            found.append(replace(one, inner=_probed(one.inner)))
        else:
            found.append(one)
    return tuple(found)


def _fits(walk: plan.Expand, close: plan.Close) -> bool:
    """A named edge must be found, not only known to exist."""
    return (
        is_one_edge(walk)
        and walk.edge_variable is None
        and walk.target == close.left
        and walk.source != close.left
    )
