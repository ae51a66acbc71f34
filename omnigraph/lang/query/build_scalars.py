"""Rule actions for scalar expressions: arithmetic, signs, parentheses, function calls and `case`.

This module produces the canonical form: a chain's first operand is never a chain with the same precedence, negative
numbers are literals, and parentheses are dropped. `case` nests without brackets, so its depth is limited here.
"""

from dataclasses import replace
from typing import Any

from omnigraph.errors.diagnostics import Span

from .build import Builder, RuleAction, is_token
from .build_conditions import as_condition
from .build_expressions import as_expression
from .model import Arithmetic, Case, CaseBranch, Expression, Literal, Negative, ScalarCall, Truth

MAX_CASE_DEPTH = 50


def chain(builder: Builder, rule_span: Span, children: list[Any]) -> Arithmetic:
    """Build a chain of operators, such as `a + b - c` or `a * b / c`."""
    operands = tuple(as_expression(builder, operand) for operand in children[::2])
    operators = tuple(str(operator) for operator in children[1::2])
    arithmetic = Arithmetic(operands, operators, rule_span)  # type: ignore[arg-type]
    first_operand = operands[0]
    if not isinstance(first_operand, Arithmetic) or first_operand.is_additive != arithmetic.is_additive:
        return arithmetic
    return Arithmetic(
        (*first_operand.operands, *operands[1:]), (*first_operand.operators, *arithmetic.operators), rule_span
    )


def negation_of(builder: Builder, rule_span: Span, children: list[Any]) -> Expression:
    """Build a negated operand, `-operand`."""
    operand = as_expression(builder, children[1])
    if not isinstance(operand, Literal) or operand.kind not in ("int", "float") or operand.text.startswith("-"):
        return Negative(operand, rule_span)
    if operand.kind == "int" and operand.text.lstrip("0") == "9223372036854775808":
        builder.withdraw_problem(operand.span)  # this number fits in 64 bits only when negated
    return Literal(operand.kind, f"-{operand.text}", rule_span)


def parenthesized(builder: Builder, rule_span: Span, children: list[Any]) -> Expression:
    """Return the value inside parentheses.

    A literal keeps its own span, without the parentheses, because the formatter copies the text at that span.
    """
    value = as_expression(builder, children[0])
    return value if isinstance(value, Literal) else replace(value, span=rule_span)


def scalar_call(builder: Builder, rule_span: Span, children: list[Any]) -> ScalarCall:
    """Build a function call, such as `lower($p.name)`."""
    arguments = tuple(as_expression(builder, argument) for argument in children[1:] if argument is not None)
    return ScalarCall(str(children[0]), arguments, rule_span)


def branch(builder: Builder, rule_span: Span, children: list[Any]) -> CaseBranch:
    """Build one `when condition then value` branch of a `case`."""
    _, condition, _, value = children
    return CaseBranch(as_condition(condition), as_expression(builder, value))


def case(builder: Builder, rule_span: Span, children: list[Any]) -> Case:
    """Build an expression such as `case when c then v else d end`."""
    branches = tuple(child for child in children if isinstance(child, CaseBranch))
    default_child = children[-2]
    has_default = default_child is not None and not isinstance(default_child, CaseBranch)
    default = as_expression(builder, default_child) if has_default else None
    _check_case_depth(builder, rule_span)
    return Case(branches, default, rule_span)


def _check_case_depth(builder: Builder, case_span: Span) -> None:
    """Report a `case` that is nested too deeply. Recursive checks rely on this limit."""
    inner_depth = 0
    while builder.case_depths and builder.case_depths[-1][0].start >= case_span.start:
        inner_depth = max(inner_depth, builder.case_depths.pop()[1])
    builder.case_depths.append((case_span, inner_depth + 1))
    if inner_depth == MAX_CASE_DEPTH:
        builder.report_problem(case_span, f"`case` is nested more than {MAX_CASE_DEPTH} levels deep")


def truth(builder: Builder, rule_span: Span, children: list[Any]) -> Truth:
    """Build a condition that consists of a single value, such as `matches($p.name, "^A")`."""
    value = children[0]
    return Truth(as_expression(builder, value) if is_token(value) else value, rule_span)


RULES: dict[str, RuleAction] = {
    "addition": chain,
    "multiplication": chain,
    "negation_of": negation_of,
    "parenthesized": parenthesized,
    "scalar_call": scalar_call,
    "branch": branch,
    "case": case,
    "truth": truth,
}
