"""Filter pushdown: convert predicates to Arrow expressions that produce the same result when storage evaluates them.

A predicate that cannot be expressed exactly is evaluated after the scan instead. Where a predicate is unknown, the
expression may be null, because filters keep only the rows for which a predicate is true. Filters are never passed to
storage as SQL text.
"""

import math
from collections.abc import Callable
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.expressions.compare import ColumnComparison, ConstantOutcome, normalize_comparison, swap_operator
from omnigraph.engine.expressions.evaluate import is_constant
from omnigraph.lang.query import plan
from omnigraph.storage.substrait import filter_constant as constant_of
from omnigraph.storage.substrait import filter_constants as constants_of

from .fetch import SYSTEM_COLUMNS

ConstantResolver = Callable[[plan.Value], Any]

_COMPARISONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_MAX_LIST_ITEMS = 1_000


def to_storage_filter(schema: pa.Schema, predicate: plan.Predicate, resolve_constant: ConstantResolver) -> Any | None:
    """Convert a predicate on one table's columns to an expression, or return None if it cannot be pushed down."""
    match predicate:
        case plan.Compare():
            return _push_comparison(schema, predicate, resolve_constant)
        case plan.TextTest():
            return _push_text_test(schema, predicate, resolve_constant)
        case plan.InList():
            return _push_in_list(schema, predicate, resolve_constant)
        case plan.IsNull():
            return _push_is_null(schema, predicate)
        case plan.And() | plan.Or():
            combine = and_ if isinstance(predicate, plan.And) else or_
            return _combine_all(
                combine, [to_storage_filter(schema, operand, resolve_constant) for operand in predicate.items]
            )
    return None


def _push_is_null(schema: pa.Schema, null_test: plan.IsNull) -> Any | None:
    field = _column_field(schema, null_test.operand)
    if field is None or not _is_comparable_type(field.type):
        return None
    column = pc.field(field.name)
    return column.is_valid() if null_test.negated else column.is_null()


def _combine_all(combine: Callable[[Any, Any], Any], expressions: list[Any | None]) -> Any | None:
    pushed = [expression for expression in expressions if expression is not None]
    return reduce(combine, pushed) if len(pushed) == len(expressions) else None


def _push_comparison(schema: pa.Schema, comparison: plan.Compare, resolve_constant: ConstantResolver) -> Any | None:
    left, operator, right = comparison.left, comparison.operator, comparison.right
    if is_constant(left):
        left, operator, right = right, swap_operator(operator), left
    field = _column_field(schema, left)
    if field is None or not is_constant(right) or not _is_comparable_type(field.type):
        return None
    value = resolve_constant(right)
    if value is None:
        return pc.scalar(False)
    exact_test = normalize_comparison(field.type, operator, value)
    if isinstance(exact_test, ColumnComparison) and pa.types.is_floating(field.type):
        return _push_float_comparison(field, exact_test)
    return _comparison_expression(field, exact_test)


def _comparison_expression(field: pa.Field, exact_test: ColumnComparison | ConstantOutcome) -> Any:
    column = pc.field(field.name)
    if isinstance(exact_test, str):
        return column.is_valid() if exact_test == "always" else pc.scalar(False)
    value = constant_of(exact_test.constant, field.type)
    return _COMPARISONS[exact_test.operator](column, value)


def _push_float_comparison(field: pa.Field, exact_test: ColumnComparison) -> Any | None:
    """Return an expression for a float comparison, or None if signed zeros or NaN would change its result."""
    operator, constant = exact_test.operator, exact_test.constant
    if not math.isfinite(constant) or operator == "!=":
        return None
    if operator == "=":
        return _value_in(field, [constant])
    # Choose the sign of zero that puts both zeros on the same side of the comparison.
    signed_bound = constant or (0.0 if operator in (">", "<=") else -0.0)
    bounded = _comparison_expression(field, ColumnComparison(operator, signed_bound))
    if operator in (">", ">="):
        return bounded & _comparison_expression(field, ColumnComparison("<=", math.inf))
    return bounded & _comparison_expression(field, ColumnComparison(">=", -math.inf))


def _push_text_test(schema: pa.Schema, text_test: plan.TextTest, resolve_constant: ConstantResolver) -> Any | None:
    """Return an expression for a prefix or substring test, or None if it cannot be pushed down."""
    field = _column_field(schema, text_test.left)
    if field is None or not pa.types.is_string(field.type) or not is_constant(text_test.right):
        return None
    needle = resolve_constant(text_test.right)
    if needle is None:
        return pc.scalar(False)
    match_function = {"starts_with": pc.starts_with, "string_contains": pc.match_substring}.get(text_test.operator)
    return match_function(pc.field(field.name), needle) if match_function is not None else None


def _push_in_list(schema: pa.Schema, list_test: plan.InList, resolve_constant: ConstantResolver) -> Any | None:
    field = _column_field(schema, list_test.operand)
    if field is None or not _is_comparable_type(field.type):
        return None
    items = resolve_constant(list_test.items)
    if items is None or len(items) > _MAX_LIST_ITEMS:
        return None
    exact_tests = [normalize_comparison(field.type, "=", item) for item in items]
    list_values = {item.constant for item in exact_tests if isinstance(item, ColumnComparison)}
    if pa.types.is_floating(field.type) and not all(map(math.isfinite, list_values)):
        return None
    return _value_in(field, sorted(list_values)) if list_values else pc.scalar(False)


def _value_in(field: pa.Field, allowed_values: list[Any]) -> Any:
    """Return an expression that tests membership in the given values and treats positive and negative zero as equal."""
    if pa.types.is_floating(field.type) and 0 in allowed_values:
        allowed_values = [allowed for allowed in allowed_values if allowed] + [-0.0, 0.0]
    return pc.field(field.name).isin(constants_of(pa.array(allowed_values, field.type)))


def _column_field(schema: pa.Schema, value: plan.Value) -> pa.Field | None:
    match value:
        case plan.PropertyValue():
            return schema.field(value.name)
        case plan.SystemValue():
            return schema.field(SYSTEM_COLUMNS[value.field])
    return None


def _is_comparable_type(data_type: pa.DataType) -> bool:
    """Return whether storage compares values of this type in the same way as the engine."""
    types = pa.types
    type_checks = (types.is_string, types.is_integer, types.is_floating, types.is_boolean)
    return any(type_check(data_type) for type_check in (*type_checks, types.is_date, types.is_timestamp))
