"""`@default`: checks that the literal is a valid value of its property."""

from typing import Any

from omnigraph.errors import PropertyValueError
from omnigraph.lang.schema import literals, model
from omnigraph.values import PropertyType, ScalarType, coerce_assigned

from .findings import Findings, Stage


def read_default(
    written: model.Property, one: model.Annotation | None, findings: Findings
) -> model.Literal | None:
    """Return the literal of `@default(…)` if it is a valid value; bare `@default` has none."""
    if one is None or not one.arguments:
        return None
    problem = _form(one) or (None if written.refused else _misfit(written, one.arguments[0]))
    if problem is None:
        return one.arguments[0]
    message, hint = problem
    findings.add(Stage.ANNOTATION, one.arguments[0].span, message, hint)
    return None


_Problem = tuple[str, str | None]


def _form(one: model.Annotation) -> _Problem | None:
    if len(one.arguments) > 1 or one.options:
        return "`@default` takes one value", None
    literal = one.arguments[0]
    if literal.kind == "word" and literal.text == "null":
        return "`@default(null)` has no effect", "a nullable property is null without a default"
    return None


def _misfit(written: model.Property, literal: model.Literal) -> _Problem | None:
    kind, name = written.type, written.name.text
    if kind.is_list or kind.is_vector or kind.scalar is ScalarType.BLOB:
        what = "list" if kind.is_list else "vector" if kind.is_vector else "blob"
        return f"`@default` on `{name}`: a {what} cannot have a default", None
    if kind.enum_values is not None:
        if literal.text in kind.enum_values:
            return None
        values = ", ".join(kind.enum_values)
        return f"`@default` on `{name}`: `{literal.text}` is not one of {values}", None
    value = _value(kind, literal)
    if value is None:
        return _wrong(written, literal, _spoken(literal))
    try:
        coerce_assigned(kind, value, type_name="", property=name)
    except PropertyValueError as error:
        return _wrong(written, literal, str(error.details.get("actual") or literal.text))
    return None


def _wrong(written: model.Property, literal: model.Literal, found: str) -> _Problem:
    wanted = written.type.as_nullable(nullable=False).display()
    message = f"`@default` on `{written.name.text}`: expected {wanted}, got {found}"
    quoted = written.type.scalar in (ScalarType.STRING, ScalarType.DATE, ScalarType.DATETIME)
    hint = f'put it in quotes: `"{literal.text}"`' if quoted and literal.kind != "string" else None
    return message, hint


def _value(kind: PropertyType, literal: model.Literal) -> Any:
    """Return the Python value of a literal whose form fits the type, else None."""
    if kind.scalar is ScalarType.BOOL:
        return literal.text == "true" if literal.kind == "bool" else None
    if kind.is_integer:
        return literals.integer(literal)
    if kind.is_numeric:
        return literals.number(literal)
    return literal.text if literal.kind == "string" else None


def _spoken(literal: model.Literal) -> str:
    return f"string `{literal.text}`" if literal.kind == "string" else f"`{literal.text}`"
