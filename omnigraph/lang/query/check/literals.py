"""Constants: their values, and whether a value fits a declared type.

Knows no variables. Fitting returns the stored form, so that later layers never convert a literal
again.
"""

import math

from omnigraph.errors import PropertyValueError
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.values import (
    RANGES,
    PropertyType,
    ScalarType,
    coerce_assigned,
    parse_date,
    parse_datetime,
)

from .report import Report
from .typed import BOOL, DATETIME, F64, I64, STRING, Typed, feeds

_KINDS = {
    "string": STRING,
    "int": I64,
    "float": F64,
    "bool": BOOL,
    "date": PropertyType(ScalarType.DATE),
    "datetime": DATETIME,
}
_LONGEST = 20  # Python refuses to parse extremely long integers


def constant(report: Report, literal: m.Literal | m.ListLiteral) -> Typed | None:
    """Return the value and type of a literal, or None after reporting that it is invalid."""
    if isinstance(literal, m.ListLiteral):
        return _list(report, literal)
    if literal.kind == "null":
        kind = STRING.as_nullable(True)
        return Typed(plan.Constant(None, kind), kind, literal.span)
    value = _scalar(literal)
    if value is None:
        message, hint = _BAD[literal.kind]
        report.error(literal.span, message.format(literal.text), hint=hint)
        return None
    kind = _KINDS[literal.kind]
    return Typed(plan.Constant(value, kind), kind, literal.span)


def fit(value: plan.Constant, wanted: PropertyType) -> plan.Constant | str:
    """Return the literal in the stored form of a declared type, or why it does not fit.

    >>> fit(plan.Constant(5, I64), F64) == plan.Constant(5.0, F64)
    True
    >>> fit(plan.Constant("x", STRING), I64)
    'expected I64, found String'
    """
    if value.value is None:
        message = f"null does not fit {wanted.display()}"
        return plan.Constant(None, wanted) if wanted.nullable else message
    if not _like(value, wanted):
        return f"expected {wanted.display()}, found {value.type.display()}"
    if wanted.enum_values is not None and value.value not in wanted.enum_values:
        return f'"{value.value}" is not one of {", ".join(wanted.enum_values)}'
    try:
        stored = coerce_assigned(wanted, value.value, type_name="", property="")
    except PropertyValueError as error:
        return f"expected {error.expected}, found {error.actual}"
    return plan.Constant(stored, wanted)


def _like(value: plan.Constant, wanted: PropertyType) -> bool:
    if value.value == ():
        return wanted.is_list or wanted.is_vector
    if wanted.is_vector:
        return value.type.is_list and value.type.scalar.is_numeric
    return feeds(value.type, wanted)


def _scalar(literal: m.Literal) -> object | None:
    text = literal.text
    match literal.kind:
        case "int":
            return _integer(text)
        case "float":
            return float(text) if math.isfinite(float(text)) else None
        case "bool":
            return text == "true"
        case "date":
            return parse_date(text)
        case "datetime":
            return parse_datetime(text)
    return text


_BAD = {
    "int": ("{} does not fit in 64 bits", None),
    "float": ("{} is too large for F64", None),
    "date": ('"{}" is not a valid date', "write it like 2024-02-29"),
    "datetime": ('"{}" is not a valid datetime', "write it like 2024-02-29T12:00:00Z"),
}


def _integer(text: str) -> int | None:
    if len(text.lstrip("-0")) > _LONGEST:
        return None
    low, high = RANGES[ScalarType.I64]
    return int(text) if low <= int(text) <= high else None


def _list(report: Report, literal: m.ListLiteral) -> Typed | None:
    found = [_item(report, one) for one in literal.items]
    items = [one for one in found if one is not None]
    if len(items) != len(found):
        return None
    scalar = _common(report, items)
    if scalar is None:
        return None
    kind = PropertyType(scalar, is_list=True)
    values = tuple(one.value.value for one in items if isinstance(one.value, plan.Constant))
    return Typed(plan.Constant(values, kind), kind, literal.span)


def _common(report: Report, items: list[Typed]) -> ScalarType | None:
    """Return the common scalar type of all items; an empty list counts as a list of strings."""
    kinds = {one.type.scalar: one for one in reversed(items) if one.type is not None}
    if not kinds:
        return ScalarType.STRING
    if all(kind.is_numeric for kind in kinds):
        return ScalarType.F64 if ScalarType.F64 in kinds else ScalarType.I64
    if len(kinds) == 1:
        return next(iter(kinds))
    odd = next(one for one in items if one.type != items[0].type)
    report.error(odd.span, f"a list cannot mix {items[0].shown()} and {odd.shown()}")
    return None


def _item(report: Report, item: m.Literal) -> Typed | None:
    if item.kind != "null":
        return constant(report, item)
    report.error(item.span, "a list cannot contain null", hint="remove the null")
    return None
