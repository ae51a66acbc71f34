"""Find the variables that are mentioned in part of a syntax tree, before any names are resolved.

This module is purely syntactic: the checker decides whether the names are valid.
"""

from collections.abc import Iterable, Iterator

from omnigraph.lang.query import model as m

from .scope import ANONYMOUS


def visible_variables(clauses: Iterable[m.Clause]) -> frozenset[str]:
    """Return the variables that clauses can introduce, including those in their `optional` parts."""
    variables: set[str] = set()
    for clause in clauses:
        if isinstance(clause, m.OptionalMatch):
            variables |= visible_variables(clause.clauses)
        elif not isinstance(clause, m.Negation):
            variables |= set(_introduced_variables(clause))
    return frozenset(variables)


def directly_named_variables(clauses: Iterable[m.Clause]) -> frozenset[str]:
    """Return the variables that clauses mention directly, excluding nested `not` and `optional` parts."""
    variables: set[str] = set()
    for clause in clauses:
        if isinstance(clause, m.Filter):
            variables |= set(_condition_variables(clause.condition))
        elif not isinstance(clause, m.Negation | m.OptionalMatch):
            variables |= set(_introduced_variables(clause))
    return frozenset(variables)


def _introduced_variables(clause: m.Clause) -> Iterator[str]:
    match clause:
        case m.Binding():
            clause_variables = [clause.variable]
        case m.Traversal():
            edge_variables = [clause.edge_variable] if clause.edge_variable is not None else []
            path_variables = [clause.path.variable] if clause.path is not None else []
            clause_variables = [clause.source, *edge_variables, clause.target, *path_variables]
        case m.WordPair():
            clause_variables = [clause.left, clause.right]
        case _:
            clause_variables = []
    yield from (variable.name for variable in clause_variables if variable.name != ANONYMOUS)


def _condition_variables(condition: m.Condition) -> Iterator[str]:
    match condition:
        case m.And() | m.Or():
            for item in condition.items:
                yield from _condition_variables(item)
        case m.Not():
            yield from _condition_variables(condition.item)
        case m.Comparison():
            yield from _expression_variables((condition.left, condition.right))
        case m.Membership():
            yield from _expression_variables((condition.operand, condition.items))
        case m.IsNull():
            yield from _expression_variables((condition.operand,))
        case m.TextMatch():
            yield from _expression_variables(condition.call.arguments)
        case m.Truth():
            yield from _expression_variables((condition.value,))


def _expression_variables(expressions: Iterable[m.Expression]) -> Iterator[str]:
    for expression in expressions:
        match expression:
            case m.Field():
                yield expression.variable
            case m.Variable():
                yield expression.name
            case m.Call():
                yield from _expression_variables(expression.arguments)
            case m.Aggregate():
                yield from _expression_variables((expression.argument,))
            case m.Arithmetic():
                yield from _expression_variables(expression.operands)
            case m.Negative():
                yield from _expression_variables((expression.operand,))
            case m.ScalarCall():
                yield from _expression_variables(expression.arguments)
            case m.Case():
                yield from _case_variables(expression)


def mentions_aggregate(expression: m.Expression) -> bool:
    """Return whether an expression is or contains an aggregate.

    >>> mentions_aggregate(m.Negative(m.Aggregate("count", m.Variable("p"))))
    True
    """
    match expression:
        case m.Aggregate():
            return True
        case m.Arithmetic():
            return any(map(mentions_aggregate, expression.operands))
        case m.Negative():
            return mentions_aggregate(expression.operand)
        case m.ScalarCall():
            return any(map(mentions_aggregate, expression.arguments))
        case m.Case():
            default = () if expression.default is None else (expression.default,)
            results = (*(branch.value for branch in expression.branches), *default)
            return any(mentions_aggregate(result) for result in results)
    return False


def _case_variables(case: m.Case) -> Iterator[str]:
    for branch in case.branches:
        yield from _condition_variables(branch.condition)
        yield from _expression_variables((branch.value,))
    yield from _expression_variables(() if case.default is None else (case.default,))
