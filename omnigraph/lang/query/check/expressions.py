"""Resolve expressions to typed plan values.

This module defines what variables, property accesses, literals and `now()` mean. Aggregates, rankings and column names
make sense only in some contexts, so they are resolved by the checks for those contexts.
"""

from collections.abc import Callable
from typing import cast

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.schema.catalog import PropertyDefinition
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType

from . import literals
from .scalars import ScalarRules, resolve_scalar
from .scope import (
    ANONYMOUS,
    BrokenVariable,
    EdgeVariable,
    HopEdgeVariable,
    NodeVariable,
    PathVariable,
    Scope,
    declared_edge_types,
    entity_type,
)
from .typed_values import DATETIME, STRING, TypedValue

# Maximum number of names to search for a similar one. With more names, suggestions are slow and mostly wrong.
_MAX_GUESS_NAMES = 100
_EDGE_FIELDS = ("id", "from", "to")


def resolve_expression(scope: Scope, expression: m.Expression) -> TypedValue | None:
    """Return the value of an expression, or None after reporting an error."""
    match expression:
        case m.Literal() | m.ListLiteral():
            return literals.resolve_literal(scope.report, expression)
        case m.Variable():
            return resolve_variable(scope, expression)
        case m.Field():
            return resolve_field(scope, expression)
        case m.Now():
            return resolve_now(expression.span)
        case m.Aggregate():
            message = f"`{expression.function}` can only be used in `return`, `having` and `order`"
            scope.report.error(expression.span, message, "T7")
        case m.Call():
            message = f"`{expression.function}` cannot be used as a value here"
            scope.report.error(expression.span, message, "T7")
        case m.Arithmetic() | m.Negative() | m.ScalarCall() | m.Case():
            return resolve_scalar_expression(scope, expression, lambda operand: resolve_expression(scope, operand))
        case m.Alias():
            message = f"`{expression.name}` is neither a variable nor a literal"
            scope.report.error(expression.span, message, hint=_missing_dollar_hint(scope, expression.name))
    return None


def resolve_scalar_expression(
    scope: Scope, expression: m.ScalarExpression, resolve_operand: Callable[[m.Expression], TypedValue | None]
) -> TypedValue | None:
    """Return the value of an arithmetic expression, a function call or a `case`.

    `resolve_operand` resolves its operands.
    """
    from .clauses import check_condition
    from .paths import is_path_call, resolve_path_call

    if isinstance(expression, m.ScalarCall) and is_path_call(scope, expression):
        return resolve_path_call(scope, expression)
    rules = ScalarRules(scope.report, resolve_operand, lambda condition: check_condition(scope, condition))
    return resolve_scalar(rules, expression)


def resolve_now(span: Span) -> TypedValue:
    """Return the request time, which stays constant throughout the request."""
    return TypedValue(plan.Parameter(plan.NOW_PARAMETER, DATETIME), DATETIME, span)


def resolve_variable(scope: Scope, variable: m.Variable) -> TypedValue | None:
    """Resolve a variable to a parameter, node, edge or path, or return None after reporting an error."""
    parameter_value = resolve_parameter(scope, variable)
    if parameter_value is not None:
        return parameter_value
    bound_variable = scope.variables.get(variable.name)
    if isinstance(bound_variable, NodeVariable):
        return TypedValue(plan.Entity(bound_variable.name, bound_variable.type_name), None, variable.span)
    if isinstance(bound_variable, EdgeVariable):
        edge_types = bound_variable.edge_types
        return TypedValue(plan.Entity(bound_variable.name, "|".join(edge_types), edge_types), None, variable.span)
    if isinstance(bound_variable, PathVariable):
        path_value = plan_paths.PathEntity(bound_variable.name, bound_variable.type_name, bound_variable.has_cost)
        return TypedValue(path_value, None, variable.span)
    if isinstance(bound_variable, HopEdgeVariable):
        report_hop_edge(scope, variable.name, variable.span)
    elif bound_variable is None:
        scope.report.error(
            variable.span, _unbound_message(variable.name), hint=_similar_name_hint(scope, variable.name)
        )
        _mark_broken(scope, variable.name)
    return None


def resolve_parameter(scope: Scope, variable: m.Variable) -> TypedValue | None:
    """Return the parameter that a variable refers to, or None if there is none. Reports no errors."""
    parameter_type = scope.parameters.get(variable.name)
    if parameter_type is None:
        return None
    scope.used_parameters.add(variable.name)
    return TypedValue(plan.Parameter(variable.name, parameter_type), parameter_type, variable.span)


def resolve_field(scope: Scope, field: m.Field) -> TypedValue | None:
    """Resolve a reference to a property, an `id` or an endpoint, or return None after reporting an error."""
    bound_variable = scope.variables.get(field.variable)
    if isinstance(bound_variable, NodeVariable):
        return _resolve_node_field(scope, field, bound_variable)
    if isinstance(bound_variable, EdgeVariable):
        return _resolve_edge_field(scope, field, bound_variable)
    if isinstance(bound_variable, HopEdgeVariable):
        report_hop_edge(scope, field.variable, field.span)
    elif isinstance(bound_variable, PathVariable):
        hint = f"use `length(${field.variable})`, `nodes(${field.variable})` or `edges(${field.variable})`"
        scope.report.error(field.span, f"path `${field.variable}` has no properties", "T26", hint=hint)
    elif bound_variable is None:
        _report_unbound(scope, field)
    return None


