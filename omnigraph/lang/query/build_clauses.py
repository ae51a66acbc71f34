"""Rule actions for the clauses of `match`: bindings, traversals, word pairs, `not`, `optional`."""

from typing import Any

from omnigraph.diagnostics import Span

from .build import Builder, Make, is_token
from .build_conditions import RULES as CONDITIONS
from .build_expressions import expression, integer
from .model import (
    Binding,
    Hops,
    InlinePredicate,
    Name,
    Negation,
    OptionalMatch,
    Traversal,
    WordPair,
)


def binding(b: Builder, at: Span, kids: list[Any]) -> Binding:
    """`$p: Person { name: "Ann" }`."""
    variable, type_name, predicates = kids
    return Binding(b.variable(variable), b.name(type_name), predicates or (), at)


def inline(b: Builder, at: Span, kids: list[Any]) -> tuple[InlinePredicate, ...]:
    """The braces after a binding."""
    return tuple(kids)


def predicate(b: Builder, at: Span, kids: list[Any]) -> InlinePredicate:
    """`name: "Ann"`."""
    return InlinePredicate(b.name(kids[0]), expression(b, kids[1]))


def edges(b: Builder, at: Span, kids: list[Any]) -> tuple[bool, tuple[Name, ...]]:
    """`knows|likes`: False for "not undirected", and the edge words."""
    return False, tuple(b.name(kid) for kid in kids)


def undirected(b: Builder, at: Span, kids: list[Any]) -> tuple[bool, tuple[Name, ...]]:
    """`<knows|likes>`."""
    return True, tuple(b.name(kid) for kid in kids if kid.type not in ("LT", "GT"))


def hops(b: Builder, at: Span, kids: list[Any]) -> Hops:
    """`{1,3}`, `{2,}`."""
    low, high = kids
    return Hops(integer(b, low), None if high is None else integer(b, high), at)


def traversal(b: Builder, at: Span, kids: list[Any]) -> Traversal:
    """`$a $w:knows{1,3} $b`."""
    source, target = b.variable(kids[0]), b.variable(kids[-1])
    words = next(kid for kid in kids if isinstance(kid, tuple))
    bounds = next((kid for kid in kids if isinstance(kid, Hops)), None)
    middle = next((b.variable(kid) for kid in kids[1:-1] if is_token(kid)), None)
    for word in words[1]:
        if word.text == "not":
            message = "`not` cannot be an edge word"
            b.report(word.span, message, "a negation is written `not { .. }`")
    return Traversal(source, words[1], target, words[0], bounds, middle, at)


def pair(b: Builder, at: Span, kids: list[Any]) -> WordPair:
    """`$a contains $b`."""
    left, word, right = kids
    return WordPair(b.variable(left), b.name(word), b.variable(right), at)


def negation(b: Builder, at: Span, kids: list[Any]) -> Negation:
    """`not { clauses }`."""
    return Negation(tuple(kids[1:]), at)


def optional(b: Builder, at: Span, kids: list[Any]) -> OptionalMatch:
    """`optional { clauses }`."""
    return OptionalMatch(tuple(kids[1:]), at)


RULES: dict[str, Make] = CONDITIONS | {
    "binding": binding,
    "inline": inline,
    "predicate": predicate,
    "edges": edges,
    "undirected": undirected,
    "hops": hops,
    "traversal": traversal,
    "pair": pair,
    "negation": negation,
    "optional": optional,
}
