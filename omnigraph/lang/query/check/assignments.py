"""Assignments in insert, upsert, patch and update statements, such as `age: $a`, `from: "ann"` and `bio: null`.

This module decides which values a property accepts, and converts literals to their stored form. Parameters and
expressions are converted when the statement runs.
"""

from collections.abc import Callable

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, Key, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType

from . import expressions, literals
from .scope import Scope
from .typed_values import STRING, TypedValue, is_assignable, is_text

_ENDPOINT_NAMES = ("from", "to")
_ENDPOINT_HINT = 'an endpoint must be a node id, which is a string such as "7"'
_ENDPOINT_BY_COLUMN = {"src": "from", "dst": "to"}


def check_assignments(
    scope: Scope,
    target_type: NodeType | EdgeType | None,
    assignment_nodes: tuple[m.Assignment, ...],
    *,
    allows_id: bool = False,
    resolve_value: Callable[[m.Expression], TypedValue | None] | None = None,
) -> tuple[plan.Assign, ...]:
    """Return the valid assignments and report invalid ones. If the type is unknown (None), check only the values.

    `resolve_value` resolves values that may depend on the changed row. Without it, all values must be constants.
    """
    resolve_value = resolve_value or (lambda expression: resolve_constant(scope, expression))
    checked_assignments: list[plan.Assign] = []
    seen_names: set[str] = set()
    for assignment in assignment_nodes:
        if assignment.name.text in seen_names:
            message = f"`{assignment.name.text}` is assigned twice"
            scope.report.error(assignment.name.span, message, "T13")
        seen_names.add(assignment.name.text)
        typed_value = resolve_value(assignment.value)
        if target_type is None:
            continue
        names_row = allows_id and assignment.name.text == "id"
        property_type = STRING if names_row else assignable_type(scope, target_type, assignment.name)
        if property_type is not None and typed_value is not None:
            checked_assignments += _check_assignment(scope, assignment, property_type, typed_value)
    return tuple(checked_assignments)


def check_identity_unchanged(
    scope: Scope, target_type: NodeType | EdgeType, assignment_nodes: tuple[m.Assignment, ...]
) -> None:
    """Report every assignment in an update that would change the key or an edge endpoint."""
    for assignment in assignment_nodes:
        name = assignment.name.text
        if name in key_names(target_type):
            message = f"`{name}` is part of the {target_type.name} key and cannot be changed"
            scope.report.error(assignment.name.span, message, hint=_renewal_hint(target_type))
    check_endpoints_unchanged(scope, target_type, assignment_nodes)


def check_endpoints_unchanged(
    scope: Scope, target_type: NodeType | EdgeType, assignment_nodes: tuple[m.Assignment, ...]
) -> None:
    """Report every assignment to an edge endpoint that is not part of the edge's key."""
    if not isinstance(target_type, EdgeType):
        return
    for assignment in assignment_nodes:
        name = assignment.name.text
        if name in _ENDPOINT_NAMES and name not in key_names(target_type):
            message = f"`{name}` is an endpoint of {target_type.name} and cannot be changed"
            scope.report.error(assignment.name.span, message, "T16", hint=_renewal_hint(target_type))


def _renewal_hint(target_type: NodeType | EdgeType) -> str:
    return f"delete the {target_type.kind} and insert it again"


def key_names(target_type: NodeType | EdgeType) -> tuple[str, ...]:
    """Return the names of a type's key properties and key endpoints, or an empty tuple if the type has no key."""
    keys = (constraint.columns for constraint in target_type.constraints if isinstance(constraint, Key))
    return tuple(_ENDPOINT_BY_COLUMN.get(column_name, column_name) for column_name in next(keys, ()))


def resolve_constant(scope: Scope, expression: m.Expression) -> TypedValue | None:
    """Resolve a literal, a parameter, `now()` or an expression made of these.

    Report any variable that is not a parameter.
    """
    if isinstance(expression, m.Arithmetic | m.Negative | m.ScalarCall | m.Case):
        return expressions.resolve_scalar_expression(
            scope, expression, lambda operand: resolve_constant(scope, operand)
        )
    if not isinstance(expression, m.Variable):
        return expressions.resolve_expression(scope, expression)
    parameter_value = expressions.resolve_parameter(scope, expression)
    if parameter_value is None:
        message = f"`${expression.name}` is not a parameter"
        hint = did_you_mean(expression.name, scope.parameters)
        scope.report.error(expression.span, message, "T14", hint=hint)
    return parameter_value


def assignable_type(scope: Scope, target_type: NodeType | EdgeType, property_name: m.Name) -> PropertyType | None:
    """Return the type of an assigned property or endpoint, or None after reporting an error."""
    if isinstance(target_type, EdgeType) and property_name.text in _ENDPOINT_NAMES:
        return STRING
    declaration = target_type.property(property_name.text)
    if declaration is not None:
        return declaration.type
    property_names = [declared_property.name for declared_property in target_type.properties]
    hint = did_you_mean(property_name.text, property_names)
    message = f"{target_type.name} has no property `{property_name.text}`"
    if property_name.text == "id":
        message, hint = "`id` cannot be assigned", "the id is derived from the key or generated"
    scope.report.error(property_name.span, message, "T11", hint=hint)
    return None


def _check_assignment(
    scope: Scope, assignment: m.Assignment, property_type: PropertyType, typed_value: TypedValue
) -> list[plan.Assign]:
    if isinstance(typed_value.value, plan.Constant):
        stored_constant = literals.fit_constant(typed_value.value, property_type)
        if isinstance(stored_constant, plan.Constant):
            return [plan.Assign(assignment.name.text, stored_constant)]
        hint = (
            _row_name_hint(property_type, assignment.name)
            or _date_literal_hint(property_type, typed_value)
            or literals.suggest_enum_value(typed_value, property_type)
        )
        scope.report.error(typed_value.span, f"`{assignment.name.text}`: {stored_constant}", "T3", hint=hint)
        return []
    if typed_value.type is not None and is_assignable(typed_value.type, property_type):
        return [plan.Assign(assignment.name.text, typed_value.value)]
    message = f"`{assignment.name.text}`: expected {property_type.display()}, found {typed_value.describe_type()}"
    scope.report.error(typed_value.span, message, "T7", hint=_row_name_hint(property_type, assignment.name))
    return []


def _row_name_hint(property_type: PropertyType, name: m.Name) -> str | None:
    """Return a hint if the assignment sets an id or an endpoint, or None otherwise."""
    # `assignable_type` returns the `STRING` object itself only for ids and endpoints.
    if property_type is not STRING:
        return None
    return 'an id is a string such as "7"' if name.text == "id" else _ENDPOINT_HINT


def _date_literal_hint(property_type: PropertyType, typed_value: TypedValue) -> str | None:
    is_date = property_type.scalar.value in ("Date", "DateTime")
    return f'write `{property_type.scalar.value.lower()}("…")`' if is_date and is_text(typed_value.type) else None
