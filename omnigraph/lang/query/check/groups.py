"""Check grouping: whether a read groups its rows, and the `having` condition that filters the groups.

A `having` condition may refer to columns by name, and may use expressions made of group keys, aggregates and constants.
"""

from collections.abc import Iterator

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.query.column_names import column_name
from omnigraph.lang.query.plan_variables import contains_aggregate
from omnigraph.lang.schema.names import did_you_mean

from . import conditions, expressions
from .columns import has_group_value, is_aggregated, resolve_column_value
from .mentions import mentions_aggregate
from .scope import Scope
from .search import misuse_code
from .typed_values import TypedValue


def is_grouped(read_body: m.ReadBody) -> bool:
    """Return whether rows are grouped, that is, whether a column or an operand of `having` uses an aggregate."""
    having_operands = () if read_body.having is None else _operands_of(read_body.having)
    return is_aggregated(read_body.projections) or any(map(mentions_aggregate, having_operands))


def check_having(scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...]) -> plan.Predicate | None:
    """Return the predicate that groups must satisfy, or None if there is no `having` or it is invalid."""
    if read_body.having is None:
        return None
    if not is_grouped(read_body):
        hint = "write the condition inside `match { .. }`, or use an aggregate such as `count(*)`"
        scope.report.error(
            read_body.having.span, "`having` filters groups, but this query has no groups", "T9", hint=hint
        )
        return None

    def resolve_operand(expression: m.Expression) -> TypedValue | None:
        return _resolve_operand(scope, read_body, columns, expression)

    def reject_text_search(call: m.Call) -> plan.TextSearch | None:
        scope.report.error(call.span, f"`{call.function}` can only be used in `match`", misuse_code(call))
        return None

    rules = conditions.ConditionRules(scope.report, resolve_operand, reject_text_search)
    predicate = conditions.check_condition(rules, read_body.having)
    if predicate is not None and not contains_aggregate(predicate):
        hint = "write the condition inside `match { .. }`, so that it applies before rows are grouped"
        message = "this `having` condition does not test an aggregate"
        scope.report.warn(read_body.having.span, message, "L210", hint=hint)
    return predicate


def _resolve_operand(
    scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...], expression: m.Expression
) -> TypedValue | None:
    if isinstance(expression, m.Alias):
        return _resolve_column_name(scope, read_body, columns, expression)
    if isinstance(expression, m.Aggregate | m.Arithmetic | m.Negative | m.ScalarCall | m.Case):
        typed_value = resolve_column_value(scope, expression)
    else:
        typed_value = expressions.resolve_expression(scope, expression)
    if typed_value is None or _is_returned(columns, typed_value) or has_group_value(typed_value.value, columns):
        return typed_value
    message = "`having` can only use aggregates and columns from `return`"
    hint = "write a condition on individual rows inside `match { .. }`"
    scope.report.error(expression.span, message, "T9", hint=hint)
    return None


def _is_returned(columns: tuple[plan.PlanColumn, ...], typed_value: TypedValue) -> bool:
    return any(column.value == typed_value.value for column in columns)


def _resolve_column_name(
    scope: Scope, read_body: m.ReadBody, columns: tuple[plan.PlanColumn, ...], bare_word: m.Alias
) -> TypedValue | None:
    column = next((candidate for candidate in columns if candidate.name == bare_word.name), None)
    if column is not None:
        return TypedValue(column.value, column.type, bare_word.span)
    column_names = [column_name(projection) for projection in read_body.projections]
    if bare_word.name not in column_names:  # if the column exists, its error has already been reported
        hint = did_you_mean(bare_word.name, column_names)
        scope.report.error(bare_word.span, f"no column is named `{bare_word.name}`", hint=hint)
    return None


def _operands_of(condition: m.Condition) -> Iterator[m.Expression]:
    match condition:
        case m.And() | m.Or():
            for item in condition.items:
                yield from _operands_of(item)
        case m.Not():
            yield from _operands_of(condition.item)
        case m.Comparison():
            yield from (condition.left, condition.right)
        case m.Membership() | m.IsNull():
            yield condition.operand
        case m.Truth():
            yield condition.value
