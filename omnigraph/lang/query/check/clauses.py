"""Check the clauses of a `match` in textual order, including nested `not` and `optional` blocks.

This module passes each clause to the right check, and controls which names are visible in nested blocks. The order in
which the clauses run is determined later, by `lower`.
"""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan

from . import conditions, expressions, search
from .bindings import check_binding
from .checked import CheckedClause, CheckedFilter, CheckedMatch, CheckedNegation, CheckedOptional
from .mentions import directly_named_variables, visible_variables
from .scope import HopEdgeVariable, NodeVariable, Scope
from .traversals import check_traversal


def check_match(scope: Scope, clauses: tuple[m.Clause, ...]) -> CheckedMatch:
    """Check a list of clauses and add the variables that they introduce to `scope`."""
    checked_clauses: list[CheckedClause] = []
    for clause in clauses:
        checked_clauses += _check_clause(scope, clause)
    introduced = [variable for _, variable in scope.introduced_variables() if not isinstance(variable, HopEdgeVariable)]
    return CheckedMatch(
        clauses=tuple(checked_clauses),
        introduced=tuple(variable.name for variable in introduced),
        node_types={variable.name: variable.type_name for variable in introduced if isinstance(variable, NodeVariable)},
    )


def _check_clause(scope: Scope, clause: m.Clause) -> list[CheckedClause]:
    match clause:
        case m.Binding():
            return check_binding(scope, clause)
        case m.Traversal():
            return check_traversal(scope, clause)
        case m.WordPair():
            return _check_word_pair(scope, clause)
        case m.Filter():
            predicate = check_condition(scope, clause.condition)
            return [CheckedFilter(predicate)] if predicate is not None else []
        case m.Negation():
            return _check_negation(scope, clause)
        case m.OptionalMatch():
            return _check_optional(scope, clause)


def check_condition(scope: Scope, condition: m.Condition) -> plan.Predicate | None:
    """Return the predicate for a condition inside `match`, or None after reporting an error."""
    rules = conditions.ConditionRules(
        report=scope.report,
        resolve_operand=lambda expression: expressions.resolve_expression(scope, expression),
        check_text_search=lambda call: search.check_text_search(scope, call),
    )
    return conditions.check_condition(rules, condition)


def _check_word_pair(scope: Scope, word_pair: m.WordPair) -> list[CheckedClause]:
    """Check a clause such as `$a contains $b`, which is a filter if `$a` is a parameter and a traversal otherwise."""
    if word_pair.left.name not in scope.parameters:
        edge_traversal = m.Traversal(word_pair.left, (word_pair.word,), word_pair.right, span=word_pair.span)
        return check_traversal(scope, edge_traversal)
    condition: m.Condition = m.Membership(word_pair.left, word_pair.right, word_pair.span)
    if word_pair.word.text != "in":
        operator: m.ComparisonOperator = "starts_with" if word_pair.word.text == "starts_with" else "contains"
        condition = m.Comparison(word_pair.left, operator, word_pair.right, word_pair.span)
    predicate = check_condition(scope, condition)
    return [CheckedFilter(predicate)] if predicate is not None else []


def _check_negation(scope: Scope, negation: m.Negation) -> list[CheckedClause]:
    inner_scope = scope.enter_negation(visible_variables(negation.clauses))
    inner_match = _check_linked_match(scope, inner_scope, negation.clauses, _keyword_span(negation.span, "not"))
    return [CheckedNegation(inner_match)]


def _check_optional(scope: Scope, optional_match: m.OptionalMatch) -> list[CheckedClause]:
    inner_scope = scope.enter_optional()
    inner_match = _check_linked_match(
        scope, inner_scope, optional_match.clauses, _keyword_span(optional_match.span, "optional")
    )
    scope.adopt_optional(inner_scope)
    return [CheckedOptional(inner_match)]


def _check_linked_match(
    scope: Scope, inner_scope: Scope, clauses: tuple[m.Clause, ...], keyword_span: Span
) -> CheckedMatch:
    """Check the inner match, which must refer to an outer variable."""
    errors_before = scope.report.error_count
    inner_match = check_match(inner_scope, clauses)
    if (
        not inner_scope.inherited_names & directly_named_variables(clauses)
        and scope.report.error_count == errors_before
    ):
        message = "no clause in this block refers to a variable bound outside the block"
        scope.report.error(keyword_span, message, "T9")
    return inner_match


def _keyword_span(clause_span: Span, keyword: str) -> Span:
    return Span(clause_span.start, clause_span.start + len(keyword))
