"""Check conditions: comparisons, membership tests, `is null`, and combinations of these.

This module decides which operands are compatible. Operands are written differently in `match` and in a mutation's
`where`, so the caller passes in a `ConditionRules` with the functions that resolve them.
"""

from collections.abc import Callable

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record

from . import search
from .report import CheckReport
from .typed_values import BOOL, STRING, TypedValue, is_comparable, is_scalar, is_text, typed_null


@record
class ConditionRules:
    """The functions that resolve operands and text searches, and the diagnostic code for a type mismatch."""

    report: CheckReport
    resolve_operand: Callable[[m.Expression], TypedValue | None]
    check_text_search: Callable[[m.Call], plan.TextSearch | None]
    mismatch_code: Callable[[TypedValue], str] = lambda _: "T7"
    strict_enums: bool = False


def check_condition(  # noqa: PLR0911 - one return per kind
    rules: ConditionRules, condition: m.Condition
) -> plan.Predicate | None:
    """Return the predicate for a condition, or None after reporting an error."""
    match condition:
        case m.Comparison():
            return _check_comparison(rules, condition)
        case m.Membership():
            return _check_membership(rules, condition)
        case m.IsNull():
            return _check_null_test(rules, condition)
        case m.TextMatch():
            return rules.check_text_search(condition.call)
        case m.Truth():
            return _check_truth(rules, condition)
        case m.Not():
            inner_predicate = check_condition(rules, condition.item)
            return plan.Not(inner_predicate) if inner_predicate is not None else None
        case m.And():
            predicates = _check_all(rules, condition.items)
            return plan.And(predicates) if predicates is not None else None
        case m.Or():
            predicates = _check_all(rules, condition.items)
            return plan.Or(predicates) if predicates is not None else None


def _check_truth(rules: ConditionRules, truth: m.Truth) -> plan.Truth | None:
    """Check a value that is used as a condition on its own."""
    operand = rules.resolve_operand(truth.value)
    if operand is None:
        return None
    if operand.type is not None and operand.type.as_nullable(False) == BOOL:
        return plan.Truth(operand.value)
    message = f"a condition must be a Bool or a comparison, not {operand.describe_type()}"
    rules.report.error(truth.span, message, "T7")
    return None


def _check_all(rules: ConditionRules, conditions: tuple[m.Condition, ...]) -> tuple[plan.Predicate, ...] | None:
    checked_predicates = [check_condition(rules, condition) for condition in conditions]
    valid_predicates = tuple(predicate for predicate in checked_predicates if predicate is not None)
    return valid_predicates if len(valid_predicates) == len(checked_predicates) else None


def _check_comparison(rules: ConditionRules, comparison: m.Comparison) -> plan.Predicate | None:
    for call, opposite in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if isinstance(call, m.Call) and call.function in search.TEXT_CONDITIONS:
            return _check_search_comparison(rules, comparison, call, opposite)
    left_operand = rules.resolve_operand(comparison.left)
    right_operand = rules.resolve_operand(comparison.right)
    if left_operand is None or right_operand is None:
        return None
    left_operand, right_operand = (
        _give_null_type(rules, left_operand, right_operand),
        _give_null_type(rules, right_operand, left_operand),
    )
    if comparison.operator in ("contains", "starts_with"):
        return _check_text_test(rules, left_operand, comparison.operator, right_operand)
    return check_scalar_comparison(rules, left_operand, comparison.operator, right_operand)


def _check_search_comparison(
    rules: ConditionRules, comparison: m.Comparison, call: m.Call, opposite: m.Expression
) -> plan.Predicate | None:
    """Check `search(..) = true`, which means the same as `search(..)`. Reject any other comparison with a search."""
    text_search = rules.check_text_search(call)
    if comparison.operator == "=" and opposite == m.Literal("bool", "true"):
        return text_search
    message = f"`{call.function}` is a condition and cannot be compared"
    hint = f"write `{call.function}(…)`, or `not {call.function}(…)`"
    rules.report.error(comparison.span, message, search.misuse_code(call), hint=hint)
    return None


def check_scalar_comparison(
    rules: ConditionRules, left_operand: TypedValue, operator: str, right_operand: TypedValue
) -> plan.Compare | None:
    """Return a comparison of two scalars, or None after reporting that they cannot be compared."""
    if not _check_testable(rules, left_operand) or not _check_testable(rules, right_operand):
        return None
    if not _check_not_list(rules, left_operand, right_operand) or not _check_not_list(
        rules, right_operand, left_operand
    ):
        return None
    match operator:
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            if _check_comparable(rules, left_operand, right_operand):
                return plan.Compare(left_operand.value, operator, right_operand.value)
    return None


def _check_text_test(
    rules: ConditionRules, left_operand: TypedValue, operator: str, right_operand: TypedValue
) -> plan.TextTest | None:
    if not _check_testable(rules, left_operand) or not _check_testable(rules, right_operand):
        return None
    if operator == "contains" and left_operand.type is not None and left_operand.type.is_list:
        if not _check_not_list(rules, right_operand, left_operand) or not _check_comparable(
            rules, left_operand, right_operand
        ):
            return None
        return plan.TextTest(left_operand.value, "list_contains", right_operand.value)
    for operand in (left_operand, right_operand):
        if not is_text(operand.type):
            expected_text = "a String or a list" if operand is left_operand and operator == "contains" else "a String"
            message = f"`{operator}` requires {expected_text} here, not {operand.describe_type()}"
            rules.report.error(operand.span, message, rules.mismatch_code(operand))
            return None
    text_operator: plan.TextOperator = "string_contains" if operator == "contains" else "starts_with"
    return plan.TextTest(left_operand.value, text_operator, right_operand.value)


