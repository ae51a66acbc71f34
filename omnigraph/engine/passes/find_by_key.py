"""Replace a scan, or a search for the end of a path, with a lookup by id if the filters specify the whole `@key`.

The id of a keyed node is derived from its key, so filters that specify every key member also specify the id.
"""

from dataclasses import replace
from typing import Any

from omnigraph.engine.operators.fetch import columns_read
from omnigraph.engine.operators.project import projected_columns
from omnigraph.engine.physical_operators import KeyScan
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR, ordered_key_columns
from omnigraph.values import PropertyType


def find_by_key(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Replace scans that specify the whole key with lookups."""
    columns_read_later = projected_columns(schema_ir.catalog, read_plan.columns)
    columns_read_later |= columns_read(*(sort_key.value for sort_key in read_plan.order))
    return replace(read_plan, operators=_look_up_keys(read_plan.operators, schema_ir, columns_read_later))


def _look_up_keys(operators: Any, schema_ir: SchemaIR, columns_read_later: set[tuple[str, str]]) -> Any:
    rewritten: list[Any] = []
    for operator in operators:
        if isinstance(operator, plan.AntiJoin | plan.LeftJoin):
            inner = _look_up_keys(operator.inner, schema_ir, columns_read_later)
            rewritten.append(replace(operator, inner=inner))
        elif isinstance(operator, plan.NodeScan) and not operator.implementers:
            rewritten.append(_replace_with_key_scan(operator, schema_ir, columns_read_later))
        elif isinstance(operator, plan.FindPaths) and operator.target is not None and operator.target_filters:
            rewritten += _bind_end_first(operator, operator.target, schema_ir, columns_read_later)
        else:
            rewritten.append(operator)
    return tuple(rewritten)


def _bind_end_first(
    search: plan.FindPaths, target: str, schema_ir: SchemaIR, columns_read_later: set[tuple[str, str]]
) -> list[Any]:
    """Look up the end of a path by key before the search, instead of testing every node that the search reaches."""
    end_scan = plan.NodeScan(target, search.node_type, search.target_filters)
    key_scan = _replace_with_key_scan(end_scan, schema_ir, columns_read_later)
    if not isinstance(key_scan, KeyScan):
        return [search]
    return [key_scan, replace(search, target=None, closing=target, target_filters=())]


def _replace_with_key_scan(
    operator: plan.NodeScan, schema_ir: SchemaIR, columns_read_later: set[tuple[str, str]]
) -> plan.NodeScan | KeyScan:
    key_names = ordered_key_columns(schema_ir, operator.type_name) if schema_ir.catalog.node(operator.type_name) else ()
    equality_by_name = {
        property_name: (filter_index, property_type, value)
        for filter_index, property_name, property_type, value in _find_equalities(operator)
    }
    if not key_names or any(property_name not in equality_by_name for property_name in key_names):
        return operator
    used_filters = {equality_by_name[property_name][0] for property_name in key_names}
    remaining_filters = tuple(
        predicate for filter_index, predicate in enumerate(operator.filters) if filter_index not in used_filters
    )
    prefetch_columns = {
        property_name
        for variable, property_name in columns_read_later | columns_read(*remaining_filters)
        if variable == operator.variable
    }
    key_members = tuple(
        (property_name, equality_by_name[property_name][1], equality_by_name[property_name][2])
        for property_name in key_names
    )
    return KeyScan(operator, key_members, remaining_filters, tuple(sorted(prefetch_columns)))


def _find_equalities(scan: plan.NodeScan) -> list[tuple[int, str, PropertyType, plan.Value]]:
    """Return the filters that equate a property with a constant, as (filter index, name, type, value) tuples."""
    equalities = []
    for filter_index, predicate in enumerate(scan.filters):
        if not isinstance(predicate, plan.Compare) or predicate.operator != "=":
            continue
        for operand, value in ((predicate.left, predicate.right), (predicate.right, predicate.left)):
            is_fixed = isinstance(value, plan.Constant | plan.Parameter)
            if is_fixed and isinstance(operand, plan.PropertyValue):
                equalities.append((filter_index, operand.name, operand.type, value))
    return equalities
