"""Check the `where` clauses and `set` values in updates and deletes.

These expressions refer to a single row. A bare word in such an expression is a property, `id` or an edge endpoint.
"""

from typing import cast

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import ScalarType

from . import conditions
from .assignments import resolve_constant
from .scalars import ScalarRules, resolve_scalar
from .scope import Scope
from .search import misuse_code
from .typed_values import STRING, TypedValue


def check_row_condition(
    scope: Scope, target_type: NodeType | EdgeType | None, condition: m.Condition
) -> plan.Predicate | None:
    """Return the predicate for a `where` clause. If the type is unknown (None), check only the clause's values."""

    def resolve_operand(expression: m.Expression) -> TypedValue | None:
        return resolve_row_value(scope, target_type, expression)

    def reject_text_search(call: m.Call) -> plan.TextSearch | None:
        message = f"`{call.function}` can only be used in `match`"
        scope.report.error(call.span, message, misuse_code(call))
        return None

    rules = conditions.ConditionRules(
        scope.report, resolve_operand, reject_text_search, _mismatch_code, strict_enums=True
    )
    return conditions.check_condition(rules, condition)


def resolve_row_value(
    scope: Scope, target_type: NodeType | EdgeType | None, expression: m.Expression
) -> TypedValue | None:
    """Resolve a property of the row, a constant, or an expression over properties and constants."""
    if isinstance(expression, m.Alias):
        return _resolve_property(scope, target_type, expression) if target_type is not None else None
    if isinstance(expression, m.Arithmetic | m.Negative | m.ScalarCall | m.Case):
        rules = ScalarRules(
            scope.report,
            lambda operand: resolve_row_value(scope, target_type, operand),
            lambda condition: check_row_condition(scope, target_type, condition),
        )
        return resolve_scalar(rules, expression)
    return resolve_constant(scope, expression)


def _mismatch_code(operand: TypedValue) -> str:
    return "T3" if operand.is_literal else "T7"


def _resolve_property(scope: Scope, target_type: NodeType | EdgeType, bare_word: m.Alias) -> TypedValue | None:
    if bare_word.name == "id" or (isinstance(target_type, EdgeType) and bare_word.name in ("from", "to")):
        system_field = cast("plan.SystemField", bare_word.name)
        return TypedValue(plan.SystemValue(plan.ROW_VARIABLE, system_field, STRING), STRING, bare_word.span)
    declaration = target_type.property(bare_word.name)
    if declaration is None:
        hint = did_you_mean(bare_word.name, [declared_property.name for declared_property in target_type.properties])
        message = f"{target_type.name} has no property `{bare_word.name}`"
        scope.report.error(bare_word.span, message, "T11", hint=hint)
        return None
    if declaration.type.scalar is ScalarType.BLOB:
        message = f"`{bare_word.name}` is a Blob and cannot be used in a condition or an expression"
        scope.report.error(bare_word.span, message, "T11")
        return None
    property_type = declaration.type
    return TypedValue(
        plan.PropertyValue(plan.ROW_VARIABLE, bare_word.name, property_type), property_type, bare_word.span
    )
