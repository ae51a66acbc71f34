"""Rule actions for conditions: comparisons, tests and their combination by and, or, not.

Owns the flat form: an `And` never contains an `And`, an `Or` never an `Or`, and parentheses leave
no trace. A word between two variables becomes a test here; as a clause it stays a `WordPair`.
"""

from typing import Any

from omnigraph.diagnostics import Span

from .build import Builder, Make, is_token
from .build_expressions import RULES as EXPRESSIONS
from .build_expressions import expression
from .model import (
    Alias,
    And,
    Comparison,
    Condition,
    Filter,
    IsNull,
    Membership,
    Not,
    Or,
    TextMatch,
    WordPair,
)


def condition(kid: Any) -> Condition:
    """Return a finished condition, or a word pair as a test."""
    if not isinstance(kid, WordPair):
        made: Condition = kid
        return made
    if kid.word.text == "in":
        return Membership(kid.left, kid.right, kid.span)
    return Comparison(kid.left, kid.word.text, kid.right, kid.span)  # type: ignore[arg-type]


def comparison(b: Builder, at: Span, kids: list[Any]) -> Comparison:
    """`left operator right`."""
    left, operator, right = kids
    return Comparison(expression(b, left), str(operator), expression(b, right), at)  # type: ignore[arg-type]


def membership(b: Builder, at: Span, kids: list[Any]) -> Membership:
    """`operand in items`."""
    return Membership(expression(b, kids[0]), expression(b, kids[2]), at)


def is_null(b: Builder, at: Span, kids: list[Any]) -> IsNull:
    """`operand is null`."""
    return IsNull(expression(b, kids[0]), False, at)


def is_not_null(b: Builder, at: Span, kids: list[Any]) -> IsNull:
    """`operand is not null`."""
    return IsNull(expression(b, kids[0]), True, at)


def text_match(b: Builder, at: Span, kids: list[Any]) -> TextMatch:
    """A text function as a condition."""
    return TextMatch(kids[0], at)


def group(b: Builder, at: Span, kids: list[Any]) -> Condition:
    """A condition in parentheses."""
    return condition(kids[0])


def negated(b: Builder, at: Span, kids: list[Any]) -> Not:
    """`not condition`."""
    return Not(condition(kids[1]), at)


def conjunction(b: Builder, at: Span, kids: list[Any]) -> And:
    """`a and b and c`."""
    return And(tuple(_flat(kids, And)), at)


def disjunction(b: Builder, at: Span, kids: list[Any]) -> Or:
    """`a or b or c`."""
    return Or(tuple(_flat(kids, Or)), at)


def _flat(kids: list[Any], kind: type[And] | type[Or]) -> list[Condition]:
    flat: list[Condition] = []
    for kid in kids:
        if isinstance(kid, kind):
            flat += kid.items
        elif not is_token(kid):
            flat.append(condition(kid))
    return flat


def filter_clause(b: Builder, at: Span, kids: list[Any]) -> Filter:
    """A condition as a clause."""
    return Filter(condition(kids[0]), at)


def _property(b: Builder, token: Any) -> Alias:
    return Alias(str(token), b.span(token))


def row_comparison(b: Builder, at: Span, kids: list[Any]) -> Comparison:
    """`property operator value` in the `where` of a mutation."""
    return comparison(b, at, [_property(b, kids[0]), *kids[1:]])


def row_membership(b: Builder, at: Span, kids: list[Any]) -> Membership:
    """`property in items` in the `where` of a mutation."""
    return membership(b, at, [_property(b, kids[0]), *kids[1:]])


def row_is_null(b: Builder, at: Span, kids: list[Any]) -> IsNull:
    """`property is null` in the `where` of a mutation."""
    return IsNull(_property(b, kids[0]), False, at)


def row_is_not_null(b: Builder, at: Span, kids: list[Any]) -> IsNull:
    """`property is not null` in the `where` of a mutation."""
    return IsNull(_property(b, kids[0]), True, at)


RULES: dict[str, Make] = EXPRESSIONS | {
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
    "row_membership": row_membership,
    "row_is_null": row_is_null,
    "row_is_not_null": row_is_not_null,
}
