"""Resolve the columns that a constraint refers to, with their types."""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.schema import model
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .arguments import is_identifier
from .draft import TypeDraft
from .findings import CheckStage, SchemaFindings

_ENDPOINT_COLUMNS = ("dst", "src")


@record
class ConstraintColumn:
    """A property or edge endpoint in a constraint. `type` is None if the declared type is invalid."""

    name: str
    type: PropertyType | None
    span: Span


def resolve_columns(draft: TypeDraft, constraint: model.Constraint, findings: SchemaFindings) -> list[ConstraintColumn]:
    """Return the distinct columns in a `@key`, `@unique` or `@index`, and report unknown columns."""
    if not constraint.arguments:
        hint = f"write `@{constraint.kind}(property, …)`"
        message = f"`@{constraint.kind}` must name at least one property"
        findings.add(CheckStage.CONSTRAINT, constraint.span, message, hint)
    columns_by_name: dict[str, ConstraintColumn] = {}
    for argument in constraint.arguments:
        column = resolve_column(draft, constraint, argument, findings)
        if column is not None:
            columns_by_name.setdefault(column.name, column)
    return list(columns_by_name.values())


def resolve_column(
    draft: TypeDraft, constraint: model.Constraint, argument: model.Literal | model.Bounds, findings: SchemaFindings
) -> ConstraintColumn | None:
    """Return the column that an argument refers to, or None if there is no such column."""
    column_name = _read_column_name(constraint, argument, findings)
    if column_name is None:
        return None
    property_draft = draft.properties.get(column_name)
    if property_draft is not None:
        return ConstraintColumn(
            column_name, property_draft.definition.type if property_draft.has_valid_type else None, argument.span
        )
    endpoint_columns = _ENDPOINT_COLUMNS if draft.kind == "edge" else ()
    if column_name in endpoint_columns:
        return ConstraintColumn(column_name, PropertyType(ScalarType.STRING), argument.span)
    if draft.has_all_interfaces:
        message = f"`@{constraint.kind}`: {draft.label} has no property `{column_name}`"
        likely_name = {"from": "src", "to": "dst"}.get(column_name, column_name) if endpoint_columns else column_name
        hint = did_you_mean(likely_name, [*draft.properties, *endpoint_columns])
        findings.add(CheckStage.CONSTRAINT, argument.span, message, hint)
    return None


def _read_column_name(
    constraint: model.Constraint, argument: model.Literal | model.Bounds, findings: SchemaFindings
) -> str | None:
    hint = None
    if isinstance(argument, model.Literal):
        # `true` is not a keyword here: it may be the name of a property.
        if argument.kind in ("word", "bool") and is_identifier(argument.text):
            return argument.text
        hint = "write the property name without quotes" if argument.kind == "string" else None
    message = f"`@{constraint.kind}` expects a property name"
    findings.add(CheckStage.CONSTRAINT, argument.span, message, hint)
    return None
