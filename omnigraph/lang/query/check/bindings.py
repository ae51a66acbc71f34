"""Check bindings, which introduce a variable with a node type and inline predicates.

This module determines the types of bound nodes and the meaning of inline predicates: equality for scalars, membership
for lists, and `is null` for null.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import PropertyDefinition
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType, ScalarType

from . import expressions, literals
from .checked import CheckedBinding, CheckedClause, CheckedFilter
from .scope import (
    ANONYMOUS,
    BrokenVariable,
    EdgeVariable,
    HopEdgeVariable,
    NodeVariable,
    PathVariable,
    Scope,
    entity_type,
    narrower_type,
)
from .typed_values import STRING, TypedValue, is_comparable


def check_binding(scope: Scope, binding: m.Binding) -> list[CheckedClause]:
    """Return a binding's checked clauses."""
    type_name = _check_type_name(scope, binding.type_name)
    clauses: list[CheckedClause] = []
    if check_bindable(scope, binding.variable):
        clauses += _bind_variable(scope, binding.variable, type_name)
    predicates = _check_predicates(scope, binding, type_name) if type_name is not None else []
    bound_variable = scope.variables.get(binding.variable.name)
    if bound_variable is not None and bound_variable.optional:
        # A variable that an outer `optional` left null is not a node of any type.
        id_value = plan.SystemValue(bound_variable.name, "id", STRING.as_nullable(True))
        predicates.append(plan.IsNull(id_value, negated=True))
    if bound_variable is not None:
        clauses.append(CheckedBinding(bound_variable.name, tuple(predicates), binding.span))
    return clauses


def check_bindable(scope: Scope, variable: m.Variable) -> bool:
    """Return whether a clause may bind this variable to a node. Report an error if it may not."""
    bound_variable = scope.variables.get(variable.name)
    if variable.name in scope.parameters:
        message = f"`${variable.name}` is a parameter and cannot be bound"
        scope.report.error(variable.span, message)
    elif isinstance(bound_variable, PathVariable):
        message = f"`${variable.name}` is a path and cannot be used as a node"
        scope.report.error(variable.span, message, "T26")
    elif isinstance(bound_variable, EdgeVariable | HopEdgeVariable):
        message = f"`${variable.name}` is an edge and cannot be used as a node"
        scope.report.error(variable.span, message, "T23")
    elif bound_variable is not None and bound_variable.optional and variable.name not in scope.inherited_names:
        message = f"`${variable.name}` is bound in an `optional` block and may be null"
        hint = "move this clause into that `optional` block or into a new `optional` block"
        scope.report.error(variable.span, message, hint=hint)
    else:
        return True
    return False


def narrow_variable(scope: Scope, variable_name: str, type_name: str) -> list[CheckedClause]:
    """Narrow a variable to a compatible type. If an outer scope bound it, return a filter that tests the type."""
    bound_variable = scope.variables.get(variable_name)
    if not isinstance(bound_variable, NodeVariable):
        scope.variables[variable_name] = NodeVariable(scope.plan_name(variable_name), type_name)
        return []
    narrowed_type = narrower_type(scope.catalog, bound_variable.type_name, type_name)
    if narrowed_type is None or narrowed_type == bound_variable.type_name:
        return []
    scope.variables[variable_name] = NodeVariable(bound_variable.name, narrowed_type, bound_variable.optional)
    return (
        [CheckedFilter(plan.OfType(bound_variable.name, narrowed_type))]
        if variable_name in scope.inherited_names
        else []
    )


def _check_type_name(scope: Scope, type_name: m.Name) -> str | None:
    if entity_type(scope.catalog, type_name.text) is not None:
        return type_name.text
    type_names = [node_type.name for node_type in scope.catalog.nodes]
    type_names += [interface.name for interface in scope.catalog.interfaces]
    hint = did_you_mean(type_name.text, type_names)
    if scope.catalog.edge(type_name.text) is not None:
        hint = f"{type_name.text} is an edge: traverse it, as in `$a {_traversal_word(type_name.text)} $b`"
    scope.report.error(type_name.span, f"unknown node type `{type_name.text}`", "T1", hint=hint)
    return None


def _traversal_word(edge_name: str) -> str:
    return edge_name[:1].lower() + edge_name[1:]


