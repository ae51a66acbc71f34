"""Check traversals such as `$a knows $b`, `$a <knows> $b`, `$a $w:knows $b` and `$a knows{1,3} $b`.

This module checks edges, directions and hop bounds, and determines the types of the endpoints. The direction depends on
which variables are already bound when a clause is reached, so clauses must be checked in textual order.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record

from .bindings import check_bindable, narrow_variable
from .checked import CheckedClause, CheckedFilter, CheckedPath, CheckedTraversal
from .paths import (
    bind_path_variable,
    check_cost,
    check_edge_test,
    check_path_pattern,
    hide_edge_variable,
    spans_many_edges,
)
from .scope import ANONYMOUS, BrokenVariable, EdgeVariable, NodeVariable, Scope, narrower_type

MAX_HOPS = 1000


@record
class _EndpointTypes:
    """The types of a traversal's endpoints, in textual order."""

    source: str
    target: str


def check_traversal(scope: Scope, traversal: m.Traversal) -> list[CheckedClause]:
    """Return a traversal's checked clauses, or an empty list if the traversal is invalid."""
    edges = _resolve_edges(scope, traversal)
    hop_bounds = _check_hops(scope, traversal, edges or ())
    are_bindable = [_check_endpoint(scope, endpoint) for endpoint in (traversal.source, traversal.target)]
    edge_variable_ok = _check_edge_variable(scope, traversal)
    path_ok = check_path_pattern(scope, traversal, edges or ())
    endpoint_types = (
        _resolve_endpoint_types(scope, traversal, edges) if edges is not None and all(are_bindable) else None
    )
    if endpoint_types is None or edges is None or hop_bounds is None or not (edge_variable_ok and path_ok):
        _mark_variables_broken(scope, traversal)
        return []
    # Variables are bound in order of appearance.
    clauses = _narrow_endpoint(scope, traversal.source, endpoint_types.source)
    edge_plan_name = _bind_edge_variable(scope, traversal, edges)
    clauses += _narrow_endpoint(scope, traversal.target, endpoint_types.target)
    edge_test, checked_path = check_edge_test(scope, traversal), _check_path(scope, traversal, endpoint_types)
    if edge_test is not None and not spans_many_edges(traversal):
        clauses += [CheckedFilter(predicate) for predicate in edge_test.predicates]
        edge_test = None
    hide_edge_variable(scope, traversal)
    checked_traversal = CheckedTraversal(
        source=_endpoint_plan_name(scope, traversal.source),
        target=_endpoint_plan_name(scope, traversal.target),
        source_type=endpoint_types.source,
        target_type=endpoint_types.target,
        steps=_plan_steps(traversal, edges, endpoint_types),
        min_hops=hop_bounds[0],
        max_hops=hop_bounds[1],
        edge_variable=None if spans_many_edges(traversal) else edge_plan_name,
        edge_test=edge_test,
        path=checked_path,
        span=traversal.span,
    )
    return [*clauses, checked_traversal]


def _resolve_edges(scope: Scope, traversal: m.Traversal) -> tuple[EdgeType, ...] | None:
    resolved_edges: list[EdgeType] = []
    for edge_word in traversal.edges:
        edge = scope.catalog.edge_ignoring_case(edge_word.text)
        if edge is None:
            known_words = [known_edge.name[:1].lower() + known_edge.name[1:] for known_edge in scope.catalog.edges]
            hint = did_you_mean(edge_word.text, known_words)
            scope.report.error(edge_word.span, f"unknown edge `{edge_word.text}`", "T4", hint=hint)
        elif edge in resolved_edges:
            scope.report.error(edge_word.span, f"`{edge_word.text}` is listed twice")
        else:
            resolved_edges.append(edge)
    return tuple(resolved_edges) if len(resolved_edges) == len(traversal.edges) else None


