"""Drops variables after their last use, so that later rows do not carry them.

Only grouped queries can drop variables: the order of plain rows depends on the ids of all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import Alone, FoldScan, Forget, KeyScan, Linked, Weigh
from omnigraph.lang.query import plan
from omnigraph.lang.query.free import needed_by, variables_of
from omnigraph.lang.schema.ir import SchemaIR


def forget(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with its variables dropped after their last use."""
    if not what.aggregated or _needs_all(what):
        return what
    values = [column.value for column in what.columns] + [key.value for key in what.order]
    wanted = frozenset(name for value in values for name in variables_of(value))
    operators: Any = tuple(_dropping(what.operators, wanted))
    return replace(what, operators=operators)


def _needs_all(what: plan.ReadPlan) -> bool:
    """Groups without an order keep the order of their first rows; lists keep the row order."""
    values = [column.value for column in what.columns] + [key.value for key in what.order]
    keys = [column for column in what.columns if not isinstance(column.value, plan.Aggregate)]
    aggregates = [value for value in values if isinstance(value, plan.Aggregate)]
    lists = any(aggregate.function == "collect" for aggregate in aggregates)
    return lists or (bool(keys) and not what.order)


def _dropping(operators: Sequence[Any], wanted: frozenset[str]) -> Iterator[Any]:
    there: set[str] = set()
    for at, one in enumerate(operators):
        yield one
        there |= made(one)
        if isinstance(one, plan.Close):
            there.discard(one.left)  # `Close` has removed it already
        needed = wanted.union(*map(_read, operators[at + 1 :]))
        gone = there - needed
        if gone:
            there -= gone
            yield Forget(tuple(sorted(gone)))


def made(operator: Any) -> set[str]:
    """Return the variables that an operator adds."""
    match operator:
        case plan.NodeScan():
            return {operator.variable}
        case KeyScan() | FoldScan():
            return {operator.scan.variable}
        case plan.Expand():
            names = (operator.target, operator.edge_variable)
            return {name for name in names if name is not None}
        case plan.LeftJoin():
            return set(operator.introduced)
    return set()


def _read(operator: Any) -> frozenset[str]:
    match operator:
        case KeyScan():
            return frozenset()
        case Linked():
            return frozenset({operator.walk.source, operator.right})
        case Alone() | Weigh():
            return frozenset({operator.walk.source})
    return needed_by((operator,))
