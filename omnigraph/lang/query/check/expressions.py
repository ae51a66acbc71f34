"""Resolve expressions to plan values with their types.

Owns what a variable, a property access, a literal and `now()` mean. Aggregates, rankings and column
names are meaningful only in some places and are resolved there.
"""

from typing import cast

from omnigraph.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Property
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import PropertyType

from . import literals
from .scope import ANONYMOUS, Broken, EdgeVariable, NodeVariable, Scope, edge_types, entity_type
from .typed import DATETIME, STRING, Typed

_MOST_NAMES = 100  # with more names than this, guessing a similar one is slow and mostly wrong
_EDGE_FIELDS = ("id", "from", "to")


def resolve(scope: Scope, expression: m.Expression) -> Typed | None:
    """Return the value of an expression, or None after reporting why it has none."""
    match expression:
        case m.Literal() | m.ListLiteral():
            return literals.constant(scope.report, expression)
        case m.Variable():
            return variable(scope, expression)
        case m.Field():
            return field(scope, expression)
        case m.Now():
            return now(expression.span)
        case m.Aggregate():
            message = f"`{expression.function}` can only be used in `return` and `order`"
            scope.report.error(expression.span, message, "T7")
        case m.Call():
            message = f"`{expression.function}` cannot be used as a value here"
            scope.report.error(expression.span, message, "T7")
        case m.Alias():
            message = f"`{expression.name}` is neither a variable nor a literal"
            scope.report.error(expression.span, message, hint=_dollar(scope, expression.name))
    return None


def now(span: Span) -> Typed:
    """Return the time of the request, which is the same in the whole request."""
    return Typed(plan.Parameter(plan.NOW, DATETIME), DATETIME, span)


def variable(scope: Scope, node: m.Variable) -> Typed | None:
    """Return a parameter, or a node."""
    known = parameter(scope, node)
    if known is not None:
        return known
    bound = scope.variables.get(node.name)
    if isinstance(bound, NodeVariable):
        return Typed(plan.Entity(bound.name, bound.type_name), None, node.span)
    if isinstance(bound, EdgeVariable):
        message = f"edge variable `${node.name}` cannot be used as a value"
        hint = f"use a property or `${node.name}.id`"
        scope.report.error(node.span, message, "T23", hint=hint)
    elif bound is None:
        scope.report.error(node.span, _unbound(node.name), hint=_known(scope, node.name))
        _silence(scope, node.name)
    return None


def parameter(scope: Scope, node: m.Variable) -> Typed | None:
    """Return the parameter of that name, or None without a report."""
    kind = scope.parameters.get(node.name)
    if kind is None:
        return None
    scope.used.add(node.name)
    return Typed(plan.Parameter(node.name, kind), kind, node.span)


def field(scope: Scope, node: m.Field) -> Typed | None:
    """Return a property, `id`, or an endpoint of an edge."""
    bound = scope.variables.get(node.variable)
    if isinstance(bound, NodeVariable):
        return _node_field(scope, node, bound)
    if isinstance(bound, EdgeVariable):
        return _edge_field(scope, node, bound)
    if bound is None:
        _report_unbound(scope, node)
    return None


def declared(scope: Scope, node: m.Field) -> Property | None:
    """Return the declaration of a property of a bound node, or None without a report."""
    bound = scope.variables.get(node.variable)
    if not isinstance(bound, NodeVariable):
        return None
    owner = entity_type(scope.catalog, bound.type_name)
    return owner.property(node.name) if owner is not None else None


def _node_field(scope: Scope, node: m.Field, bound: NodeVariable) -> Typed | None:
    if node.name == "id":
        return _system(bound.name, "id", bound.optional, node.span)
    found = declared(scope, node)
    if found is not None:
        kind = _seen(found.type, bound.optional)
        return Typed(plan.PropertyValue(bound.name, node.name, kind), kind, node.span)
    owner = entity_type(scope.catalog, bound.type_name)
    names = ["id", *(p.name for p in owner.properties)] if owner is not None else []
    message = f"{bound.type_name} has no property `{node.name}`"
    scope.report.error(node.span, message, "T6", hint=did_you_mean(node.name, names))
    return None


def _edge_field(scope: Scope, node: m.Field, bound: EdgeVariable) -> Typed | None:
    if node.name in _EDGE_FIELDS:
        return _system(bound.name, cast("plan.SystemField", node.name), bound.optional, node.span)
    edges = edge_types(scope.catalog, bound)
    found = [p for p in (edge.property(node.name) for edge in edges) if p is not None]
    kinds = {p.type.as_nullable(True) for p in found}
    if len(found) == len(edges) and len(kinds) == 1:
        nullable = bound.optional or any(p.type.nullable for p in found)
        kind = kinds.pop().as_nullable(nullable)
        return Typed(plan.PropertyValue(bound.name, node.name, kind), kind, node.span)
    names = [*_EDGE_FIELDS, *(p.name for edge in edges for p in edge.properties)]
    message = f"{' and '.join(bound.types)} {_have(edges, 'no property')} `{node.name}`"
    hint = did_you_mean(node.name, names)
    if found:
        message = f"{' and '.join(bound.types)} do not share the property `{node.name}`"
        hint = "it must have the same type in all of them" if len(kinds) > 1 else None
    scope.report.error(node.span, message, "T6", hint=hint)
    return None


def _have(edges: tuple[object, ...], what: str) -> str:
    return f"has {what}" if len(edges) == 1 else f"have {what}"


def _system(name: str, which: plan.SystemField, optional: bool, span: Span) -> Typed:
    kind = STRING.as_nullable(optional)
    return Typed(plan.SystemValue(name, which, kind), kind, span)


def _seen(kind: PropertyType, optional: bool) -> PropertyType:
    return kind.as_nullable(True) if optional else kind


def _report_unbound(scope: Scope, node: m.Field) -> None:
    if node.variable in scope.parameters:
        scope.used.add(node.variable)
        message = f"parameter `${node.variable}` has no properties"
        scope.report.error(node.span, message, "T6")
        return
    scope.report.error(node.span, _unbound(node.variable), "T6", hint=_known(scope, node.variable))
    _silence(scope, node.variable)


def _silence(scope: Scope, name: str) -> None:
    if name != ANONYMOUS:
        scope.variables[name] = Broken(name)


def _unbound(name: str) -> str:
    if name == ANONYMOUS:
        return "`$_` is anonymous and cannot be referenced"
    return f"variable `${name}` is not bound"


def _known(scope: Scope, name: str) -> str | None:
    many = len(scope.variables) + len(scope.parameters) > _MOST_NAMES
    if many or name == ANONYMOUS:
        return None
    return did_you_mean(name, [*scope.variables, *scope.parameters])


def _dollar(scope: Scope, name: str) -> str | None:
    known = name in scope.variables or name in scope.parameters
    return f"write `${name}`" if known else None
