"""Replace an expansion that must end at a bound node with a test for a single edge.

Without this rewrite, the expansion would produce all neighbors for every row, and `CloseCycle` would then keep at most
one neighbor per row.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical_operators import EdgeExists
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR

from .anti_join_probe import is_single_hop


def close_by_probe(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Replace the expansions that close a cycle with edge tests."""
    return replace(read_plan, operators=_replace_closes(read_plan.operators))


def _replace_closes(operators: tuple[Any, ...]) -> tuple[Any, ...]:
    rewritten: list[Any] = []
    for operator in operators:
        previous = rewritten[-1] if rewritten else None
        if (
            isinstance(operator, plan.CloseCycle)
            and isinstance(previous, plan.Expand)
            and _can_probe(previous, operator)
        ):
            rewritten[-1] = EdgeExists(previous, operator.right)
        elif isinstance(operator, plan.AntiJoin | plan.LeftJoin):
            rewritten.append(replace(operator, inner=_replace_closes(operator.inner)))
        else:
            rewritten.append(operator)
    return tuple(rewritten)


def _can_probe(expansion: plan.Expand, close_operator: plan.CloseCycle) -> bool:
    """Return whether an edge test is sufficient. A named edge needs the expansion, which binds the edge variable."""
    return (
        is_single_hop(expansion)
        and expansion.edge_variable is None
        and expansion.target == close_operator.left
        and expansion.source != close_operator.left
    )
