"""Find the variables that part of a plan reads or introduces.

Lowering, lint and the engine use this module.
"""

from collections.abc import Iterable

from . import plan, plan_paths

PlanNode = plan.Value | plan.Predicate | plan.Ranking


def variables_of(plan_node: PlanNode) -> frozenset[str]:
    """Return the variables that a value, predicate or ranking reads.

    >>> from omnigraph.values import PropertyType, ScalarType
    >>> text = PropertyType(ScalarType.STRING)
    >>> sorted(variables_of(plan.IsNull(plan.PropertyValue("p", "name", text))))
    ['p']
    """
    match plan_node:
        case plan.Constant() | plan.Parameter():
            return frozenset()
        case plan.PropertyValue() | plan.SystemValue() | plan.Entity() | plan.OfType():
            return frozenset({plan_node.variable})
        case plan_paths.PathEntity() | plan_paths.PathValue():
            return frozenset({plan_node.variable})
        case plan.TextSearch() | plan.Bm25() | plan.Nearest():
            return frozenset({plan_node.field.variable})
        case _:
            return _variables_of_all(operands_of(plan_node))


def contains_aggregate(plan_node: PlanNode) -> bool:
    """Return whether a value is or contains an aggregate.

    >>> contains_aggregate(plan.Aggregate("count", plan.Entity("p", "Person")))
    True
    """
    return isinstance(plan_node, plan.Aggregate) or any(map(contains_aggregate, operands_of(plan_node)))


def contains_collect(plan_node: PlanNode) -> bool:
    """Return whether a value is or contains a `collect`, whose result depends on the order of rows."""
    if isinstance(plan_node, plan.Aggregate):
        return plan_node.function == "collect"
    return any(map(contains_collect, operands_of(plan_node)))


def operands_of(plan_node: PlanNode) -> Iterable[PlanNode]:  # noqa: PLR0911, C901 - one return per kind
    """Return the direct operands of a value, predicate or ranking."""
    match plan_node:
        case plan.Score():
            return (plan_node.ranking,)
        case plan.Aggregate():
            return (plan_node.argument,)
        case plan.Fuse():
            return (plan_node.first, plan_node.second)
        case plan.Compare() | plan.TextTest():
            return (plan_node.left, plan_node.right)
        case plan.InList():
            return (plan_node.operand, plan_node.items)
        case plan.IsNull():
            return (plan_node.operand,)
        case plan.And() | plan.Or():
            return plan_node.items
        case plan.Not():
            return (plan_node.item,)
        case plan.Truth():
            return (plan_node.value,)
        case plan.Arithmetic() | plan.Negative() | plan.ScalarCall() | plan.Case():
            return _scalar_operands(plan_node)
    return ()


def _scalar_operands(scalar_value: plan.ScalarValue) -> tuple[PlanNode, ...]:
    match scalar_value:
        case plan.Arithmetic():
            return (scalar_value.first, *(operand for _, operand in scalar_value.steps))
        case plan.Negative():
            return (scalar_value.operand,)
        case plan.ScalarCall():
            return scalar_value.arguments
        case plan.Case():
            branch_operands = (operand for branch in scalar_value.branches for operand in branch)
            return (*branch_operands, scalar_value.default)


def _variables_of_all(plan_nodes: Iterable[PlanNode]) -> frozenset[str]:
    variables: frozenset[str] = frozenset()
    for plan_node in plan_nodes:
        variables |= variables_of(plan_node)
    return variables


def variables_needed_by(operators: Iterable[plan.Operator]) -> frozenset[str]:
    """Return the variables that operators read but do not introduce themselves.

    >>> step = plan.PlanStep("Knows", "out")
    >>> operators = (plan.Expand("p", "q", (step,), "Person"), plan.CloseCycle("q", "r"))
    >>> sorted(variables_needed_by(operators))
    ['p', 'r']
    """
    needed_variables: set[str] = set()
    introduced_variables: set[str] = set()
    for operator in operators:
        needed_variables |= _read_variables(operator) - introduced_variables
        introduced_variables |= _introduced_variables(operator)
    return frozenset(needed_variables)


def _read_variables(operator: plan.Operator) -> frozenset[str]:
    match operator:
        case plan.NodeScan():
            return _variables_of_all(operator.filters) - {operator.variable}
        case plan.Expand():
            introduced = {operator.target, operator.edge_variable}
            return (_variables_of_all(operator.target_filters) - introduced) | {operator.source}
        case plan.FindPaths():
            ends = {operator.source} if operator.closing is None else {operator.source, operator.closing}
            return (_variables_of_all(operator.target_filters) - {operator.target}) | ends
        case plan.CloseCycle():
            return frozenset({operator.left, operator.right})
        case plan.Filter():
            return variables_of(operator.predicate)
        case plan.AntiJoin() | plan.LeftJoin():
            return frozenset(operator.outer)


def _introduced_variables(operator: plan.Operator) -> frozenset[str]:
    match operator:
        case plan.NodeScan():
            return frozenset({operator.variable})
        case plan.Expand():
            introduced = (operator.target, operator.edge_variable)
            return frozenset(variable for variable in introduced if variable is not None)
        case plan.FindPaths():
            return frozenset(variable for variable in (operator.target, operator.path) if variable is not None)
        case plan.LeftJoin():
            return frozenset(operator.introduced)
    return frozenset()
