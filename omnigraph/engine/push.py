"""Filter pushdown: predicates as Arrow expressions that storage evaluates with the same result.

A predicate that cannot be expressed exactly is not pushed down; it is evaluated after the scan.
Only "true" counts, so an expression may be null where the predicate is unknown. Filters are never
passed to storage as SQL text.
"""

import math
from collections.abc import Callable
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan
from omnigraph.storage.substrait import constant as constant_of
from omnigraph.storage.substrait import constants as constants_of

from .compare import Outcome, Settled, settle, turned
from .evaluate import is_constant
from .fetch import SYSTEM

Constants = Callable[[plan.Value], Any]

_TESTS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_MOST_ITEMS = 1_000


def push(schema: pa.Schema, predicate: plan.Predicate, constant: Constants) -> Any | None:
    """Return the expression of a predicate on the columns of one table, or None."""
    match predicate:
        case plan.Compare():
            return _compare(schema, predicate, constant)
        case plan.TextTest():
            return _text_test(schema, predicate, constant)
        case plan.InList():
            return _in_list(schema, predicate, constant)
        case plan.IsNull():
            return _is_null(schema, predicate)
        case plan.And() | plan.Or():
            join = and_ if isinstance(predicate, plan.And) else or_
            return _all(join, [push(schema, one, constant) for one in predicate.items])
    return None


def _is_null(schema: pa.Schema, test: plan.IsNull) -> Any | None:
    field = _field(schema, test.operand)
    if field is None or not _plain(field.type):
        return None
    column = pc.field(field.name)
    return column.is_valid() if test.negated else column.is_null()


def _all(join: Callable[[Any, Any], Any], parts: list[Any | None]) -> Any | None:
    known = [one for one in parts if one is not None]
    return reduce(join, known) if len(known) == len(parts) else None


def _compare(schema: pa.Schema, test: plan.Compare, constant: Constants) -> Any | None:
    left, operator, right = test.left, test.operator, test.right
    if is_constant(left):
        left, operator, right = right, turned(operator), left
    field = _field(schema, left)
    if field is None or not is_constant(right) or not _plain(field.type):
        return None
    value = constant(right)
    if value is None:
        return pc.scalar(False)
    settled = settle(field.type, operator, value)
    if isinstance(settled, Settled) and pa.types.is_floating(field.type):
        return _float_test(field, settled)
    return _expression(field, settled)


def _expression(field: pa.Field, settled: Settled | Outcome) -> Any:
    column = pc.field(field.name)
    if isinstance(settled, str):
        return column.is_valid() if settled == "always" else pc.scalar(False)
    value = constant_of(settled.constant, field.type)
    return _TESTS[settled.operator](column, value)


def _float_test(field: pa.Field, settled: Settled) -> Any | None:
    """Storage may use the total order of floats: -0.0 below 0.0, NaN beyond the infinities."""
    operator, constant = settled.operator, settled.constant
    if not math.isfinite(constant) or operator == "!=":
        return None
    if operator == "=":
        return _one_of(field, [constant])
    # Choose the zero that puts both zeros on the same side of the comparison.
    edge = constant or (0.0 if operator in (">", "<=") else -0.0)
    found = _expression(field, Settled(operator, edge))
    if operator in (">", ">="):
        return found & _expression(field, Settled("<=", math.inf))
    return found & _expression(field, Settled(">=", -math.inf))


def _text_test(schema: pa.Schema, test: plan.TextTest, constant: Constants) -> Any | None:
    """Prefix and substring tests, which an index can answer."""
    field = _field(schema, test.left)
    if field is None or not pa.types.is_string(field.type) or not is_constant(test.right):
        return None
    needle = constant(test.right)
    if needle is None:
        return pc.scalar(False)
    find = {"starts_with": pc.starts_with, "string_contains": pc.match_substring}.get(test.operator)
    return find(pc.field(field.name), needle) if find is not None else None


def _in_list(schema: pa.Schema, test: plan.InList, constant: Constants) -> Any | None:
    field = _field(schema, test.operand)
    if field is None or not _plain(field.type):
        return None
    items = constant(test.items)
    if items is None or len(items) > _MOST_ITEMS:
        return None
    settled = [settle(field.type, "=", one) for one in items]
    held = {one.constant for one in settled if isinstance(one, Settled)}
    if pa.types.is_floating(field.type) and not all(map(math.isfinite, held)):
        return None
    return _one_of(field, sorted(held)) if held else pc.scalar(False)


def _one_of(field: pa.Field, values: list[Any]) -> Any:
    """Return whether a column has one of these values; zero is stored with either sign."""
    if pa.types.is_floating(field.type) and 0 in values:
        values = [one for one in values if one] + [-0.0, 0.0]
    return pc.field(field.name).isin(constants_of(pa.array(values, field.type)))


def _field(schema: pa.Schema, value: plan.Value) -> pa.Field | None:
    match value:
        case plan.PropertyValue():
            return schema.field(value.name)
        case plan.SystemValue():
            return schema.field(SYSTEM[value.field])
    return None


def _plain(kind: pa.DataType) -> bool:
    """Return whether storage is known to compare values of this type as the engine does."""
    types = pa.types
    tests = (types.is_string, types.is_integer, types.is_floating, types.is_boolean)
    return any(test(kind) for test in (*tests, types.is_date, types.is_timestamp))
