"""Replaces a scan whose filters fix the complete `@key` by a lookup of one id.

The id of a keyed node is derived from its key, so equality of all members is equality of the id.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.fetch import needs
from omnigraph.engine.physical import KeyScan
from omnigraph.engine.project import columns_needed
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR, key_order
from omnigraph.values import PropertyType


def find_by_key(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with scans by key as lookups."""
    later = columns_needed(ir.catalog, what.columns)
    later |= needs(*(key.value for key in what.order))
    operators: Any = tuple(_looked_up(one, ir, later) for one in what.operators)
    return replace(what, operators=operators)


def _looked_up(operator: Any, ir: SchemaIR, later: set[tuple[str, str]]) -> Any:
    if isinstance(operator, plan.AntiJoin | plan.LeftJoin):
        inner: Any = tuple(_looked_up(nested, ir, later) for nested in operator.inner)
        return replace(operator, inner=inner)
    if not isinstance(operator, plan.NodeScan) or operator.implementers:
        return operator
    members = key_order(ir, operator.type_name) if ir.catalog.node(operator.type_name) else ()
    fixed = {name: (at, kind, value) for at, name, kind, value in _equalities(operator)}
    if not members or any(name not in fixed for name in members):
        return operator
    used = {fixed[name][0] for name in members}
    rest = tuple(one for at, one in enumerate(operator.filters) if at not in used)
    wanted = {name for variable, name in later | needs(*rest) if variable == operator.variable}
    key = tuple((name, fixed[name][1], fixed[name][2]) for name in members)
    return KeyScan(operator, key, rest, tuple(sorted(wanted)))


def _equalities(scan: plan.NodeScan) -> list[tuple[int, str, PropertyType, plan.Value]]:
    """Return filters that fix a property to a constant: (filter index, name, type, value)."""
    found = []
    for at, one in enumerate(scan.filters):
        if not isinstance(one, plan.Compare) or one.operator != "=":
            continue
        for held, value in ((one.left, one.right), (one.right, one.left)):
            fixed = isinstance(value, plan.Constant | plan.Parameter)
            if fixed and isinstance(held, plan.PropertyValue):
                found.append((at, held.name, held.type, value))
    return found
