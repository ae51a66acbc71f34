"""How many rows an operator is expected to give: from the sizes of tables, by rules of thumb.

Only for people who read plans, and for choices that cannot change a result.
"""

from typing import Any

from omnigraph.lang.query import plan

from .context import Context
from .physical import Alone, FoldScan, Linked, Reach

_EQUAL, _RANGE = 0.01, 0.3  # the share of rows that a test is expected to keep


def estimate(context: Context, operator: Any, rows: float) -> float:
    """The expected rows after an operator, for so many before it."""
    match operator:
        case plan.NodeScan():
            names = operator.implementers or (operator.type_name,)
            held = sum(_size(context, f"node:{name}") for name in names)
            rows *= held * _share(operator.filters)
        case FoldScan():
            return estimate(context, operator.scan, rows)
        case Reach():
            return min(estimate(context, operator.walk, rows), _most(context, operator.walk))
        case plan.Expand():
            rows *= _fan_out(context, operator) * _share(operator.target_filters)
        case plan.Close() | Linked():
            rows *= _EQUAL
        case plan.Filter():
            rows *= _share((operator.predicate,))
        case plan.AntiJoin() | Alone():
            rows *= 0.5
    return rows  # a lookup by key finds one node, an `optional` loses nothing


def _size(context: Context, key: str) -> int:
    entry = context.snapshot.tables.get(key)
    return entry.rows if entry is not None else 0


def _fan_out(context: Context, expand: plan.Expand) -> float:
    """The mean number of neighbours, to the power of the hops."""
    mean = 0.0
    for step in expand.steps:
        edge = context.catalog.edge(step.edge_type)
        if edge is not None:
            start = edge.target if step.direction == "in" else edge.source
            many = _size(context, f"edge:{edge.name}") / max(_size(context, f"node:{start}"), 1)
            mean += many * (2 if step.direction == "both" else 1)
    reach = sum(mean**hops for hops in range(expand.min_hops, min(expand.max_hops, 8) + 1))
    return min(reach, float(_size(context, f"node:{expand.target_type}") or reach))


def _most(context: Context, expand: plan.Expand) -> float:
    """How many nodes there are to reach at all."""
    return float(_size(context, f"node:{expand.target_type}"))


def _share(filters: tuple[plan.Predicate, ...]) -> float:
    found = 1.0
    for one in filters:
        exact = isinstance(one, plan.Compare) and one.operator == "="
        found *= _EQUAL if exact else _RANGE
    return found
