"""Lower a checked query to the plan that engines run.

This module determines the order of operators. For each connected component, the plan scans a starting variable (the
seed) and then expands traversals, always choosing the first one in the text that has a bound endpoint. Filters come
next. The plan ends with `not`, `optional`, and filters that depend on an `optional`, in textual order. The order never
depends on data or costs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record

from . import plan
from .check.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedFilter,
    CheckedMatch,
    CheckedNegation,
    CheckedOptional,
    CheckedPath,
    CheckedRead,
    CheckedTraversal,
)
from .check.scope import implementers
from .components import Component, find_components
from .plan_variables import variables_needed_by, variables_of

_REVERSED_DIRECTIONS: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}
_VariableOrder = dict[str, int]  # maps each variable to its position in the order of introduction
_PredicatesByVariable = dict[str, tuple[plan.Predicate, ...]]


@record
class _LoweringContext:
    """Shared inputs for lowering: the schema, and a generator for variable names that cannot occur in a query."""

    catalog: Catalog
    fresh_names: Iterator[str]


def lower_read(checked_read: CheckedRead, catalog: Catalog) -> plan.ReadPlan:
    """Return the plan for a checked read."""
    context = _LoweringContext(catalog, (f"#{serial_number}" for serial_number in count(1)))
    return plan.ReadPlan(
        operators=tuple(_lower_match(context, checked_read.match, {})),
        columns=checked_read.columns,
        variables=checked_read.match.introduced,
        aggregated=checked_read.aggregated,
        distinct=checked_read.distinct,
        order=checked_read.order,
        ranking=checked_read.ranking,
        limit=checked_read.limit,
        offset=checked_read.offset,
        having=checked_read.having,
    )


def _lower_match(
    context: _LoweringContext, match: CheckedMatch, outer_variables: _VariableOrder
) -> Iterator[plan.Operator]:
    """Yield the operators for a list of clauses.

    `outer_variables` are the variables that are already present in the input rows.
    """
    bound_variables = dict(outer_variables)
    remaining_clauses: list[CheckedClause] = [
        checked_clause
        for checked_clause in match.clauses
        if not isinstance(checked_clause, CheckedBinding | CheckedTraversal)
    ]
    # Type tests come first, because the same id may occur in several types, and traversals rely on their source's type.
    type_filters, remaining_clauses = _split_filters(
        remaining_clauses, lambda filter_clause: isinstance(filter_clause.predicate, plan.OfType)
    )
    yield from (plan.Filter(checked_clause.predicate) for checked_clause in type_filters)
    for component in find_components(match, outer_variables):
        yield from _lower_component(context, component, match, bound_variables)
    early_filters, remaining_clauses = _split_filters(
        remaining_clauses, lambda filter_clause: variables_of(filter_clause.predicate) <= bound_variables.keys()
    )
    yield from (plan.Filter(checked_clause.predicate) for checked_clause in early_filters)
    for clause in remaining_clauses:
        yield from _lower_late_clause(context, clause, bound_variables)


def _split_filters(
    clauses: list[CheckedClause], is_selected: Callable[[CheckedFilter], bool]
) -> tuple[list[CheckedFilter], list[CheckedClause]]:
    """Split clauses into the selected filters and all other clauses."""
    selected_filters: list[CheckedFilter] = []
    other_clauses: list[CheckedClause] = []
    for clause in clauses:
        if isinstance(clause, CheckedFilter) and is_selected(clause):
            selected_filters.append(clause)
        else:
            other_clauses.append(clause)
    return selected_filters, other_clauses


def _lower_late_clause(
    context: _LoweringContext, clause: CheckedClause, bound_variables: _VariableOrder
) -> Iterator[plan.Operator]:
    match clause:
        case CheckedFilter():
            yield plan.Filter(clause.predicate)
        case CheckedNegation():
            inner_operators = tuple(_lower_match(context, clause.match, bound_variables))
            yield plan.AntiJoin(_outer_variables(inner_operators, bound_variables), inner_operators)
        case CheckedOptional():
            inner_operators = tuple(_lower_match(context, clause.match, bound_variables))
            introduced = clause.match.introduced
            yield plan.LeftJoin(_outer_variables(inner_operators, bound_variables), inner_operators, introduced)
            _add_variables(bound_variables, introduced)


def _outer_variables(inner_operators: tuple[plan.Operator, ...], bound_variables: _VariableOrder) -> tuple[str, ...]:
    return tuple(sorted(variables_needed_by(inner_operators) & bound_variables.keys(), key=bound_variables.__getitem__))


def _add_variables(bound_variables: _VariableOrder, variables: Iterable[str | None]) -> None:
    for variable in variables:
        if variable is not None:
            bound_variables[variable] = len(bound_variables)


def _lower_component(
    context: _LoweringContext, component: Component, match: CheckedMatch, bound_variables: _VariableOrder
) -> Iterator[plan.Operator]:
    """Yield the seed's scan and then the expansions. Add the variables that they introduce to `bound_variables`."""
    predicates_by_variable = _gather_predicates(component.bindings)
    for variable in [candidate for candidate in predicates_by_variable if candidate in bound_variables]:
        yield from (plan.Filter(predicate) for predicate in predicates_by_variable[variable])
    traversals = list(component.traversals)
    if not component.has_outer_variable:
        seed_scan, traversals = _choose_seed(context, component, match, predicates_by_variable)
        _add_variables(bound_variables, [seed_scan.variable])
        yield seed_scan
    traversals_by_variable = _index_traversals(traversals)
    ready_heap = _reachable_traversals(
        traversals_by_variable, [variable for variable in traversals_by_variable if variable in bound_variables]
    )
    expanded: set[int] = set()
    while ready_heap:
        traversal_index = heappop(ready_heap)
        if traversal_index in expanded:
            continue
        expanded.add(traversal_index)
        bound_count = len(bound_variables)
        yield from _expand_traversal(context, traversals[traversal_index], predicates_by_variable, bound_variables)
        for ready_index in _reachable_traversals(traversals_by_variable, islice(bound_variables, bound_count, None)):
            heappush(ready_heap, ready_index)


