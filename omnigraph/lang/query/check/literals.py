"""Resolve constants, and check whether they fit a declared type.

This module handles only constants, never variables. `fit_constant` returns the stored form of a constant, so later
layers never have to convert a literal again.
"""

import math

from omnigraph.errors import PropertyValueError
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import RANGES, PropertyType, ScalarType, coerce_assigned, parse_date, parse_datetime

from .report import CheckReport
from .typed_values import BOOL, DATETIME, F64, I64, STRING, TypedValue, is_assignable

_LITERAL_TYPES = {
    "string": STRING,
    "int": I64,
    "float": F64,
    "bool": BOOL,
    "date": PropertyType(ScalarType.DATE),
    "datetime": DATETIME,
}
_MAX_DIGITS = 20  # Python raises an error for extremely long integers


def resolve_literal(report: CheckReport, literal: m.Literal | m.ListLiteral) -> TypedValue | None:
    """Return the value and type of a literal, or None after reporting an error."""
    if isinstance(literal, m.ListLiteral):
        return _resolve_list(report, literal)
    if literal.kind == "null":
        literal_type = STRING.as_nullable(True)
        return TypedValue(plan.Constant(None, literal_type), literal_type, literal.span)
    parsed_value = _parse_scalar(literal)
    if parsed_value is None:
        message, hint = _INVALID_MESSAGES[literal.kind]
        report.error(literal.span, message.format(literal.text), hint=hint)
        return None
    literal_type = _LITERAL_TYPES[literal.kind]
    return TypedValue(plan.Constant(parsed_value, literal_type), literal_type, literal.span)


def fit_constant(constant: plan.Constant, target_type: PropertyType) -> plan.Constant | str:
    """Convert a constant to the stored form of a declared type, or return the reason why it does not fit.

    >>> fit_constant(plan.Constant(5, I64), F64) == plan.Constant(5.0, F64)
    True
    >>> fit_constant(plan.Constant("x", STRING), I64)
    'expected I64, found String'
    """
    if constant.value is None:
        message = f"expected {target_type.display()}, found null"
        return plan.Constant(None, target_type) if target_type.nullable else message
    if not _kind_fits(constant, target_type):
        return f"expected {target_type.display()}, found {constant.type.display()}"
    if target_type.enum_values is not None and constant.value not in target_type.enum_values:
        return f'"{constant.value}" is not one of {", ".join(target_type.enum_values)}'
    try:
        stored_value = coerce_assigned(target_type, constant.value, type_name="", property_name="")
    except PropertyValueError as error:
        return f"expected {error.expected}, found {error.actual}"
    return plan.Constant(stored_value, target_type)


def suggest_enum_value(typed_value: TypedValue, property_type: PropertyType) -> str | None:
    """Return a hint if an enum contains a value that is similar to a text literal, or None otherwise."""
    text = typed_value.value.value if isinstance(typed_value.value, plan.Constant) else None
    allowed_values = property_type.enum_values
    return did_you_mean(text, allowed_values) if isinstance(text, str) and allowed_values is not None else None


def _kind_fits(constant: plan.Constant, target_type: PropertyType) -> bool:
    if constant.value == ():
        return target_type.is_list or target_type.is_vector
    if target_type.is_vector:
        return constant.type.is_list and constant.type.scalar.is_numeric
    return is_assignable(constant.type, target_type)


def _parse_scalar(literal: m.Literal) -> object | None:
    literal_text = literal.text
    match literal.kind:
        case "int":
            return _parse_integer(literal_text)
        case "float":
            return float(literal_text) if math.isfinite(float(literal_text)) else None
        case "bool":
            return literal_text == "true"
        case "date":
            return parse_date(literal_text)
        case "datetime":
            return parse_datetime(literal_text)
    return literal_text


_INVALID_MESSAGES = {
    "int": ("{} does not fit in 64 bits", None),
    "float": ("{} is too large for F64", None),
    "date": ('"{}" is not a valid date', "use the format 2024-02-29"),
    "datetime": ('"{}" is not a valid datetime', "use the format 2024-02-29T12:00:00Z"),
}


def _parse_integer(number_text: str) -> int | None:
    if len(number_text.lstrip("-0")) > _MAX_DIGITS:
        return None
    lowest, highest = RANGES[ScalarType.I64]
    return int(number_text) if lowest <= int(number_text) <= highest else None


def _resolve_list(report: CheckReport, literal: m.ListLiteral) -> TypedValue | None:
    resolved_items = [_resolve_item(report, list_item) for list_item in literal.items]
    valid_items = [list_item for list_item in resolved_items if list_item is not None]
    if len(valid_items) != len(resolved_items):
        return None
    element_scalar = _common_scalar(report, valid_items)
    if element_scalar is None:
        return None
    list_type = PropertyType(element_scalar, is_list=True)
    item_values = tuple(
        list_item.value.value for list_item in valid_items if isinstance(list_item.value, plan.Constant)
    )
    return TypedValue(plan.Constant(item_values, list_type), list_type, literal.span)


def _common_scalar(report: CheckReport, typed_items: list[TypedValue]) -> ScalarType | None:
    """Return the items' common scalar type, or None after reporting an error. If there are no items, return String."""
    items_by_scalar = {
        typed_item.type.scalar: typed_item for typed_item in reversed(typed_items) if typed_item.type is not None
    }
    if not items_by_scalar:
        return ScalarType.STRING
    if all(scalar.is_numeric for scalar in items_by_scalar):
        return ScalarType.F64 if ScalarType.F64 in items_by_scalar else ScalarType.I64
    if len(items_by_scalar) == 1:
        return next(iter(items_by_scalar))
    odd_item = next(typed_item for typed_item in typed_items if typed_item.type != typed_items[0].type)
    report.error(odd_item.span, f"a list cannot mix {typed_items[0].describe_type()} and {odd_item.describe_type()}")
    return None


def _resolve_item(report: CheckReport, item: m.Literal) -> TypedValue | None:
    if item.kind != "null":
        return resolve_literal(report, item)
    report.error(item.span, "lists cannot contain null", hint="remove the null")
    return None
