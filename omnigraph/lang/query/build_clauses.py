"""Rule actions for the clauses in `match`, such as bindings, traversals, `$a contains $b`, `not` and `optional`."""

from dataclasses import replace
from typing import Any, cast

from omnigraph.errors.diagnostics import Span

from .build import Builder, RuleAction, is_token
from .build_conditions import RULES as CONDITIONS
from .build_conditions import as_condition
from .build_expressions import as_expression, parse_integer
from .build_scalars import RULES as SCALARS
from .model import (
    Binding,
    Condition,
    Field,
    Hops,
    InlinePredicate,
    Name,
    Negation,
    OptionalMatch,
    PathMode,
    PathPattern,
    Traversal,
    WordPair,
)


def binding(builder: Builder, rule_span: Span, children: list[Any]) -> Binding:
    """Build a binding, which gives a variable a type and optional inline predicates."""
    variable_token, type_token, predicates = children
    return Binding(builder.make_variable(variable_token), builder.make_name(type_token), predicates or (), rule_span)


def inline(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[InlinePredicate, ...]:
    """Return the inline predicates in the braces after a binding."""
    return tuple(children)


def predicate(builder: Builder, rule_span: Span, children: list[Any]) -> InlinePredicate:
    """Build one of a binding's inline predicates."""
    return InlinePredicate(builder.make_name(children[0]), as_expression(builder, children[1]))


def edges(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[bool, tuple[Name, ...]]:
    """Return False, for a directed traversal, and the edge names in `knows|likes`."""
    return False, tuple(builder.make_name(edge_token) for edge_token in children)


def undirected(builder: Builder, rule_span: Span, children: list[Any]) -> tuple[bool, tuple[Name, ...]]:
    """Return True, for an undirected traversal, and the edge names in `<knows|likes>`."""
    return True, tuple(
        builder.make_name(child_token) for child_token in children if child_token.type not in ("LT", "GT")
    )


def hops(builder: Builder, rule_span: Span, children: list[Any]) -> Hops:
    """Build hop bounds, such as `{1,3}` or `{2,}`."""
    low_token, high_token = children
    return Hops(
        parse_integer(builder, low_token), None if high_token is None else parse_integer(builder, high_token), rule_span
    )


def traversal(builder: Builder, rule_span: Span, children: list[Any]) -> Traversal:
    """Build a traversal, such as `$a $w:knows{1,3} $b where ..`."""
    *children, edge_condition = children
    source, target = builder.make_variable(children[0]), builder.make_variable(children[-1])
    edge_part = next(child for child in children if isinstance(child, tuple))
    hop_bounds = next((child for child in children if isinstance(child, Hops)), None)
    edge_variable = next((builder.make_variable(child) for child in children[1:-1] if is_token(child)), None)
    for edge_name in edge_part[1]:
        if edge_name.text == "not":
            message = "`not` cannot be used as an edge name"
            builder.report_problem(edge_name.span, message, "write a negation as `not { .. }`")
    return Traversal(
        source, edge_part[1], target, edge_part[0], hop_bounds, edge_variable, edge_condition, span=rule_span
    )


def edge_test(builder: Builder, rule_span: Span, children: list[Any]) -> Condition:
    """Return the condition in `where $w.k > 1` after a traversal."""
    return as_condition(children[0])


def edge_cost(builder: Builder, rule_span: Span, children: list[Any]) -> Field:
    """Return the edge property in `by $w.k` after a path."""
    cost: Field = children[1]
    return cost


def path(builder: Builder, rule_span: Span, children: list[Any]) -> Traversal:
    """Build a path, such as `$p = any shortest $a knows{1,3} $b by $w.k`."""
    variable_token, operator, mode, path_traversal, cost = children
    if str(operator) != "=":
        message = f"a path is bound with `=`, not with `{operator}`"
        builder.report_problem(builder.token_span(operator), message)
    path_pattern = PathPattern(builder.make_variable(variable_token), mode, cast("Field | None", cost))
    return replace(cast("Traversal", path_traversal), path=path_pattern, span=rule_span)


def path_mode(builder: Builder, rule_span: Span, children: list[Any]) -> PathMode:
    """Return a path's mode, such as `any shortest` or `trail`."""
    return cast("PathMode", " ".join(str(word_token) for word_token in children))


def pair(builder: Builder, rule_span: Span, children: list[Any]) -> WordPair:
    """Build a pair of variables joined by a word, such as `$a contains $b`."""
    left_token, word_token, right_token = children
    return WordPair(
        builder.make_variable(left_token), builder.make_name(word_token), builder.make_variable(right_token), rule_span
    )


def negation(builder: Builder, rule_span: Span, children: list[Any]) -> Negation:
    """Build a negation, `not { clauses }`."""
    return Negation(tuple(children[1:]), rule_span)


def optional(builder: Builder, rule_span: Span, children: list[Any]) -> OptionalMatch:
    """Build an optional match, `optional { clauses }`."""
    return OptionalMatch(tuple(children[1:]), rule_span)


RULES: dict[str, RuleAction] = (
    CONDITIONS
    | SCALARS
    | {
        "binding": binding,
        "inline": inline,
        "predicate": predicate,
        "edges": edges,
        "undirected": undirected,
        "hops": hops,
        "traversal": traversal,
        "edge_test": edge_test,
        "edge_cost": edge_cost,
        "path": path,
        "path_mode": path_mode,
        "pair": pair,
        "negation": negation,
        "optional": optional,
    }
)
