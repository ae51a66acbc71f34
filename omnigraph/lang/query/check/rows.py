"""The `where` of update and delete: conditions on the properties of one row.

Owns what a bare word means there: a property, `id`, or an endpoint of an edge.
"""

from typing import cast

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import ScalarType

from . import conditions
from .assignments import given_value
from .scope import Scope
from .search import code_of
from .typed import STRING, Typed


def row_condition(
    scope: Scope, target: Node | Edge | None, node: m.Condition
) -> plan.Predicate | None:
    """Return the predicate of a `where`; without a target only its values are checked."""

    def resolve(expression: m.Expression) -> Typed | None:
        if isinstance(expression, m.Alias):
            return _property(scope, target, expression) if target is not None else None
        return given_value(scope, expression)

    def text_search(call: m.Call) -> plan.TextSearch | None:
        message = f"`{call.function}` can only be used in `match`"
        scope.report.error(call.span, message, code_of(call))
        return None

    rules = conditions.Rules(scope.report, resolve, text_search, _misfit, strict_enums=True)
    return conditions.condition(rules, node)


def _misfit(side: Typed) -> str:
    return "T3" if side.is_literal else "T7"


def _property(scope: Scope, target: Node | Edge, node: m.Alias) -> Typed | None:
    if node.name == "id" or (isinstance(target, Edge) and node.name in ("from", "to")):
        field = cast("plan.SystemField", node.name)
        return Typed(plan.SystemValue(plan.ROW, field, STRING), STRING, node.span)
    declared = target.property(node.name)
    if declared is None:
        hint = did_you_mean(node.name, [p.name for p in target.properties])
        message = f"{target.name} has no property `{node.name}`"
        scope.report.error(node.span, message, "T11", hint=hint)
        return None
    if declared.type.scalar is ScalarType.BLOB:
        message = f"`{node.name}` is a Blob and cannot be used in a condition"
        scope.report.error(node.span, message, "T11")
        return None
    kind = declared.type
    return Typed(plan.PropertyValue(plan.ROW, node.name, kind), kind, node.span)
