"""Conditions: comparisons, membership, `is null`, and their combination.

Owns which operands are compatible. Operands are named differently in `match` and in the `where` of
a mutation, so the caller passes in `ConditionRules`.
"""

from collections.abc import Callable

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.record import record

from . import search
from .report import Report
from .typed import STRING, Typed, is_scalar, is_text, null_of, same_kind


@record
class Rules:
    """How operands and text searches are resolved, and which code a type mismatch gets."""

    report: Report
    resolve: Callable[[m.Expression], Typed | None]
    text_search: Callable[[m.Call], plan.TextSearch | None]
    misfit: Callable[[Typed], str] = lambda _: "T7"
    strict_enums: bool = False


def condition(  # noqa: PLR0911 - one return per kind
    rules: Rules, node: m.Condition
) -> plan.Predicate | None:
    """Return the predicate of a condition, or None after reporting why it has none."""
    match node:
        case m.Comparison():
            return _comparison(rules, node)
        case m.Membership():
            return _membership(rules, node)
        case m.IsNull():
            return _is_null(rules, node)
        case m.TextMatch():
            return rules.text_search(node.call)
        case m.Not():
            inner = condition(rules, node.item)
            return plan.Not(inner) if inner is not None else None
        case m.And():
            items = _all(rules, node.items)
            return plan.And(items) if items is not None else None
        case m.Or():
            items = _all(rules, node.items)
            return plan.Or(items) if items is not None else None


def _all(rules: Rules, nodes: tuple[m.Condition, ...]) -> tuple[plan.Predicate, ...] | None:
    found = [condition(rules, node) for node in nodes]
    items = tuple(one for one in found if one is not None)
    return items if len(items) == len(found) else None


def _comparison(rules: Rules, node: m.Comparison) -> plan.Predicate | None:
    for call, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(call, m.Call) and call.function in search.CONDITIONS:
            return _search_is(rules, node, call, other)
    left, right = rules.resolve(node.left), rules.resolve(node.right)
    if left is None or right is None:
        return None
    left, right = _typed_null(rules, left, right), _typed_null(rules, right, left)
    if node.operator in ("contains", "starts_with"):
        return _text_test(rules, left, node.operator, right)
    return compare(rules, left, node.operator, right)


def _search_is(
    rules: Rules, node: m.Comparison, call: m.Call, other: m.Expression
) -> plan.Predicate | None:
    """`search(..) = true` is the condition itself; any other comparison is rejected as unclear."""
    found = rules.text_search(call)
    if node.operator == "=" and other == m.Literal("bool", "true"):
        return found
    message = f"`{call.function}` is a condition and cannot be compared"
    hint = f"write `{call.function}(…)`, or `not {call.function}(…)`"
    rules.report.error(node.span, message, search.code_of(call), hint=hint)
    return None


def compare(rules: Rules, left: Typed, operator: str, right: Typed) -> plan.Compare | None:
    """Return the comparison of two scalars of comparable types."""
    if not _is_value(rules, left) or not _is_value(rules, right):
        return None
    if not _one_value(rules, left, right) or not _one_value(rules, right, left):
        return None
    match operator:
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            if _kinds_meet(rules, left, right):
                return plan.Compare(left.value, operator, right.value)
    return None


def _text_test(rules: Rules, left: Typed, operator: str, right: Typed) -> plan.TextTest | None:
    if not _is_value(rules, left) or not _is_value(rules, right):
        return None
    if operator == "contains" and left.type is not None and left.type.is_list:
        if not _one_value(rules, right, left) or not _kinds_meet(rules, left, right):
            return None
        return plan.TextTest(left.value, "list_contains", right.value)
    for side in (left, right):
        if not is_text(side.type):
            wanted = "a String or a list" if side is left and operator == "contains" else "String"
            message = f"`{operator}` needs {wanted} here, not {side.shown()}"
            rules.report.error(side.span, message, rules.misfit(side))
            return None
    kind: plan.TextOperator = "string_contains" if operator == "contains" else "starts_with"
    return plan.TextTest(left.value, kind, right.value)


