"""Resolves the columns that a constraint names, with their types."""

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.record import record
from omnigraph.values import PropertyType, ScalarType

from .arguments import is_identifier
from .draft import Draft
from .findings import Findings, Stage

_ENDPOINTS = ("dst", "src")


@record
class Column:
    """A property or edge endpoint that a constraint names; `type` is None if it is unreadable."""

    name: str
    type: PropertyType | None
    span: Span


def resolve(draft: Draft, written: model.Constraint, findings: Findings) -> list[Column]:
    """Return the distinct columns of `@key`, `@unique` or `@index`; report unknown ones."""
    if not written.arguments:
        hint = f"write `@{written.kind}(property, …)`"
        findings.add(Stage.CONSTRAINT, written.span, f"`@{written.kind}` names no property", hint)
    found: dict[str, Column] = {}
    for argument in written.arguments:
        column = resolve_one(draft, written, argument, findings)
        if column is not None:
            found.setdefault(column.name, column)
    return list(found.values())


def resolve_one(
    draft: Draft,
    written: model.Constraint,
    argument: model.Literal | model.Bounds,
    findings: Findings,
) -> Column | None:
    """Return the column that one argument names, or None if it is rejected."""
    name = _name(written, argument, findings)
    if name is None:
        return None
    site = draft.sites.get(name)
    if site is not None:
        return Column(name, site.made.type if site.readable else None, argument.span)
    endpoints = _ENDPOINTS if draft.kind == "edge" and written.kind != "key" else ()
    if name in endpoints:
        return Column(name, PropertyType(ScalarType.STRING), argument.span)
    if draft.complete:
        message = f"`@{written.kind}`: {draft.label} has no property `{name}`"
        meant = {"from": "src", "to": "dst"}.get(name, name) if endpoints else name
        hint = did_you_mean(meant, [*draft.sites, *endpoints])
        findings.add(Stage.CONSTRAINT, argument.span, message, hint)
    return None


def _name(
    written: model.Constraint, argument: model.Literal | model.Bounds, findings: Findings
) -> str | None:
    hint = None
    if isinstance(argument, model.Literal):
        # `true` is an ordinary word here: it may be the name of a property.
        if argument.kind in ("word", "bool") and is_identifier(argument.text):
            return argument.text
        hint = "write the property name without quotes" if argument.kind == "string" else None
    message = f"`@{written.kind}` expects the name of a property"
    findings.add(Stage.CONSTRAINT, argument.span, message, hint)
    return None
