"""Bindings: `$p: Person { name: "Ann" }`.

Owns the types of bound nodes and the meaning of inline predicates: equality for scalars, membership
for lists, `is null` for null.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Property
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType, ScalarType

from . import expressions, literals
from .checked import Bind, Clause, Keep
from .scope import (
    ANONYMOUS,
    Broken,
    EdgeVariable,
    NodeVariable,
    Scope,
    entity_type,
    narrower,
)
from .typed import STRING, Typed, same_kind


def binding(scope: Scope, node: m.Binding) -> list[Clause]:
    """Return the checked clauses of a binding."""
    type_name = _known_type(scope, node.type_name)
    clauses: list[Clause] = []
    if may_bind(scope, node.variable):
        clauses += _bind(scope, node.variable, type_name)
    predicates = _predicates(scope, node, type_name) if type_name is not None else []
    bound = scope.variables.get(node.variable.name)
    if bound is not None and bound.optional:
        # A variable that an outer `optional` left null is not a node of any type.
        own_id = plan.SystemValue(bound.name, "id", STRING.as_nullable(True))
        predicates.append(plan.IsNull(own_id, negated=True))
    if bound is not None:
        clauses.append(Bind(bound.name, tuple(predicates), node.span))
    return clauses


def may_bind(scope: Scope, variable: m.Variable) -> bool:
    """Whether a clause may bind this variable to a node; report it if not."""
    bound = scope.variables.get(variable.name)
    if variable.name in scope.parameters:
        message = f"`${variable.name}` is a parameter and cannot be bound"
        scope.report.error(variable.span, message)
    elif isinstance(bound, EdgeVariable):
        message = f"`${variable.name}` is an edge and cannot be used as a node"
        scope.report.error(variable.span, message, "T23")
    elif bound is not None and bound.optional and variable.name not in scope.inherited:
        message = f"`${variable.name}` is bound in an `optional` and may be null"
        hint = "move this clause into that `optional`, or into another one"
        scope.report.error(variable.span, message, hint=hint)
    else:
        return True
    return False


def take_type(scope: Scope, name: str, type_name: str) -> list[Clause]:
    """Give a variable a compatible type; narrowing an outer variable adds a type test."""
    bound = scope.variables.get(name)
    if not isinstance(bound, NodeVariable):
        scope.variables[name] = NodeVariable(scope.plan_name(name), type_name)
        return []
    narrowed = narrower(scope.catalog, bound.type_name, type_name)
    if narrowed is None or narrowed == bound.type_name:
        return []
    scope.variables[name] = NodeVariable(bound.name, narrowed, bound.optional)
    return [Keep(plan.OfType(bound.name, narrowed))] if name in scope.inherited else []


def _known_type(scope: Scope, name: m.Name) -> str | None:
    if entity_type(scope.catalog, name.text) is not None:
        return name.text
    known = [node.name for node in scope.catalog.nodes]
    known += [interface.name for interface in scope.catalog.interfaces]
    hint = did_you_mean(name.text, known)
    if scope.catalog.edge(name.text) is not None:
        hint = f"{name.text} is an edge: traverse it, as in `$a {_word(name.text)} $b`"
    scope.report.error(name.span, f"unknown node type `{name.text}`", "T1", hint=hint)
    return None


def _word(edge: str) -> str:
    return edge[:1].lower() + edge[1:]


def _bind(scope: Scope, variable: m.Variable, type_name: str | None) -> list[Clause]:
    if variable.name == ANONYMOUS:
        message = "`$_` is anonymous and cannot be bound to a type"
        scope.report.error(variable.span, message, hint="give the variable a name")
        return []
    bound = scope.variables.get(variable.name)
    if type_name is None:
        if bound is None:
            scope.variables[variable.name] = Broken(scope.plan_name(variable.name))
        return []
    old = bound.type_name if isinstance(bound, NodeVariable) else type_name
    if narrower(scope.catalog, old, type_name) is None:
        message = f"`${variable.name}` is a {old} and cannot be a {type_name}"
        scope.report.error(variable.span, message)
        return []
    return take_type(scope, variable.name, type_name)


def _predicates(scope: Scope, node: m.Binding, type_name: str) -> list[plan.Predicate]:
    bound = scope.variables.get(node.variable.name)
    name = bound.name if bound is not None else node.variable.name
    found = (_predicate(scope, name, type_name, one) for one in node.predicates)
    return [one for one in found if one is not None]


def _predicate(
    scope: Scope, name: str, type_name: str, node: m.InlinePredicate
) -> plan.Predicate | None:
    value = _inline_value(scope, node.value)
    owner = entity_type(scope.catalog, type_name)
    declared = owner.property(node.name.text) if owner is not None else None
    if node.name.text == "id":
        declared = _ID
    if owner is not None and declared is None:
        hint = did_you_mean(node.name.text, [p.name for p in owner.properties])
        message = f"{type_name} has no property `{node.name.text}`"
        scope.report.error(node.name.span, message, "T2", hint=hint)
    if declared is None or value is None:
        return None
    problem = _problem(value, declared.type)
    if problem is not None:
        code = "T3" if value.is_literal or declared.type.scalar is ScalarType.BLOB else "T7"
        scope.report.error(value.span, f"`{declared.name}`: {problem}", code)
        return None
    return _test(name, declared, value)


_ID = Property("id", PropertyType(ScalarType.STRING))


def _inline_value(scope: Scope, node: m.Expression) -> Typed | None:
    if not isinstance(node, m.Variable):
        return expressions.resolve(scope, node)
    found = expressions.parameter(scope, node)
    if found is None:
        message = f"`${node.name}` is not a parameter"
        hint = "use a literal or a parameter in braces; compare variables in a separate clause"
        scope.report.error(node.span, message, "T14", hint=hint)
    return found


def _problem(value: Typed, wanted: PropertyType) -> str | None:
    """Return why a value can never equal that of the property, or None."""
    if wanted.scalar is ScalarType.BLOB:
        return "a Blob cannot be matched"
    if value.is_null:
        return None if wanted.nullable else "required, so it is never null"
    if wanted.is_vector:
        return "a Vector cannot be matched; rank with `nearest`"
    if value.type is None or value.type.is_list or not same_kind(value.type, wanted):
        note = ", which the list must contain" if wanted.is_list else ""
        return f"expected one {wanted.element().display()}{note}, found {value.shown()}"
    if isinstance(value.value, plan.Constant) and wanted.enum_values is not None:
        stored = literals.fit(value.value, wanted)
        return stored if isinstance(stored, str) else None
    return None


def _test(name: str, declared: Property, value: Typed) -> plan.Predicate:
    held: plan.Value = plan.PropertyValue(name, declared.name, declared.type)
    if declared is _ID:
        held = plan.SystemValue(name, "id", declared.type)
    if value.is_null:
        return plan.IsNull(held)
    if declared.type.is_list:
        return plan.TextTest(held, "list_contains", value.value)
    return plan.Compare(held, "=", value.value)
