"""Counts rows without producing them where aggregates only need their number.

An expansion to nodes that are never read becomes a weight: the number of distinct neighbours,
since traversals without an edge variable return sets. A scan that only leads to the next variable
is reversed.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import Alone, Linked, Weigh
from omnigraph.lang.query import plan
from omnigraph.lang.query.free import needed_by, variables_of
from omnigraph.lang.schema.ir import SchemaIR

_TURNED: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}
_Operators = tuple[Any, ...]


def count_only(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with expansions to unread nodes replaced by weights."""
    if not only_counts(what):
        return what
    operators = _weighed(what, _turned(what))
    walks = [one.walk for one in operators if isinstance(one, Weigh)]
    if not walks:
        return what
    kept: Any = operators
    dropped = {walk.target for walk in walks}
    stand_in = _stand_in(walks[0], ir)
    columns = tuple(
        replace(column, value=_recount(column.value, dropped, stand_in)) for column in what.columns
    )
    order = tuple(replace(key, value=_recount(key.value, dropped, stand_in)) for key in what.order)
    variables = tuple(name for name in what.variables if name not in dropped)
    return replace(what, operators=kept, columns=columns, order=order, variables=variables)


def only_counts(what: plan.ReadPlan) -> bool:
    """Return whether rows may carry weights: groups have their own order, nothing is collected."""
    values = [column.value for column in what.columns] + [key.value for key in what.order]
    aggregates = [value for value in values if isinstance(value, plan.Aggregate)]
    keys = [column for column in what.columns if not isinstance(column.value, plan.Aggregate)]
    ordered = bool(what.order) or not keys
    listed = any(aggregate.function == "collect" for aggregate in aggregates)
    return what.aggregated and ordered and not listed and what.ranking is None


def _looked_at(what: plan.ReadPlan) -> set[str]:
    """Return variables whose entities affect the result; counting rows does not read them."""
    found: set[str] = set()
    for value in [column.value for column in what.columns] + [key.value for key in what.order]:
        if not counts_rows(value):
            found |= variables_of(value)
    return found


def counts_rows(value: plan.Value) -> bool:
    """Return whether a value is the number of rows, regardless of their content."""
    return (
        isinstance(value, plan.Aggregate)
        and value.function == "count"
        and not value.distinct
        and isinstance(value.argument, plan.Entity)
    )


def _turned(what: plan.ReadPlan) -> _Operators:
    """Start at the target of the first expansion, if the scanned nodes only lead to it."""
    operators: _Operators = what.operators
    while len(operators) > 1:
        scan, walk, *rest = operators
        if not _leads_only(scan, walk) or scan.variable in _needed(rest) | _looked_at(what):
            break
        back = plan.Expand(
            walk.target,
            scan.variable,
            tuple(plan.Step(one.edge_type, _TURNED[one.direction]) for one in walk.steps),
            scan.type_name,
        )
        begin = plan.NodeScan(walk.target, walk.target_type, walk.target_filters)
        operators = (begin, Weigh(back), *rest)
        break
    return operators


def _leads_only(scan: Any, walk: Any) -> bool:
    return (
        isinstance(scan, plan.NodeScan)
        and not scan.filters
        and not scan.implementers
        and _may_weigh(walk)
        and walk.target is not None
        and walk.source == scan.variable
    )


def _may_weigh(walk: Any) -> bool:
    return (
        isinstance(walk, plan.Expand)
        and walk.edge_variable is None
        and walk.min_hops == walk.max_hops == 1
    )


def _weighed(what: plan.ReadPlan, operators: _Operators) -> _Operators:
    """Replace expansions to nodes that are never read by weights."""
    used = _looked_at(what)
    found: list[Any] = list(operators)
    for at in reversed(range(len(found))):
        one = found[at]
        free = _may_weigh(one) and not one.target_filters
        if free and one.target not in used | _needed(found[at + 1 :]):
            found[at] = Weigh(one)
    return tuple(found)


def _needed(operators: Sequence[Any]) -> set[str]:
    """Return the variables that operators read, physical operators included."""
    found: set[str] = set()
    for one in operators:
        match one:
            case Linked():
                found |= {one.walk.source, one.right}
            case Alone() | Weigh():
                found.add(one.walk.source)
            case _:
                found |= needed_by((one,))
    return found


def _stand_in(walk: plan.Expand, ir: SchemaIR) -> plan.Entity:
    """Return an entity that every row has, to count rows by."""
    step = walk.steps[0]
    edge = ir.catalog.edge(step.edge_type)
    ends = (edge.source, edge.target) if edge is not None else ("", "")
    return plan.Entity(walk.source, ends[step.direction == "in"])


def _recount(value: plan.Value, dropped: set[str | None], stand_in: plan.Entity) -> plan.Value:
    if counts_rows(value) and variables_of(value) & dropped and isinstance(value, plan.Aggregate):
        return replace(value, argument=stand_in)
    return value
