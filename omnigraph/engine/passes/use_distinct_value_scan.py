"""Group nodes with equal values if a query reads only properties of a single node type.

`operators/distinct_value_scan.py` decides at run time whether values repeat often enough.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.physical_operators import DistinctValueScan
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_values import result_values
from omnigraph.lang.query.plan_variables import operands_of
from omnigraph.lang.schema.ir import SchemaIR

from .count_only import allows_weights, counts_rows

_MAX_COLUMNS = 4  # maximum number of columns; more columns rarely have few distinct combinations of values


def use_distinct_value_scan(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Replace the plan's only scan with a scan over distinct values."""
    if len(read_plan.operators) != 1 or not allows_weights(read_plan):
        return read_plan
    scan = read_plan.operators[0]
    if not isinstance(scan, plan.NodeScan) or scan.implementers:
        return read_plan
    property_names: set[str] = set()
    for expression in [*scan.filters, *(value for value in result_values(read_plan) if not counts_rows(value))]:
        read_properties = _properties_read(expression)
        if read_properties is None:
            return read_plan
        property_names |= read_properties
    if not 0 < len(property_names) <= _MAX_COLUMNS:
        return read_plan
    new_operators: Any = (DistinctValueScan(scan, tuple(sorted(property_names))),)
    return replace(read_plan, operators=new_operators)


def _properties_read(expression: Any) -> set[str] | None:
    """Return the properties that a value or predicate reads, or None if it reads anything other than properties."""
    match expression:
        case plan.Constant() | plan.Parameter():
            return set()
        case plan.PropertyValue():
            return {expression.name}
        case plan.Aggregate() | plan.Compare() | plan.InList() | plan.IsNull():
            pass
        case plan.TextTest() | plan.And() | plan.Or() | plan.Not() | plan.Truth():
            pass
        case plan.Arithmetic() | plan.Negative() | plan.ScalarCall() | plan.Case():
            pass
        case _:
            return None
    property_names: set[str] = set()
    for subexpression in operands_of(expression):
        read_properties = _properties_read(subexpression)
        if read_properties is None:
            return None
        property_names |= read_properties
    return property_names
