"""The clauses of a `match`, in textual order, with nested `not` and `optional`.

Owns the dispatch of clauses to their checks and which names nested lists can see. The order in
which clauses run is decided later, by lowering.
"""

from omnigraph.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan

from . import conditions, expressions, search
from .bindings import binding
from .checked import Clause, Keep, Match, Maybe, Without
from .mentions import direct_names, visible_names
from .scope import NodeVariable, Scope
from .traversals import traversal


def check_match(scope: Scope, clauses: tuple[m.Clause, ...]) -> Match:
    """Check a list of clauses; afterwards `scope` holds the variables they introduce."""
    checked: list[Clause] = []
    for clause in clauses:
        checked += _clause(scope, clause)
    own = [bound for _, bound in scope.own()]
    return Match(
        clauses=tuple(checked),
        introduced=tuple(bound.name for bound in own),
        node_types={one.name: one.type_name for one in own if isinstance(one, NodeVariable)},
    )


def _clause(scope: Scope, clause: m.Clause) -> list[Clause]:
    match clause:
        case m.Binding():
            return binding(scope, clause)
        case m.Traversal():
            return traversal(scope, clause)
        case m.WordPair():
            return _word_pair(scope, clause)
        case m.Filter():
            predicate = condition(scope, clause.condition)
            return [Keep(predicate)] if predicate is not None else []
        case m.Negation():
            return _negation(scope, clause)
        case m.OptionalMatch():
            return _optional(scope, clause)


def condition(scope: Scope, node: m.Condition) -> plan.Predicate | None:
    """Return the predicate of a condition inside `match`."""
    rules = conditions.Rules(
        report=scope.report,
        resolve=lambda expression: expressions.resolve(scope, expression),
        text_search=lambda call: search.text_search(scope, call),
    )
    return conditions.condition(rules, node)


def _word_pair(scope: Scope, node: m.WordPair) -> list[Clause]:
    """`$a contains $b`: the left side decides whether this is a filter or a traversal."""
    if node.left.name not in scope.parameters:
        edge = m.Traversal(node.left, (node.word,), node.right, span=node.span)
        return traversal(scope, edge)
    test: m.Condition = m.Membership(node.left, node.right, node.span)
    if node.word.text != "in":
        operator: m.Operator = "starts_with" if node.word.text == "starts_with" else "contains"
        test = m.Comparison(node.left, operator, node.right, node.span)
    predicate = condition(scope, test)
    return [Keep(predicate)] if predicate is not None else []


def _negation(scope: Scope, node: m.Negation) -> list[Clause]:
    inner = scope.inside_negation(visible_names(node.clauses))
    match = _linked(scope, inner, node.clauses, _word(node.span, "not"))
    return [Without(match)]


def _optional(scope: Scope, node: m.OptionalMatch) -> list[Clause]:
    inner = scope.inside_optional()
    match = _linked(scope, inner, node.clauses, _word(node.span, "optional"))
    scope.adopt(inner)
    return [Maybe(match)]


def _linked(scope: Scope, inner: Scope, clauses: tuple[m.Clause, ...], word: Span) -> Match:
    """Check the inner match; it must refer to a variable from outside."""
    before = scope.report.failures
    match = check_match(inner, clauses)
    if not inner.inherited & direct_names(clauses) and scope.report.failures == before:
        message = "no clause inside refers to a variable bound before it"
        scope.report.error(word, message, "T9")
    return match


def _word(span: Span, word: str) -> Span:
    return Span(span.start, span.start + len(word))