def _check_hops(scope: Scope, traversal: m.Traversal, edges: tuple[EdgeType, ...]) -> tuple[int, int] | None:
    if traversal.hops is None:
        return 1, 1
    min_hops, max_hops = traversal.hops.low, traversal.hops.high
    problem = None
    if max_hops is None:
        problem = "the upper bound is missing"
    elif max_hops < min_hops:
        problem = f"the upper bound {max_hops} is below the lower bound {min_hops}"
    elif max_hops > MAX_HOPS:
        problem = f"the upper bound must be at most {MAX_HOPS:,}"
    elif min_hops == 0 and any(edge.source != edge.target for edge in edges):
        problem = "zero hops require an edge between nodes of the same type"
    if problem is not None or max_hops is None:
        scope.report.error(traversal.hops.span, str(problem), "T15", hint="write `{1,3}`")
        return None
    return min_hops, max_hops


def _check_endpoint(scope: Scope, endpoint: m.Variable) -> bool:
    if endpoint.name == ANONYMOUS:
        return True
    return check_bindable(scope, endpoint) and not isinstance(scope.variables.get(endpoint.name), BrokenVariable)


def _check_edge_variable(scope: Scope, traversal: m.Traversal) -> bool:
    """Return whether the edge variable is valid or absent. Report an error if it is invalid."""
    variable = traversal.edge_variable
    if variable is None or variable.name == ANONYMOUS:
        return True
    variable_name = variable.name
    problem: str | None = None
    code: str | None = "T23"
    if variable_name in (traversal.source.name, traversal.target.name):
        problem = f"`${variable_name}` cannot be both the edge and one of its endpoints"
    elif variable_name in scope.parameters:
        problem, code = f"`${variable_name}` is a parameter and cannot be bound", None
    elif variable_name in scope.variables:
        problem = f"`${variable_name}` is already bound"
    if problem is not None:
        scope.report.error(variable.span, problem, code)
    return problem is None


def _bound_type(scope: Scope, endpoint: m.Variable) -> str | None:
    bound_variable = scope.variables.get(endpoint.name)
    return bound_variable.type_name if isinstance(bound_variable, NodeVariable) else None


def _resolve_endpoint_types(scope: Scope, traversal: m.Traversal, edges: tuple[EdgeType, ...]) -> _EndpointTypes | None:
    if traversal.undirected and not _check_symmetric(scope, traversal, edges):
        return None
    source_type = _bound_type(scope, traversal.source)
    target_type = _bound_type(scope, traversal.target)
    resolved_types: list[_EndpointTypes] = []
    for edge, edge_word in zip(edges, traversal.edges, strict=True):
        endpoint_types = _orient_edge(scope.catalog, edge, source_type, target_type)
        if endpoint_types is None:
            _report_endpoint_mismatch(scope, traversal, edge, source_type)
            return None
        if resolved_types and not _joins_same_types(endpoint_types, resolved_types[0]):
            message = (
                f"{_describe_join(edge_word.text, endpoint_types)},"
                f" but {_describe_join(traversal.edges[0].text, resolved_types[0])}"
            )
            scope.report.error(edge_word.span, message, "T5")
            return None
        resolved_types.append(endpoint_types)
    return _check_bound_target(scope, traversal, resolved_types[0], target_type)


def _joins_same_types(left: _EndpointTypes, right: _EndpointTypes) -> bool:
    return (left.source, left.target) == (right.source, right.target)


def _describe_join(edge_word: str, endpoint_types: _EndpointTypes) -> str:
    return f"`{edge_word}` connects {endpoint_types.source} and {endpoint_types.target}"


def _check_symmetric(scope: Scope, traversal: m.Traversal, edges: tuple[EdgeType, ...]) -> bool:
    for edge, edge_word in zip(edges, traversal.edges, strict=True):
        if edge.source != edge.target:
            message = f"{edge.name} goes from {edge.source} to {edge.target}; "
            message += "only an edge between nodes of the same type can be undirected"
            scope.report.error(edge_word.span, message, "T22")
            return False
    return True


