"""The three ways in for values, each with the error that names where the value stood.

Parameters of queries, records of a load, assignments of mutations. All give stored values.
"""

from typing import Any, Literal

from omnigraph.errors import ParameterError, PropertyValueError
from omnigraph.values.convert import (
    ASSIGN,
    JAVASCRIPT,
    LOAD,
    PARAMETER,
    PYTHON,
    Misfit,
    Surface,
    converter,
)
from omnigraph.values.types import PropertyType

Mode = Literal["standard", "javascript", "python"]
"""Who gives a parameter: a JSON client, one that rounds large integers, or Python itself."""

_SURFACES: dict[Mode, Surface] = {
    "standard": PARAMETER,
    "javascript": JAVASCRIPT,
    "python": PYTHON,
}


def coerce_parameter(kind: PropertyType, value: Any, *, name: str, mode: Mode = "standard") -> Any:
    """The stored value of a query parameter, or `ParameterError`.

    Integers may come as decimal text. `javascript` refuses integers beyond 2^53 - 1 in any other
    form, because such a client has rounded them already; `python` takes every U64.

    >>> from omnigraph.values import ScalarType
    >>> coerce_parameter(PropertyType(ScalarType.I64), "12", name="n")
    12
    """
    try:
        return converter(kind, _SURFACES[mode])(value)
    except Misfit as misfit:
        raise ParameterError(
            parameter=name, expected=misfit.expected, actual=misfit.actual
        ) from None


def coerce_loaded(
    kind: PropertyType, value: Any, *, type_name: str, property: str, line: int | None = None
) -> Any:
    """The stored value of a property in a load record, or `PropertyValueError`.

    An absent member is given as None.

    >>> from omnigraph.values import ScalarType
    >>> coerce_loaded(PropertyType(ScalarType.DATE), 19723, type_name="Slot", property="day")
    19723
    """
    return _property(kind, LOAD, value, type_name=type_name, property=property, line=line)


def coerce_assigned(kind: PropertyType, value: Any, *, type_name: str, property: str) -> Any:
    """The stored value of a property that a mutation assigns, or `PropertyValueError`.

    Takes literals and stored values of parameters; numbers change between integer and float where
    nothing is lost.

    >>> from omnigraph.values import ScalarType
    >>> coerce_assigned(PropertyType(ScalarType.F64), 5, type_name="User", property="score")
    5.0
    """
    return _property(kind, ASSIGN, value, type_name=type_name, property=property)


def _property(kind: PropertyType, surface: Surface, value: Any, **place: Any) -> Any:
    try:
        return converter(kind, surface)(value)
    except Misfit as misfit:
        raise PropertyValueError(expected=misfit.expected, actual=misfit.actual, **place) from None
