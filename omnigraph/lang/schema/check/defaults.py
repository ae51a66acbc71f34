"""Check that the literal in a `@default` is a valid value for the property."""

from typing import Any

from omnigraph.errors import PropertyValueError
from omnigraph.lang.schema import literals, model
from omnigraph.values import PropertyType, ScalarType, coerce_assigned

from .findings import CheckStage, SchemaFindings


def read_default(
    declared_property: model.Property, annotation: model.Annotation | None, findings: SchemaFindings
) -> model.Literal | None:
    """Return the literal in `@default(…)`, or None if it is invalid. A bare `@default` has no literal."""
    if annotation is None or not annotation.arguments:
        return None
    problem = _find_argument_problem(annotation) or (
        None if declared_property.type_rejected else _find_value_problem(declared_property, annotation.arguments[0])
    )
    if problem is None:
        return annotation.arguments[0]
    message, hint = problem
    findings.add(CheckStage.ANNOTATION, annotation.arguments[0].span, message, hint)
    return None


_DefaultProblem = tuple[str, str | None]


def _find_argument_problem(annotation: model.Annotation) -> _DefaultProblem | None:
    if len(annotation.arguments) > 1 or annotation.options:
        return "`@default` takes one value", None
    literal = annotation.arguments[0]
    if literal.kind == "word" and literal.text == "null":
        return "`@default(null)` has no effect", "a nullable property already defaults to null"
    return None


def _find_value_problem(declared_property: model.Property, literal: model.Literal) -> _DefaultProblem | None:
    property_type, property_name = declared_property.type, declared_property.name.text
    if property_type.is_list or property_type.is_vector or property_type.scalar is ScalarType.BLOB:
        category = "list" if property_type.is_list else "vector" if property_type.is_vector else "blob"
        return f"`@default` on `{property_name}`: a {category} cannot have a default", None
    if property_type.enum_values is not None:
        if literal.text in property_type.enum_values:
            return None
        allowed_values = ", ".join(property_type.enum_values)
        return (f"`@default` on `{property_name}`: `{literal.text}` is not one of {allowed_values}", None)
    value = _parse_value(property_type, literal)
    if value is None:
        return _describe_type_problem(declared_property, literal, _describe_literal(literal))
    try:
        coerce_assigned(property_type, value, type_name="", property_name=property_name)
    except PropertyValueError as error:
        return _describe_type_problem(declared_property, literal, str(error.details.get("actual") or literal.text))
    return None


def _describe_type_problem(declared_property: model.Property, literal: model.Literal, actual: str) -> _DefaultProblem:
    expected_type = declared_property.type.as_nullable(nullable=False).display()
    message = f"`@default` on `{declared_property.name.text}`: expected {expected_type}, got {actual}"
    needs_quotes = declared_property.type.scalar in (ScalarType.STRING, ScalarType.DATE, ScalarType.DATETIME)
    hint = f'put the value in quotes: `"{literal.text}"`' if needs_quotes and literal.kind != "string" else None
    return message, hint


def _parse_value(property_type: PropertyType, literal: model.Literal) -> Any:
    """Return a literal's Python value, or None if its form does not match the type."""
    if property_type.scalar is ScalarType.BOOL:
        return literal.text == "true" if literal.kind == "bool" else None
    if property_type.is_integer:
        return literals.parse_integer(literal)
    if property_type.is_numeric:
        return literals.parse_number(literal)
    return literal.text if literal.kind == "string" else None


def _describe_literal(literal: model.Literal) -> str:
    return f"string `{literal.text}`" if literal.kind == "string" else f"`{literal.text}`"