def _index_traversals(traversals: list[CheckedTraversal]) -> dict[str, list[int]]:
    """Map each variable to the indexes of the traversals that start or end at it."""
    indexes_by_variable: dict[str, list[int]] = {}
    for traversal_index, traversal in enumerate(traversals):
        for variable in (traversal.source, traversal.target):
            if variable is not None:
                indexes_by_variable.setdefault(variable, []).append(traversal_index)
    return indexes_by_variable


def _reachable_traversals(traversals_by_variable: dict[str, list[int]], variables: Iterable[str]) -> list[int]:
    return sorted(
        traversal_index for variable in variables for traversal_index in traversals_by_variable.get(variable, ())
    )


def _gather_predicates(bindings: Iterable[CheckedBinding]) -> _PredicatesByVariable:
    """Return all predicates for each variable. A second binding of the same variable only adds predicates."""
    predicates_by_variable: _PredicatesByVariable = {}
    for binding in bindings:
        predicates_by_variable[binding.variable] = predicates_by_variable.get(binding.variable, ()) + binding.predicates
    return predicates_by_variable


def _choose_seed(
    context: _LoweringContext, component: Component, match: CheckedMatch, predicates_by_variable: _PredicatesByVariable
) -> tuple[plan.NodeScan, list[CheckedTraversal]]:
    """Return the scan that a component starts with, and the component's traversals.

    The scan finds the nodes of the first binding or, if there are no bindings, of the first named endpoint. If both
    endpoints of the first traversal are anonymous, its source gets a name.
    """
    traversals = list(component.traversals)
    if component.bindings:
        seed_variable = component.bindings[0].variable
        seed_type = match.node_types[seed_variable]
    else:
        first_traversal = traversals[0]
        if first_traversal.source is None and first_traversal.target is None:
            first_traversal = replace(first_traversal, source=next(context.fresh_names))
            traversals[0] = first_traversal
        seed_variable, seed_type = first_traversal.source or "", first_traversal.source_type
        if first_traversal.source is None and first_traversal.target is not None:
            seed_variable, seed_type = first_traversal.target, first_traversal.target_type
    scanned_types = implementers(context.catalog, seed_type)
    return plan.NodeScan(
        seed_variable, seed_type, predicates_by_variable.get(seed_variable, ()), scanned_types
    ), traversals


def _expand_traversal(
    context: _LoweringContext,
    traversal: CheckedTraversal,
    predicates_by_variable: _PredicatesByVariable,
    bound_variables: _VariableOrder,
) -> Iterator[plan.Operator]:
    is_reversed = traversal.source not in bound_variables
    if is_reversed:
        traversal = _reverse_traversal(traversal)
    closes_cycle = traversal.target is not None and traversal.target in bound_variables
    if traversal.path is not None:
        yield _find_paths(traversal, traversal.path, predicates_by_variable, is_reversed, closes_cycle)
        _add_variables(bound_variables, (None if closes_cycle else traversal.target, traversal.path.variable))
        return
    expand_target = next(context.fresh_names) if closes_cycle else traversal.target
    yield plan.Expand(
        source=traversal.source or "",
        target=expand_target,
        steps=traversal.steps,
        target_type=traversal.target_type,
        min_hops=traversal.min_hops,
        max_hops=traversal.max_hops,
        target_filters=predicates_by_variable.get(expand_target, ()) if expand_target is not None else (),
        edge_variable=traversal.edge_variable,
        edge_test=traversal.edge_test,
    )
    if closes_cycle and expand_target is not None and traversal.target is not None:
        yield plan.CloseCycle(expand_target, traversal.target)
    _add_variables(bound_variables, (traversal.edge_variable, None if closes_cycle else traversal.target))


def _find_paths(
    traversal: CheckedTraversal,
    path: CheckedPath,
    predicates_by_variable: _PredicatesByVariable,
    is_reversed: bool,
    closes_cycle: bool,
) -> plan.FindPaths:
    target_filters = predicates_by_variable.get(traversal.target, ()) if traversal.target is not None else ()
    return plan.FindPaths(
        source=traversal.source or "",
        target=None if closes_cycle else traversal.target,
        path=path.variable,
        mode=path.mode,
        steps=traversal.steps,
        node_type=traversal.target_type,
        min_hops=traversal.min_hops,
        max_hops=traversal.max_hops,
        closing=traversal.target if closes_cycle else None,
        backward=is_reversed,
        target_filters=() if closes_cycle else target_filters,
        edge_test=traversal.edge_test,
        cost=path.cost,
    )


def _reverse_traversal(traversal: CheckedTraversal) -> CheckedTraversal:
    return replace(
        traversal,
        source=traversal.target,
        target=traversal.source,
        source_type=traversal.target_type,
        target_type=traversal.source_type,
        steps=tuple(plan.PlanStep(step.edge_type, _REVERSED_DIRECTIONS[step.direction]) for step in traversal.steps),
    )