def _orient_edge(
    catalog: Catalog, edge: EdgeType, source_type: str | None, target_type: str | None
) -> _EndpointTypes | None:
    """Orient the edge forward or, if the bound endpoint's type does not allow that, backward.

    Return None if the type allows neither direction. If both endpoints are bound, only the source's type is considered.
    """
    if source_type is not None:
        if forward_type := narrower_type(catalog, source_type, edge.source):
            return _EndpointTypes(forward_type, edge.target)
        backward_type = narrower_type(catalog, source_type, edge.target)
        return _EndpointTypes(backward_type, edge.source) if backward_type else None
    if target_type is not None:
        if forward_type := narrower_type(catalog, target_type, edge.target):
            return _EndpointTypes(edge.source, forward_type)
        backward_type = narrower_type(catalog, target_type, edge.source)
        return _EndpointTypes(edge.target, backward_type) if backward_type else None
    return _EndpointTypes(edge.source, edge.target)


def _check_bound_target(
    scope: Scope, traversal: m.Traversal, endpoint_types: _EndpointTypes, target_type: str | None
) -> _EndpointTypes | None:
    """Return the endpoint types, or None if the target is already bound to an incompatible type."""
    if target_type is None:
        return endpoint_types
    narrowed_type = narrower_type(scope.catalog, target_type, endpoint_types.target)
    if narrowed_type is None:
        message = f"`${traversal.target.name}` has type {target_type}, but `{traversal.edges[0].text}` goes "
        message += f"from {endpoint_types.source} to {endpoint_types.target}"
        scope.report.error(traversal.target.span, message, "T5")
        return None
    return _EndpointTypes(endpoint_types.source, narrowed_type)


def _report_endpoint_mismatch(scope: Scope, traversal: m.Traversal, edge: EdgeType, source_type: str | None) -> None:
    endpoint = traversal.source if source_type is not None else traversal.target
    endpoint_type = _bound_type(scope, endpoint)
    message = f"`${endpoint.name}` has type {endpoint_type}, but {edge.name} goes from {edge.source} to {edge.target}"
    scope.report.error(endpoint.span, message, "T5")


def _plan_steps(
    traversal: m.Traversal, edges: tuple[EdgeType, ...], endpoint_types: _EndpointTypes
) -> tuple[plan.PlanStep, ...]:
    if traversal.undirected:
        return tuple(plan.PlanStep(edge.name, "both") for edge in edges)
    return tuple(
        plan.PlanStep(
            edge.name, "out" if (edge.source, edge.target) == (endpoint_types.source, endpoint_types.target) else "in"
        )
        for edge in edges
    )


def _narrow_endpoint(scope: Scope, endpoint: m.Variable, type_name: str) -> list[CheckedClause]:
    return narrow_variable(scope, endpoint.name, type_name) if endpoint.name != ANONYMOUS else []


def _bind_edge_variable(scope: Scope, traversal: m.Traversal, edges: tuple[EdgeType, ...]) -> str | None:
    variable = traversal.edge_variable
    if variable is None or variable.name == ANONYMOUS:
        return None
    plan_name = scope.plan_name(variable.name)
    scope.variables[variable.name] = EdgeVariable(plan_name, tuple(edge.name for edge in edges))
    return plan_name


def _endpoint_plan_name(scope: Scope, endpoint: m.Variable) -> str | None:
    bound_variable = scope.variables.get(endpoint.name)
    return bound_variable.name if bound_variable is not None else None


def _check_path(scope: Scope, traversal: m.Traversal, endpoint_types: _EndpointTypes) -> CheckedPath | None:
    cost = check_cost(scope, traversal)
    plan_name = bind_path_variable(scope, traversal, endpoint_types.target)
    if traversal.path is None or plan_name is None:
        return None
    return CheckedPath(plan_name, traversal.path.mode, cost)


def _mark_variables_broken(scope: Scope, traversal: m.Traversal) -> None:
    """Suppress further errors about variables that this clause should have bound."""
    path_variable = traversal.path.variable if traversal.path is not None else None
    for variable in (traversal.source, traversal.edge_variable, traversal.target, path_variable):
        if variable is None or variable.name == ANONYMOUS or variable.name in scope.parameters:
            continue
        scope.variables.setdefault(variable.name, BrokenVariable(scope.plan_name(variable.name)))
