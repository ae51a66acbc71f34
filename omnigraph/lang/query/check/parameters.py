"""Check declared parameters: their names and defaults.

This module checks only declarations. Values passed at run time are bound in `query/parameters.py`.
"""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

from . import literals
from .report import CheckReport
from .scope import ANONYMOUS


@record
class CheckedParameter:
    """A declared parameter. `default` is None if a value is required or if the default is null."""

    name: str
    type: PropertyType
    default: plan.Constant | None = None


def check_parameters(report: CheckReport, parameters: tuple[m.Parameter, ...]) -> tuple[CheckedParameter, ...]:
    """Return the first parameter with each name, and report invalid declarations."""
    checked_parameters: dict[str, CheckedParameter] = {}
    for parameter in parameters:
        _check_parameter_name(report, parameter, parameter.name in checked_parameters)
        default = _check_default(report, parameter)
        checked_parameters.setdefault(parameter.name, CheckedParameter(parameter.name, parameter.type, default))
    return tuple(checked_parameters.values())


def _check_parameter_name(report: CheckReport, parameter: m.Parameter, is_duplicate: bool) -> None:
    parameter_name = parameter.name
    name_span = Span(parameter.span.start, parameter.span.start + len(parameter_name) + 1)
    if parameter_name == plan.NOW_PARAMETER:
        message = f"`${plan.NOW_PARAMETER}` is reserved for the request time"
        report.error(name_span, message, hint="write `now()`")
    elif parameter_name == ANONYMOUS:
        report.error(name_span, "`$_` is anonymous and cannot be a parameter")
    elif is_duplicate:
        report.error(name_span, f"parameter `${parameter_name}` is declared twice")


def _check_default(report: CheckReport, parameter: m.Parameter) -> plan.Constant | None:
    """Return a parameter's default value, or None if it has no default or an invalid one."""
    if parameter.default is None:
        return None
    typed_value = literals.resolve_literal(report, parameter.default)
    if typed_value is None or not isinstance(typed_value.value, plan.Constant):
        return None
    stored_constant = literals.fit_constant(typed_value.value, parameter.type)
    if isinstance(stored_constant, str):
        report.error(typed_value.span, f"invalid default for `${parameter.name}`: {stored_constant}", "T3")
        return None
    return stored_constant
