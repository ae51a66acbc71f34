"""Scalar expressions on plain values, for the oracle: one row at a time, from the tree as written.

Null gives null, except in `coalesce` and `case`. It knows neither plans nor columns; a number that is
too large for 64 bits is an `OverflowError`.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from omnigraph.lang.query import model as m

from .dictionary_graph import Value
from .path_reference import FoundPath, of_path

Valued = Callable[[m.Expression], Value]
Judged = Callable[[m.Condition], bool | None]


def computed(node: m.ScalarExpression, value: Valued, truth: Judged) -> Value:  # noqa: PLR0911 - one return per kind
    """The value of an expression, given what its operands and conditions are."""
    match node:
        case m.Arithmetic():
            return _chain([value(one) for one in node.operands], node.operators)
        case m.Negative():
            operand = value(node.operand)
            return None if operand is None else _fitting(-operand)
        case m.ScalarCall("coalesce"):
            return next((one for one in map(value, node.arguments) if one is not None), None)
        case m.ScalarCall():
            given = [value(one) for one in node.arguments]
            if given and isinstance(given[0], FoundPath):
                return of_path(node.function, given[0])
            return None if None in given else _FUNCTIONS[node.function](*given)
        case m.Case():
            for branch in node.branches:
                if truth(branch.condition) is True:
                    return value(branch.value)
            return None if node.default is None else value(node.default)


def _chain(operands: list[Value], operators: tuple[str, ...]) -> Value:
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = None if result is None or operand is None else _step(result, operator, operand)
    return result


def _step(left: Any, operator: str, right: Any) -> Value:
    if isinstance(left, str):
        return left + right
    if operator in "/%" and right == 0:
        return None
    if operator == "/" or isinstance(left, float) or isinstance(right, float):
        return _FLOATS[operator](float(left), float(right))
    return _fitting(_INTEGERS[operator](left, right))


def _fitting(number: Any) -> Any:
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
}
_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}


def _rounded(number: Any, digits: int = 0) -> Any:
    """Half away from zero; only for numbers whose decimals are exact."""
    if isinstance(number, int):
        step = 10 ** max(-digits, 0)
        whole = (abs(number) + step // 2) // step * step
        return whole if number >= 0 else -whole
    scaled = math.floor(abs(number) * 10.0**digits + 0.5) / 10.0**digits
    return math.copysign(scaled, number)


def _substring(text: str, start: int, count: int | None = None) -> str:
    return text[start - 1 :] if count is None else text[start - 1 : start - 1 + count]


def _whole(function: Callable[[float], int]) -> Callable[[Any], Any]:
    return lambda number: number if isinstance(number, int) else float(function(number))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "substring": _substring,
    "replace": str.replace,
    "split": lambda text, separator: tuple(text.split(separator)),
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "abs": lambda number: _fitting(abs(number)),
    "round": _rounded,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
}
