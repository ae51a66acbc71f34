"""Rule actions that assemble a read: one `match` with its `return`, or a union of several such reads."""

from dataclasses import replace
from typing import Any

from omnigraph.errors.diagnostics import Span

from .build import Builder, RuleAction
from .build_conditions import as_condition
from .model import Condition, ReadBody, UnionBody

_MIXED_UNION_MESSAGE = "`union` and `union all` cannot be mixed in one query"
_MIXED_UNION_HINT = "use the same keyword between all parts; `union` removes duplicates from the whole result"


def read(builder: Builder, rule_span: Span, children: list[Any]) -> ReadBody:
    """Build a read from its match, return, having, order, limit and offset."""
    select_part, orderings, limit, offset = children
    read_body: ReadBody = select_part
    return replace(read_body, orderings=orderings or (), limit=limit, offset=offset, span=rule_span)


def select(builder: Builder, rule_span: Span, children: list[Any]) -> ReadBody:
    """Build a read from its match, return and having, without an order or limits."""
    clauses, (distinct, projections), having = children
    return ReadBody(clauses, projections, distinct=distinct, span=rule_span, having=having)


def having_part(builder: Builder, rule_span: Span, children: list[Any]) -> Condition:
    """Return the condition in `having { count(*) > 1 }`."""
    return as_condition(children[0])


def union_word(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[bool, Span]:
    """Return whether the union keeps duplicates (`union all`), and the position of its keywords."""
    return children[1] is not None, rule_span


def union(builder: Builder, rule_span: Span, children: list[Any]) -> UnionBody:
    """Build a union of two or more parts, with an optional order, limit and offset."""
    *part_children, orderings, limit, offset = children
    keeps_duplicates, _ = part_children[1]
    for word_keeps, word_span in part_children[3::2]:
        if word_keeps != keeps_duplicates:
            builder.report_problem(word_span, _MIXED_UNION_MESSAGE, _MIXED_UNION_HINT)
    return UnionBody(tuple(part_children[::2]), keeps_duplicates, orderings or (), limit, offset, rule_span)


RULES: dict[str, RuleAction] = {
    "read": read,
    "select": select,
    "having_part": having_part,
    "union_word": union_word,
    "union": union,
}
