"""Estimated row counts of operators, from table sizes and rules of thumb.

Only for explained plans and for choices that cannot change a result.
"""

from typing import Any

from omnigraph.lang.query import plan

from .context import Context
from .physical import Alone, FoldScan, Linked, Reach

_EQUAL, _RANGE = 0.01, 0.3  # the fraction of rows that a predicate is expected to keep


def estimate(context: Context, operator: Any, rows: float) -> float:
    """Return the expected output rows of an operator for this many input rows."""
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
    return rows  # a key lookup finds one node; `optional` keeps every row


def _size(context: Context, key: str) -> int:
    entry = context.snapshot.tables.get(key)
    return entry.rows if entry is not None else 0


def _fan_out(context: Context, expand: plan.Expand) -> float:
    """Return the mean number of neighbours, to the power of the hops."""
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
    """Return the number of nodes that an expansion can reach at most."""
    return float(_size(context, f"node:{expand.target_type}"))


def _share(filters: tuple[plan.Predicate, ...]) -> float:
    found = 1.0
    for one in filters:
        exact = isinstance(one, plan.Compare) and one.operator == "="
        found *= _EQUAL if exact else _RANGE
    return found
