"""Values for the parameters of a compiled query, before it runs.

Owns which parameters callers may omit and which values they may pass. One error reports every
problem; nothing runs until all parameters have values of their types.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import ParameterError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType, ScalarType, coerce_parameter
from omnigraph.values.coerce import Mode

from .check.parameters import CheckedParameter
from .plan import NOW

_TIME = PropertyType(ScalarType.DATETIME)


def bind_parameters(
    parameters: Iterable[CheckedParameter],
    given: Mapping[str, Any],
    mode: Mode = "standard",
    now: object = None,
) -> dict[str, Any]:
    """Return the stored value of each parameter; raise one `ParameterError` with all problems.

    `request_time` is the time of the request (a datetime, a text, or milliseconds). It is stored
    under the reserved name `__now`, for `now()`.

    >>> age = CheckedParameter("age", PropertyType(ScalarType.I32))
    >>> bind_parameters([age], {"age": "7"})
    {'age': 7}
    """
    declared = {one.name: one for one in parameters}
    problems = [_unknown(name, declared) for name in given if name not in declared]
    values: dict[str, Any] = {}
    for parameter in declared.values():
        found = _value(parameter, given, mode)
        if isinstance(found, ParameterError):
            problems.append(found)
        else:
            values[parameter.name] = found
    if problems:
        raise _together(problems)
    if now is not None:
        values[NOW] = now if isinstance(now, int) else coerce_parameter(_TIME, now, name=NOW)
    return values


def _value(parameter: CheckedParameter, given: Mapping[str, Any], mode: Mode) -> Any:
    kind = parameter.type
    if parameter.name in given:
        try:
            return coerce_parameter(kind, given[parameter.name], name=parameter.name, mode=mode)
        except ParameterError as error:
            return error
    if parameter.default is not None:
        return parameter.default.value
    if kind.nullable:
        return None
    message = f"parameter '${parameter.name}': expected {kind.display()}, but it is missing"
    return ParameterError(
        message, parameter=parameter.name, expected=kind.display(), actual="nothing"
    )


def _unknown(name: str, declared: Mapping[str, CheckedParameter]) -> ParameterError:
    message = f"parameter '${name}': the query has no such parameter"
    return ParameterError(message, parameter=name, hint=did_you_mean(name, declared))


def _together(problems: list[ParameterError]) -> ParameterError:
    """Join problems in one error: the first gives the facts, `details["problems"]` lists all."""
    first = problems[0]
    messages = [one.message for one in problems]
    if len(problems) == 1:
        return first
    return ParameterError(
        "; ".join(messages), hint=first.hint, **first.details, problems=tuple(messages)
    )