def _check_membership(rules: ConditionRules, membership: m.Membership) -> plan.Predicate | None:
    operand = rules.resolve_operand(membership.operand)
    list_operand = rules.resolve_operand(membership.items)
    if operand is None or list_operand is None:
        return None
    operand = _give_null_type(rules, operand, list_operand)
    if not _check_testable(rules, operand) or not _check_not_list(rules, operand, list_operand):
        return None
    if list_operand.type is None or not list_operand.type.is_list or not list_operand.is_constant:
        hint = None if list_operand.is_constant else "for a list property, write `list contains value`"
        message = f"`in` requires a list literal or a list parameter, not {list_operand.describe_type()}"
        rules.report.error(list_operand.span, message, rules.mismatch_code(list_operand), hint=hint)
        return None
    if not _check_comparable(rules, operand, list_operand):
        return None
    return plan.InList(operand.value, list_operand.value)


def _check_null_test(rules: ConditionRules, null_test: m.IsNull) -> plan.Predicate | None:
    operand = rules.resolve_operand(null_test.operand)
    if operand is None:
        return None
    if isinstance(operand.value, plan.Entity):
        # A node or edge variable is null if it comes from an `optional` that matched nothing.
        id_value = plan.SystemValue(operand.value.variable, "id", STRING.as_nullable(True))
        return plan.IsNull(id_value, null_test.negated)
    if isinstance(operand.value, plan_paths.PathEntity):
        return plan.IsNull(operand.value, null_test.negated)
    is_vector = operand.type is not None and operand.type.is_vector
    if not is_vector and not _check_testable(rules, operand):
        return None
    return plan.IsNull(operand.value, null_test.negated)


def _check_testable(rules: ConditionRules, operand: TypedValue) -> bool:
    """Return whether a condition may test an operand's value. Report an error if it may not."""
    if isinstance(operand.value, plan_paths.PathEntity):
        rules.report.error(
            operand.span, "paths cannot be compared", "T7", hint="compare the path's length or its nodes"
        )
        return False
    if operand.type is None:
        hint = "compare ids, as in `$a.id = $b.id`"
        rules.report.error(operand.span, f"{operand.describe_type()} cannot be compared", "T7", hint=hint)
        return False
    if is_scalar(operand.type) or operand.type.is_list:
        return True
    message = f"{operand.describe_type()} cannot be used in a condition"
    rules.report.error(operand.span, message, rules.mismatch_code(operand))
    return False


def _check_not_list(rules: ConditionRules, operand: TypedValue, opposite: TypedValue) -> bool:
    if operand.type is not None and not operand.type.is_list:
        return True
    hint = "write `list contains value`" if opposite.type and not opposite.type.is_list else None
    rules.report.error(operand.span, "lists cannot be compared", rules.mismatch_code(operand), hint=hint)
    return False


def _check_comparable(rules: ConditionRules, left_operand: TypedValue, right_operand: TypedValue) -> bool:
    if left_operand.type is None or right_operand.type is None:
        return False
    is_empty_list = isinstance(right_operand.value, plan.Constant) and right_operand.value.value == ()
    if is_empty_list or is_comparable(left_operand.type, right_operand.type):
        _check_enum_values(rules, left_operand, right_operand)
        _check_enum_values(rules, right_operand, left_operand)
        return True
    odd_operand = left_operand if left_operand.is_constant and not right_operand.is_constant else right_operand
    message = f"{left_operand.describe_type()} and {right_operand.describe_type()} cannot be compared"
    rules.report.error(
        odd_operand.span,
        message,
        rules.mismatch_code(odd_operand),
        hint=_date_literal_hint(left_operand, right_operand),
    )
    return False


def _give_null_type(rules: ConditionRules, operand: TypedValue, opposite: TypedValue) -> TypedValue:
    if not operand.is_null:
        return operand
    message = "a comparison with null is never true"
    hint = "write `is null` or `is not null`"
    rules.report.warn(operand.span, message, "L205", hint=hint)
    return typed_null(opposite, operand)


def _check_enum_values(rules: ConditionRules, enum_operand: TypedValue, opposite: TypedValue) -> None:
    allowed_values = enum_operand.type.enum_values if enum_operand.type is not None else None
    if allowed_values is None or not isinstance(opposite.value, plan.Constant):
        return
    compared_values = opposite.value.value if isinstance(opposite.value.value, tuple) else (opposite.value.value,)
    for value in compared_values:
        if isinstance(value, str) and value not in allowed_values:
            message = f'"{value}" is not one of {", ".join(allowed_values)}'
            hint = did_you_mean(value, allowed_values)
            if rules.strict_enums:
                rules.report.error(opposite.span, message, "T3", hint=hint)
            else:
                rules.report.warn(opposite.span, message, "L206", hint=hint)


def _date_literal_hint(left_operand: TypedValue, right_operand: TypedValue) -> str | None:
    for operand, opposite in ((left_operand, right_operand), (right_operand, left_operand)):
        if operand.type is None or not is_text(opposite.type) or not opposite.is_literal:
            continue
        if operand.type.scalar.value in ("Date", "DateTime"):
            return f'write `{operand.type.scalar.value.lower()}("…")`'
    return None
