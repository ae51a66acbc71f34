"""Aggregates nodes with equal values together, when a query only reads properties of one type.

Whether values repeat often enough is decided at run time, in `engine/distinct_value_scan.py`.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import FoldScan
from omnigraph.lang.query import plan
from omnigraph.lang.query.free import parts_of
from omnigraph.lang.schema.ir import SchemaIR

from .count_only import counts_rows, only_counts

_MOST = 4  # more columns rarely have few combinations


def fold_values(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with its only scan over distinct values."""
    if len(what.operators) != 1 or not only_counts(what):
        return what
    scan = what.operators[0]
    if not isinstance(scan, plan.NodeScan) or scan.implementers:
        return what
    pieces: list[Any] = [column.value for column in what.columns] + [
        key.value for key in what.order
    ]
    names: set[str] = set()
    for piece in [*scan.filters, *(value for value in pieces if not counts_rows(value))]:
        found = _properties(piece)
        if found is None:
            return what
        names |= found
    if not 0 < len(names) <= _MOST:
        return what
    folded: Any = (FoldScan(scan, tuple(sorted(names))),)
    return replace(what, operators=folded)


def _properties(piece: Any) -> set[str] | None:
    """Return the properties that a value or predicate reads; None if it reads anything else."""
    match piece:
        case plan.Constant() | plan.Parameter():
            return set()
        case plan.PropertyValue():
            return {piece.name}
        case plan.Aggregate() | plan.Compare() | plan.InList() | plan.IsNull():
            pass
        case plan.TextTest() | plan.And() | plan.Or() | plan.Not():
            pass
        case _:
            return None
    names: set[str] = set()
    for part in parts_of(piece):
        found = _properties(part)
        if found is None:
            return None
        names |= found
    return names
