"""The three functions that convert input values to stored values.

They convert query parameters, values in load records, and values in mutation assignments. Each error names the
parameter, or the type and property, for which the value was passed.
"""

from typing import Any, Literal

from omnigraph.errors import ParameterError, PropertyValueError
from omnigraph.values.convert import (
    ASSIGNMENT_RULES,
    JAVASCRIPT_RULES,
    LOAD_RULES,
    PARAMETER_RULES,
    PYTHON_RULES,
    Converter,
    InputRules,
    converter_for,
)
from omnigraph.values.mismatch import ConversionMismatch
from omnigraph.values.types import PropertyType

ParameterMode = Literal["standard", "javascript", "python"]
"""Where a parameter comes from: a JSON client, a client that rounds large integers, or Python code."""

_RULES_BY_MODE: dict[ParameterMode, InputRules] = {
    "standard": PARAMETER_RULES,
    "javascript": JAVASCRIPT_RULES,
    "python": PYTHON_RULES,
}


def coerce_parameter(
    property_type: PropertyType, value: Any, *, parameter_name: str, mode: ParameterMode = "standard"
) -> Any:
    """Convert a query parameter to a stored value, or raise `ParameterError`.

    Integers may be passed as decimal strings. In `javascript` mode, integers beyond 2^53 - 1 are accepted only as
    strings, because a JavaScript client may already have rounded them. `python` mode accepts every U64.

    >>> from omnigraph.values import ScalarType
    >>> coerce_parameter(PropertyType(ScalarType.I64), "12", parameter_name="n")
    12
    """
    try:
        return parameter_converter(property_type, mode)(value)
    except ConversionMismatch as mismatch:
        raise ParameterError(
            parameter=parameter_name, expected=mismatch.expected, actual=mismatch.actual, hint=mismatch.hint
        ) from None


def parameter_converter(property_type: PropertyType, mode: ParameterMode = "standard") -> Converter:
    """Return a function that converts a query parameter's values. The function may raise `ConversionMismatch`."""
    return converter_for(property_type, _RULES_BY_MODE[mode])


def coerce_loaded(
    property_type: PropertyType, value: Any, *, type_name: str, property_name: str, line_number: int | None = None
) -> Any:
    """Convert a property value in a load record to a stored value, or raise `PropertyValueError`.

    Pass None if the property is missing from the record.

    >>> from omnigraph.values import ScalarType
    >>> coerce_loaded(PropertyType(ScalarType.DATE), 19723, type_name="Slot", property_name="day")
    19723
    """
    return _coerce_property(
        property_type, LOAD_RULES, value, type_name=type_name, property=property_name, line=line_number
    )


def coerce_assigned(property_type: PropertyType, value: Any, *, type_name: str, property_name: str) -> Any:
    """Convert the value in a mutation assignment to a stored value, or raise `PropertyValueError`.

    Both literals and stored parameter values are accepted. Integers are converted to floats, and floats to integers, if
    the conversion is exact.

    >>> from omnigraph.values import ScalarType
    >>> coerce_assigned(PropertyType(ScalarType.F64), 5, type_name="User", property_name="score")
    5.0
    """
    return _coerce_property(property_type, ASSIGNMENT_RULES, value, type_name=type_name, property=property_name)


def _coerce_property(property_type: PropertyType, rules: InputRules, value: Any, **error_fields: Any) -> Any:
    try:
        return converter_for(property_type, rules)(value)
    except ConversionMismatch as mismatch:
        raise PropertyValueError(
            expected=mismatch.expected, actual=mismatch.actual, hint=mismatch.hint, **error_fields
        ) from None
