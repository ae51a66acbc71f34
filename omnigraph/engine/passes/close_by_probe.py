"""Replaces an expansion that must end at a bound node by a test of that one edge.

Otherwise the expansion would produce all neighbours of every row, and `Close` keep at most one.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import Linked
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR

from .anti_membership import is_one_edge


def close_by_probe(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with its cycles closed by edge tests."""
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
    """Return whether an edge test suffices: a named edge must be found, not only exist."""
    return (
        is_one_edge(walk)
        and walk.edge_variable is None
        and walk.target == close.left
        and walk.source != close.left
    )
