"""Constants and comparisons of the query language by value, with NULL, for the oracle."""

from collections.abc import Callable
from typing import Any

from omnigraph.lang.query import model as m
from omnigraph.values import PropertyType, ScalarType, parse_date, parse_datetime

from .dictionary_graph import Value, native

_DATE = PropertyType(ScalarType.DATE)
_MOMENT = PropertyType(ScalarType.DATETIME)


def compared(left: Value, operator: str, right: Value) -> bool | None:
    """A comparison by value; unknown when a side is missing."""
    if left is None or right is None:
        return None
    found: dict[str, Any] = {
        "=": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
        "contains": lambda: right in left,
        "starts_with": lambda: left.startswith(right),
    }
    return bool(found[operator]())


def contained(one: Value, several: Value) -> bool | None:
    """Membership in a list of constants."""
    return None if one is None or several is None else one in several


def literal(node: m.Literal) -> Value:
    """The value of a constant."""
    return _READ[node.kind](node.text)


_READ: dict[str, Callable[[str], Value]] = {
    "string": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
    "null": lambda _: None,
    "date": lambda text: native(_DATE, parse_date(text)),
    "datetime": lambda text: native(_MOMENT, parse_datetime(text)),
}
