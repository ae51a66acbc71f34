"""Rule actions for conditions: comparisons and tests, which can be combined with `and`, `or` and `not`.

This module flattens conditions: an `And` never contains an `And`, an `Or` never contains an `Or`, and parentheses are
dropped. Two variables with a word between them become a test if they are part of a condition, but remain a `WordPair`
if they form a clause of their own.
"""

from typing import Any

from omnigraph.errors.diagnostics import Span

from .build import Builder, RuleAction, is_token
from .build_expressions import RULES as EXPRESSIONS
from .build_expressions import as_expression
from .model import Alias, And, Comparison, Condition, Filter, IsNull, Membership, Not, Or, TextMatch, WordPair


def as_condition(child: Any) -> Condition:
    """Return a condition unchanged, or convert a word pair to a test."""
    if not isinstance(child, WordPair):
        built_condition: Condition = child
        return built_condition
    if child.word.text == "in":
        return Membership(child.left, child.right, child.span)
    return Comparison(child.left, child.word.text, child.right, child.span)  # type: ignore[arg-type]


def comparison(builder: Builder, rule_span: Span, children: list[Any]) -> Comparison:
    """Build a comparison, `left operator right`."""
    left, operator, right = children
    return Comparison(
        as_expression(builder, left),
        str(operator),  # type: ignore[arg-type]
        as_expression(builder, right),
        rule_span,
    )


def membership(builder: Builder, rule_span: Span, children: list[Any]) -> Membership:
    """Build a membership test, `operand in items`."""
    return Membership(as_expression(builder, children[0]), as_expression(builder, children[2]), rule_span)


def is_null(builder: Builder, rule_span: Span, children: list[Any]) -> IsNull:
    """Build the test `operand is null`."""
    return IsNull(as_expression(builder, children[0]), False, rule_span)


def is_not_null(builder: Builder, rule_span: Span, children: list[Any]) -> IsNull:
    """Build the test `operand is not null`."""
    return IsNull(as_expression(builder, children[0]), True, rule_span)


def text_match(builder: Builder, rule_span: Span, children: list[Any]) -> TextMatch:
    """Build a condition from a text function, such as `search(..)`."""
    return TextMatch(children[0], rule_span)


def group(builder: Builder, rule_span: Span, children: list[Any]) -> Condition:
    """Return the condition inside parentheses."""
    return as_condition(children[0])


def negated(builder: Builder, rule_span: Span, children: list[Any]) -> Not:
    """Build a negated condition, `not condition`."""
    return Not(as_condition(children[1]), rule_span)


def conjunction(builder: Builder, rule_span: Span, children: list[Any]) -> And:
    """Build a conjunction, such as `a and b and c`."""
    return And(tuple(_flatten_operands(children, And)), rule_span)


def disjunction(builder: Builder, rule_span: Span, children: list[Any]) -> Or:
    """Build a disjunction, such as `a or b or c`."""
    return Or(tuple(_flatten_operands(children, Or)), rule_span)


def _flatten_operands(children: list[Any], combination_class: type[And] | type[Or]) -> list[Condition]:
    operands: list[Condition] = []
    for child in children:
        if isinstance(child, combination_class):
            operands += child.items
        elif not is_token(child):
            operands.append(as_condition(child))
    return operands


def filter_clause(builder: Builder, rule_span: Span, children: list[Any]) -> Filter:
    """Build a clause from a condition."""
    return Filter(as_condition(children[0]), rule_span)


def row_comparison(builder: Builder, rule_span: Span, children: list[Any]) -> Comparison:
    """Build a comparison in a mutation's `where`. Its left operand may be a property named `not`."""
    left = children[0]
    if is_token(left) and left.type == "NOT":
        left = Alias(str(left), builder.token_span(left))
    return comparison(builder, rule_span, [left, *children[1:]])


RULES: dict[str, RuleAction] = EXPRESSIONS | {
    "comparison": comparison,
    "membership": membership,
    "is_null": is_null,
    "is_not_null": is_not_null,
    "text_match": text_match,
    "group": group,
    "negated": negated,
    "conjunction": conjunction,
    "disjunction": disjunction,
    "filter": filter_clause,
    "row_comparison": row_comparison,
}