def _bind_variable(scope: Scope, variable: m.Variable, type_name: str | None) -> list[CheckedClause]:
    if variable.name == ANONYMOUS:
        message = "`$_` is anonymous and cannot be bound to a type"
        scope.report.error(variable.span, message, hint="give the variable a name")
        return []
    bound_variable = scope.variables.get(variable.name)
    if type_name is None:
        if bound_variable is None:
            scope.variables[variable.name] = BrokenVariable(scope.plan_name(variable.name))
        return []
    current_type = bound_variable.type_name if isinstance(bound_variable, NodeVariable) else type_name
    if narrower_type(scope.catalog, current_type, type_name) is None:
        message = f"`${variable.name}` has type {current_type} and cannot also have type {type_name}"
        scope.report.error(variable.span, message)
        return []
    return narrow_variable(scope, variable.name, type_name)


def _check_predicates(scope: Scope, binding: m.Binding, type_name: str) -> list[plan.Predicate]:
    bound_variable = scope.variables.get(binding.variable.name)
    plan_name = bound_variable.name if bound_variable is not None else binding.variable.name
    checked_predicates = (_check_predicate(scope, plan_name, type_name, predicate) for predicate in binding.predicates)
    return [predicate for predicate in checked_predicates if predicate is not None]


def _check_predicate(
    scope: Scope, plan_name: str, type_name: str, inline_predicate: m.InlinePredicate
) -> plan.Predicate | None:
    typed_value = _resolve_inline_value(scope, inline_predicate.value)
    entity = entity_type(scope.catalog, type_name)
    declaration = entity.property(inline_predicate.name.text) if entity is not None else None
    if inline_predicate.name.text == "id":
        declaration = _ID_PROPERTY
    if entity is not None and declaration is None:
        hint = did_you_mean(
            inline_predicate.name.text, [declared_property.name for declared_property in entity.properties]
        )
        message = f"{type_name} has no property `{inline_predicate.name.text}`"
        scope.report.error(inline_predicate.name.span, message, "T2", hint=hint)
    if declaration is None or typed_value is None:
        return None
    mismatch = _value_mismatch(typed_value, declaration.type)
    if mismatch is not None:
        code = "T3" if typed_value.is_literal or declaration.type.scalar is ScalarType.BLOB else "T7"
        hint = literals.suggest_enum_value(typed_value, declaration.type)
        scope.report.error(typed_value.span, f"`{declaration.name}`: {mismatch}", code, hint=hint)
        return None
    return _equality_predicate(plan_name, declaration, typed_value)


_ID_PROPERTY = PropertyDefinition("id", PropertyType(ScalarType.STRING))


def _resolve_inline_value(scope: Scope, expression: m.Expression) -> TypedValue | None:
    if not isinstance(expression, m.Variable):
        return expressions.resolve_expression(scope, expression)
    parameter_value = expressions.resolve_parameter(scope, expression)
    if parameter_value is None:
        message = f"`${expression.name}` is not a parameter"
        hint = "use a literal or a parameter inside the braces; compare variables in a separate clause"
        scope.report.error(expression.span, message, "T14", hint=hint)
    return parameter_value


def _value_mismatch(typed_value: TypedValue, property_type: PropertyType) -> str | None:
    """Return the reason why a value can never equal the value of a property, or None if it can."""
    if property_type.scalar is ScalarType.BLOB:
        return "Blobs cannot be matched"
    if typed_value.is_null:
        return None if property_type.nullable else "a required property is never null"
    if property_type.is_vector:
        return "Vectors cannot be matched; use `nearest` to rank rows by this property"
    if typed_value.type is None or typed_value.type.is_list or not is_comparable(typed_value.type, property_type):
        list_note = " to look for in the list" if property_type.is_list else ""
        expected_type = property_type.element_type().display()
        return f"expected a single {expected_type}{list_note}, found {typed_value.describe_type()}"
    if isinstance(typed_value.value, plan.Constant) and property_type.enum_values is not None:
        stored_constant = literals.fit_constant(typed_value.value, property_type)
        return stored_constant if isinstance(stored_constant, str) else None
    return None


def _equality_predicate(plan_name: str, declaration: PropertyDefinition, typed_value: TypedValue) -> plan.Predicate:
    property_value: plan.Value = plan.PropertyValue(plan_name, declaration.name, declaration.type)
    if declaration is _ID_PROPERTY:
        property_value = plan.SystemValue(plan_name, "id", declaration.type)
    if typed_value.is_null:
        return plan.IsNull(property_value)
    if declaration.type.is_list:
        return plan.TextTest(property_value, "list_contains", typed_value.value)
    return plan.Compare(property_value, "=", typed_value.value)