def _membership(rules: Rules, node: m.Membership) -> plan.Predicate | None:
    operand, items = rules.resolve(node.operand), rules.resolve(node.items)
    if operand is None or items is None:
        return None
    operand = _typed_null(rules, operand, items)
    if not _is_value(rules, operand) or not _one_value(rules, operand, items):
        return None
    if items.type is None or not items.type.is_list or not items.is_constant:
        hint = None if items.is_constant else "for a list property write `list contains value`"
        message = f"`in` needs a list literal or a list parameter, not {items.shown()}"
        rules.report.error(items.span, message, rules.misfit(items), hint=hint)
        return None
    if not _kinds_meet(rules, operand, items):
        return None
    return plan.InList(operand.value, items.value)


def _is_null(rules: Rules, node: m.IsNull) -> plan.Predicate | None:
    operand = rules.resolve(node.operand)
    if operand is None:
        return None
    if isinstance(operand.value, plan.Entity):
        # A node is null if it comes from an `optional` that matched nothing.
        own_id = plan.SystemValue(operand.value.variable, "id", STRING.as_nullable(True))
        return plan.IsNull(own_id, node.negated)
    vector = operand.type is not None and operand.type.is_vector
    if not vector and not _is_value(rules, operand):
        return None
    return plan.IsNull(operand.value, node.negated)


def _is_value(rules: Rules, side: Typed) -> bool:
    """Whether an operand has a value that a condition may test; report it if not."""
    if side.type is None:
        hint = "compare ids, as in `$a.id = $b.id`"
        rules.report.error(side.span, "a node cannot be compared", "T7", hint=hint)
        return False
    if is_scalar(side.type) or side.type.is_list:
        return True
    message = f"{side.shown()} cannot be used in a condition"
    rules.report.error(side.span, message, rules.misfit(side))
    return False


def _one_value(rules: Rules, side: Typed, other: Typed) -> bool:
    if side.type is not None and not side.type.is_list:
        return True
    hint = "write `list contains value`" if other.type and not other.type.is_list else None
    rules.report.error(side.span, "a list cannot be compared", rules.misfit(side), hint=hint)
    return False


def _kinds_meet(rules: Rules, left: Typed, right: Typed) -> bool:
    if left.type is None or right.type is None:
        return False
    empty = isinstance(right.value, plan.Constant) and right.value.value == ()
    if empty or same_kind(left.type, right.type):
        _warn_enum(rules, left, right)
        _warn_enum(rules, right, left)
        return True
    odd = left if left.is_constant and not right.is_constant else right
    message = f"{left.shown()} and {right.shown()} cannot be compared"
    rules.report.error(odd.span, message, rules.misfit(odd), hint=_date_hint(left, right))
    return False


def _typed_null(rules: Rules, side: Typed, other: Typed) -> Typed:
    if not side.is_null:
        return side
    message = "a comparison with null is never true"
    hint = "write `is null` or `is not null`"
    rules.report.warn(side.span, message, "L205", hint=hint)
    return null_of(other, side)


def _warn_enum(rules: Rules, side: Typed, other: Typed) -> None:
    allowed = side.type.enum_values if side.type is not None else None
    if allowed is None or not isinstance(other.value, plan.Constant):
        return
    given = other.value.value if isinstance(other.value.value, tuple) else (other.value.value,)
    for value in given:
        if isinstance(value, str) and value not in allowed:
            message = f'"{value}" is not one of {", ".join(allowed)}'
            if rules.strict_enums:
                rules.report.error(other.span, message, "T3")
            else:
                rules.report.warn(other.span, message, "L206")


def _date_hint(left: Typed, right: Typed) -> str | None:
    for side, other in ((left, right), (right, left)):
        if side.type is None or not is_text(other.type) or not other.is_literal:
            continue
        if side.type.scalar.value in ("Date", "DateTime"):
            return f'write `{side.type.scalar.value.lower()}("…")`'
    return None
