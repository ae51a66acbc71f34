"""Replace `not { $a knows $b }` with a test for an edge, and `not { $a knows $_ }` with a test for any neighbor.

Without this rewrite, the inner expansion would run for every row just to determine whether it finds any node.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical_operators import EdgeExists, NoNeighbor
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR


def anti_join_probe(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Replace negated traversals whose result depends on only one hop with tests for an edge or for any neighbor."""
    operators: Any = tuple(_replace_anti_join(operator) for operator in read_plan.operators)
    return replace(read_plan, operators=operators)


def _replace_anti_join(operator: Any) -> Any:
    if isinstance(operator, plan.LeftJoin):
        return replace(operator, inner=tuple(_replace_anti_join(inner_operator) for inner_operator in operator.inner))
    if not isinstance(operator, plan.AntiJoin):
        return operator
    match operator.inner:
        case (plan.Expand(edge_test=None) as expansion,) if expansion.min_hops == 1 and not expansion.target_filters:
            return NoNeighbor(replace(expansion, max_hops=1, edge_variable=None))
        case (plan.Expand() as expansion, plan.CloseCycle(closed_variable, bound_variable)) if (
            is_single_hop(expansion) and closed_variable == expansion.target and bound_variable in operator.outer
        ):
            return EdgeExists(replace(expansion, edge_variable=None), bound_variable, negated=True)
    return replace(operator, inner=tuple(_replace_anti_join(inner_operator) for inner_operator in operator.inner))


def is_single_hop(expansion: plan.Expand) -> bool:
    """Return whether an expansion is a single hop without filters on its target."""
    return expansion.min_hops == expansion.max_hops == 1 and not expansion.target_filters
