"""Bind values to a compiled query's parameters before it runs.

This module decides which parameters callers may omit and which values they may pass. All problems are reported in one
error, and a query runs only if every parameter has a value of the right type.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import ParameterError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType, ScalarType, coerce_parameter
from omnigraph.values.coerce import ParameterMode, parameter_converter
from omnigraph.values.mismatch import ConversionMismatch

from .check.parameters import CheckedParameter
from .plan import NOW_PARAMETER

_REQUEST_TIME_TYPE = PropertyType(ScalarType.DATETIME)


def bind_parameters(
    parameters: Iterable[CheckedParameter],
    arguments: Mapping[str, Any],
    coercion_mode: ParameterMode = "standard",
    request_time: object = None,
) -> dict[str, Any]:
    """Return each parameter's value in stored form, or raise one `ParameterError` that lists all problems.

    `request_time` is a datetime, a string, a number of milliseconds, or None. Unless it is None, it is stored under the
    reserved name `__now`, which `now()` reads.

    >>> age = CheckedParameter("age", PropertyType(ScalarType.I32))
    >>> bind_parameters([age], {"age": "7"})
    {'age': 7}
    """
    declared_parameters = {declared.name: declared for declared in parameters}
    problems = [
        _unknown_parameter_error(argument_name, declared_parameters)
        for argument_name in arguments
        if argument_name not in declared_parameters
    ]
    bound_values: dict[str, Any] = {}
    for parameter in declared_parameters.values():
        bound_value = _parameter_value(parameter, arguments, coercion_mode)
        if isinstance(bound_value, ParameterError):
            problems.append(bound_value)
        else:
            bound_values[parameter.name] = bound_value
    if problems:
        raise _combine_errors(problems)
    if request_time is not None:
        bound_values[NOW_PARAMETER] = (
            request_time
            if isinstance(request_time, int)
            else coerce_parameter(_REQUEST_TIME_TYPE, request_time, parameter_name=NOW_PARAMETER)
        )
    return bound_values


class ParameterBinder:
    """Binds parameters for a query that is called many times. The result is the same as that of `bind_parameters`."""

    __slots__ = ("_coercion_mode", "_converters", "_parameters")

    def __init__(self, parameters: tuple[CheckedParameter, ...], coercion_mode: ParameterMode) -> None:
        self._parameters = parameters
        self._coercion_mode = coercion_mode
        self._converters = {declared.name: parameter_converter(declared.type, coercion_mode) for declared in parameters}

    def bind(self, arguments: Mapping[str, Any], request_time: int) -> dict[str, Any]:
        """Return each parameter's value in stored form, and the request time in milliseconds."""
        converters = self._converters
        if arguments.keys() == converters.keys():
            try:
                bound_values = {name: converters[name](argument) for name, argument in arguments.items()}
            except ConversionMismatch:  # the problem is reported below, together with all other problems
                return bind_parameters(self._parameters, arguments, self._coercion_mode, request_time)
            bound_values[NOW_PARAMETER] = request_time
            return bound_values
        return bind_parameters(self._parameters, arguments, self._coercion_mode, request_time)


def _parameter_value(parameter: CheckedParameter, arguments: Mapping[str, Any], coercion_mode: ParameterMode) -> Any:
    parameter_type = parameter.type
    if parameter.name in arguments:
        try:
            return coerce_parameter(
                parameter_type, arguments[parameter.name], parameter_name=parameter.name, mode=coercion_mode
            )
        except ParameterError as error:
            return error
    if parameter.default is not None:
        return parameter.default.value
    if parameter_type.nullable:
        return None
    message = f"parameter '${parameter.name}': expected {parameter_type.display()}, but no value was given"
    return ParameterError(message, parameter=parameter.name, expected=parameter_type.display(), actual="nothing")


def _unknown_parameter_error(argument_name: str, declared_parameters: Mapping[str, CheckedParameter]) -> ParameterError:
    message = f"parameter '${argument_name}': the query has no such parameter"
    return ParameterError(message, parameter=argument_name, hint=did_you_mean(argument_name, declared_parameters))


def _combine_errors(problems: list[ParameterError]) -> ParameterError:
    """Combine problems into one error that has the first problem's details and lists all messages in `problems`."""
    first_error = problems[0]
    messages = [problem.message for problem in problems]
    if len(problems) == 1:
        return first_error
    return ParameterError("; ".join(messages), hint=first_error.hint, **first_error.details, problems=tuple(messages))
