"""Which variables a part of the syntax tree names, before anything is resolved.

Purely syntactic: the checker decides whether the names mean anything.
"""

from collections.abc import Iterable, Iterator

from omnigraph.lang.query import model as m

from .scope import ANONYMOUS


def visible_names(clauses: Iterable[m.Clause]) -> frozenset[str]:
    """Return the variables that clauses can introduce, also inside their `optional` parts."""
    found: set[str] = set()
    for clause in clauses:
        if isinstance(clause, m.OptionalMatch):
            found |= visible_names(clause.clauses)
        elif not isinstance(clause, m.Negation):
            found |= set(_introduced(clause))
    return frozenset(found)


def direct_names(clauses: Iterable[m.Clause]) -> frozenset[str]:
    """Return the variables that clauses name directly, not inside a nested `not` or `optional`."""
    found: set[str] = set()
    for clause in clauses:
        if isinstance(clause, m.Filter):
            found |= set(_in_condition(clause.condition))
        elif not isinstance(clause, m.Negation | m.OptionalMatch):
            found |= set(_introduced(clause))
    return frozenset(found)


def _introduced(clause: m.Clause) -> Iterator[str]:
    match clause:
        case m.Binding():
            names = [clause.variable]
        case m.Traversal():
            edge = [clause.edge_variable] if clause.edge_variable is not None else []
            names = [clause.source, *edge, clause.target]
        case m.WordPair():
            names = [clause.left, clause.right]
        case _:
            names = []
    yield from (one.name for one in names if one.name != ANONYMOUS)


def _in_condition(condition: m.Condition) -> Iterator[str]:
    match condition:
        case m.And() | m.Or():
            for item in condition.items:
                yield from _in_condition(item)
        case m.Not():
            yield from _in_condition(condition.item)
        case m.Comparison():
            yield from _in_expressions((condition.left, condition.right))
        case m.Membership():
            yield from _in_expressions((condition.operand, condition.items))
        case m.IsNull():
            yield from _in_expressions((condition.operand,))
        case m.TextMatch():
            yield from _in_expressions(condition.call.arguments)


def _in_expressions(expressions: Iterable[m.Expression]) -> Iterator[str]:
    for one in expressions:
        match one:
            case m.Field():
                yield one.variable
            case m.Variable():
                yield one.name
            case m.Call():
                yield from _in_expressions(one.arguments)
            case m.Aggregate():
                yield from _in_expressions((one.argument,))
