"""Which variables a part of a plan reads or introduces.

Answers for lowering, lint and the engine; the sets have no order.
"""

from collections.abc import Iterable

from . import plan


def variables_of(piece: plan.Value | plan.Predicate | plan.Ranking) -> frozenset[str]:
    """Return the variables that a value, predicate or ranking reads.

    >>> from omnigraph.values import PropertyType, ScalarType
    >>> text = PropertyType(ScalarType.STRING)
    >>> sorted(variables_of(plan.IsNull(plan.PropertyValue("p", "name", text))))
    ['p']
    """
    match piece:
        case plan.Constant() | plan.Parameter():
            return frozenset()
        case plan.PropertyValue() | plan.SystemValue() | plan.Entity() | plan.OfType():
            return frozenset({piece.variable})
        case plan.TextSearch() | plan.Bm25() | plan.Nearest():
            return frozenset({piece.field.variable})
        case _:
            return _all(parts_of(piece))


def parts_of(  # noqa: PLR0911 - one return per kind
    piece: plan.Value | plan.Predicate | plan.Ranking,
) -> Iterable[plan.Value | plan.Predicate | plan.Ranking]:
    """Return the direct operands of a value, predicate or ranking."""
    match piece:
        case plan.Score():
            return (piece.ranking,)
        case plan.Aggregate():
            return (piece.argument,)
        case plan.Fuse():
            return (piece.first, piece.second)
        case plan.Compare() | plan.TextTest():
            return (piece.left, piece.right)
        case plan.InList():
            return (piece.operand, piece.items)
        case plan.IsNull():
            return (piece.operand,)
        case plan.And() | plan.Or():
            return piece.items
        case plan.Not():
            return (piece.item,)
    return ()


def _all(pieces: Iterable[plan.Value | plan.Predicate | plan.Ranking]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for piece in pieces:
        found |= variables_of(piece)
    return found


def needed_by(operators: Iterable[plan.Operator]) -> frozenset[str]:
    """Return the variables that operators read but do not introduce themselves.

    >>> step = plan.Step("Knows", "out")
    >>> operators = (plan.Expand("p", "q", (step,), "Person"), plan.Close("q", "r"))
    >>> sorted(needed_by(operators))
    ['p', 'r']
    """
    needed: set[str] = set()
    made: set[str] = set()
    for operator in operators:
        needed |= _reads(operator) - made
        made |= _makes(operator)
    return frozenset(needed)


def _reads(operator: plan.Operator) -> frozenset[str]:
    match operator:
        case plan.NodeScan():
            return _all(operator.filters) - {operator.variable}
        case plan.Expand():
            inside = {operator.target, operator.edge_variable}
            return (_all(operator.target_filters) - inside) | {operator.source}
        case plan.Close():
            return frozenset({operator.left, operator.right})
        case plan.Filter():
            return variables_of(operator.predicate)
        case plan.AntiJoin() | plan.LeftJoin():
            return frozenset(operator.outer)


def _makes(operator: plan.Operator) -> frozenset[str]:
    match operator:
        case plan.NodeScan():
            return frozenset({operator.variable})
        case plan.Expand():
            names = (operator.target, operator.edge_variable)
            return frozenset(name for name in names if name is not None)
        case plan.LeftJoin():
            return frozenset(operator.introduced)
    return frozenset()
