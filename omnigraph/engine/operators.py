"""Dispatch of plan operators: runs each operator's function in order.

Each operator consumes the rows of the previous one. No planning happens here; the rewrites in
`passes` have already chosen the operators.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from omnigraph.errors import InternalError
from omnigraph.lang.query import plan

from .context import Context
from .expand import expand
from .filter import keep
from .fold import fold_scan
from .join import anti_join, close, left_join
from .link import alone, linked, reach, weigh
from .physical import Alone, FoldScan, Forget, KeyScan, Linked, Reach, Weigh
from .rows import Rows
from .scan import key_scan, node_scan

Operate = Callable[[Context, Rows, Any], Rows]


def run_operators(context: Context, rows: Rows, operators: Sequence[Any]) -> Rows:
    """Return the rows after all operators; memory used by intermediate rows is released."""
    used = context.meter.used
    for one in operators:
        rows = run_operator(context, rows, one)
        context.meter.used = used + rows.count * rows.width
    return rows


def run_operator(context: Context, rows: Rows, operator: Any) -> Rows:
    """Return the rows after one operator."""
    run = _OPERATORS.get(type(operator))
    if run is None:
        raise InternalError(reason=f"no function for operator {type(operator).__name__}")
    context.meter.check()
    began = perf_counter()
    found = run(context, rows, operator)
    context.measure(operator, found.count, began)
    return found


def _filter(context: Context, rows: Rows, operator: plan.Filter) -> Rows:
    return keep(context, rows, (operator.predicate,))


def _anti_join(context: Context, rows: Rows, operator: plan.AntiJoin) -> Rows:
    return anti_join(context, rows, operator, run_operators)


def _left_join(context: Context, rows: Rows, operator: plan.LeftJoin) -> Rows:
    return left_join(context, rows, operator, run_operators)


def _forget(context: Context, rows: Rows, operator: Forget) -> Rows:
    return rows.only(name for name in rows.bindings if name not in operator.names)


_OPERATORS: dict[type, Operate] = {
    plan.NodeScan: node_scan,
    KeyScan: key_scan,
    plan.Expand: expand,
    plan.Close: close,
    plan.Filter: _filter,
    plan.AntiJoin: _anti_join,
    plan.LeftJoin: _left_join,
    Linked: linked,
    Alone: alone,
    Weigh: weigh,
    FoldScan: fold_scan,
    Forget: _forget,
    Reach: reach,
}
