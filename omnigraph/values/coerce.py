"""The three entry points for values, each with the error that names where the value came from.

Query parameters, load records and mutation assignments. All return stored values.
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
"""Who supplies a parameter: a JSON client, a client that rounds large integers, or Python."""

_SURFACES: dict[Mode, Surface] = {
    "standard": PARAMETER,
    "javascript": JAVASCRIPT,
    "python": PYTHON,
}


def coerce_parameter(kind: PropertyType, value: Any, *, name: str, mode: Mode = "standard") -> Any:
    """Return the stored value of a query parameter, or raise `ParameterError`.

    Integers may be given as decimal text. `javascript` refuses integers beyond 2^53 - 1 in any
    other form, because such a client has already rounded them; `python` accepts every U64.

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
    """Return the stored value of a property in a load record, or raise `PropertyValueError`.

    Pass None for an absent member.

    >>> from omnigraph.values import ScalarType
    >>> coerce_loaded(PropertyType(ScalarType.DATE), 19723, type_name="Slot", property="day")
    19723
    """
    return _property(kind, LOAD, value, type_name=type_name, property=property, line=line)


def coerce_assigned(kind: PropertyType, value: Any, *, type_name: str, property: str) -> Any:
    """Return the stored value of a property that a mutation assigns, or raise `PropertyValueError`.

    Accepts literals and stored parameter values. Numbers convert between integer and float when the
    conversion is exact.

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
