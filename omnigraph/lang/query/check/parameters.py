"""Declared parameters: names and defaults.

Owns the rules of a declaration. Values passed at run time are bound elsewhere.
"""

from omnigraph.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.record import record
from omnigraph.values import PropertyType

from . import literals
from .report import Report
from .scope import ANONYMOUS


@record
class CheckedParameter:
    """A declared parameter; `default` is None if a value is required or null is the default."""

    name: str
    type: PropertyType
    default: plan.Constant | None = None


def check_parameters(
    report: Report, parameters: tuple[m.Parameter, ...]
) -> tuple[CheckedParameter, ...]:
    """Return the parameters, each name once; report invalid declarations."""
    found: dict[str, CheckedParameter] = {}
    for one in parameters:
        _check_name(report, one, one.name in found)
        default = _default(report, one)
        found.setdefault(one.name, CheckedParameter(one.name, one.type, default))
    return tuple(found.values())


def _check_name(report: Report, parameter: m.Parameter, taken: bool) -> None:
    name = parameter.name
    word = Span(parameter.span.start, parameter.span.start + len(name) + 1)
    if name == plan.NOW:
        message = f"`${plan.NOW}` is reserved for the time of the request"
        report.error(word, message, hint="write `now()`")
    elif name == ANONYMOUS:
        report.error(word, "`$_` is anonymous and cannot be a parameter")
    elif taken:
        report.error(word, f"parameter `${name}` is declared twice")


def _default(report: Report, parameter: m.Parameter) -> plan.Constant | None:
    """Return the value of an omitted parameter, or None if it has no default."""
    if parameter.default is None:
        return None
    given = literals.constant(report, parameter.default)
    if given is None or not isinstance(given.value, plan.Constant):
        return None
    stored = literals.fit(given.value, parameter.type)
    if isinstance(stored, str):
        report.error(given.span, f"default of `${parameter.name}`: {stored}", "T3")
        return None
    return stored