def report_hop_edge(scope: Scope, variable_name: str, span: Span) -> None:
    """Report that a multi-hop traversal's edge variable is read outside the traversal."""
    message = f"`${variable_name}` represents every edge on the path and cannot be used here"
    scope.report.error(span, message, "T23", hint="test the edges with `where`, directly after the traversal")


def find_declaration(scope: Scope, field: m.Field) -> PropertyDefinition | None:
    """Return the declaration of a bound node's property, or None if there is none. Reports no errors."""
    bound_variable = scope.variables.get(field.variable)
    if not isinstance(bound_variable, NodeVariable):
        return None
    entity = entity_type(scope.catalog, bound_variable.type_name)
    return entity.property(field.name) if entity is not None else None


def _resolve_node_field(scope: Scope, field: m.Field, bound_variable: NodeVariable) -> TypedValue | None:
    if field.name == "id":
        return _system_value(bound_variable.name, "id", bound_variable.optional, field.span)
    declaration = find_declaration(scope, field)
    if declaration is not None:
        visible_type = _visible_type(declaration.type, bound_variable.optional)
        return TypedValue(plan.PropertyValue(bound_variable.name, field.name, visible_type), visible_type, field.span)
    entity = entity_type(scope.catalog, bound_variable.type_name)
    field_names = (
        ["id", *(declared_property.name for declared_property in entity.properties)] if entity is not None else []
    )
    message = f"{bound_variable.type_name} has no property `{field.name}`"
    scope.report.error(field.span, message, "T6", hint=did_you_mean(field.name, field_names))
    return None


def _resolve_edge_field(scope: Scope, field: m.Field, bound_variable: EdgeVariable) -> TypedValue | None:
    if field.name in _EDGE_FIELDS:
        return _system_value(
            bound_variable.name, cast("plan.SystemField", field.name), bound_variable.optional, field.span
        )
    edge_declarations = declared_edge_types(scope.catalog, bound_variable)
    declarations = [
        declared_property
        for declared_property in (edge.property(field.name) for edge in edge_declarations)
        if declared_property is not None
    ]
    field_types = {declared_property.type.as_nullable(True) for declared_property in declarations}
    if len(declarations) == len(edge_declarations) and len(field_types) == 1:
        is_nullable = bound_variable.optional or any(
            declared_property.type.nullable for declared_property in declarations
        )
        field_type = field_types.pop().as_nullable(is_nullable)
        return TypedValue(plan.PropertyValue(bound_variable.name, field.name, field_type), field_type, field.span)
    field_names = [
        *_EDGE_FIELDS,
        *(declared_property.name for edge in edge_declarations for declared_property in edge.properties),
    ]
    problem, hint = "has no property", did_you_mean(field.name, field_names)
    if len(edge_declarations) != 1:
        problem = "have no property"
    if declarations:
        problem = "do not share the property"
        hint = "the property must have the same type in every edge type" if len(field_types) > 1 else None
    message = f"{' and '.join(bound_variable.edge_types)} {problem} `{field.name}`"
    scope.report.error(field.span, message, "T6", hint=hint)
    return None


def _system_value(plan_name: str, system_field: plan.SystemField, optional: bool, span: Span) -> TypedValue:
    value_type = STRING.as_nullable(optional)
    return TypedValue(plan.SystemValue(plan_name, system_field, value_type), value_type, span)


def _visible_type(property_type: PropertyType, optional: bool) -> PropertyType:
    return property_type.as_nullable(True) if optional else property_type


def _report_unbound(scope: Scope, field: m.Field) -> None:
    if field.variable in scope.parameters:
        scope.used_parameters.add(field.variable)
        message = f"parameter `${field.variable}` has no properties"
        scope.report.error(field.span, message, "T6")
        return
    scope.report.error(
        field.span, _unbound_message(field.variable), "T6", hint=_similar_name_hint(scope, field.variable)
    )
    _mark_broken(scope, field.variable)


def _mark_broken(scope: Scope, variable_name: str) -> None:
    if variable_name != ANONYMOUS:
        scope.variables[variable_name] = BrokenVariable(variable_name)


def _unbound_message(variable_name: str) -> str:
    if variable_name == ANONYMOUS:
        return "`$_` is anonymous and cannot be referenced"
    return f"variable `${variable_name}` is not bound"


def _similar_name_hint(scope: Scope, variable_name: str) -> str | None:
    too_many_names = len(scope.variables) + len(scope.parameters) > _MAX_GUESS_NAMES
    if too_many_names or variable_name == ANONYMOUS:
        return None
    return did_you_mean(variable_name, [*scope.variables, *scope.parameters])


def _missing_dollar_hint(scope: Scope, bare_word: str) -> str | None:
    is_declared = bare_word in scope.variables or bare_word in scope.parameters
    return f"write `${bare_word}`" if is_declared else None
