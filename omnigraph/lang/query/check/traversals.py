"""Traversals: `$a knows $b`, `$a <knows> $b`, `$a $w:knows $b`, `$a knows{1,3} $b`.

Owns edges, directions, bounds and the types that endpoints get from them. The direction depends on
what is bound when a clause is reached, so clauses must be checked in textual order.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, Edge
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.record import record

from .bindings import may_bind, take_type
from .checked import Clause, Walk
from .scope import ANONYMOUS, Broken, EdgeVariable, NodeVariable, Scope, narrower

MOST_HOPS = 1000


@record
class _Way:
    """The types of the endpoints, in the order in which they are written."""

    source: str
    target: str


def traversal(scope: Scope, node: m.Traversal) -> list[Clause]:
    """Return the checked clauses of a traversal; none if it is invalid."""
    edges = _edges(scope, node)
    hops = _hops(scope, node)
    ends = [_endpoint(scope, end) for end in (node.source, node.target)]
    named = _edge_name(scope, node)
    way = _way(scope, node, edges) if edges is not None and all(ends) else None
    if way is None or edges is None or hops is None or not named:
        _give_up(scope, node)
        return []
    # Variables are bound in the order in which they appear.
    clauses = _take_type(scope, node.source, way.source)
    edge_name = _bind_edge(scope, node, edges)
    clauses += _take_type(scope, node.target, way.target)
    walk = Walk(
        source=_plan_name(scope, node.source),
        target=_plan_name(scope, node.target),
        source_type=way.source,
        target_type=way.target,
        steps=_steps(node, edges, way),
        low=hops[0],
        high=hops[1],
        edge_variable=edge_name,
        span=node.span,
    )
    return [*clauses, walk]


def _edges(scope: Scope, node: m.Traversal) -> tuple[Edge, ...] | None:
    found: list[Edge] = []
    for name in node.edges:
        edge = scope.catalog.edge_by_word(name.text)
        if edge is None:
            known = [one.name[:1].lower() + one.name[1:] for one in scope.catalog.edges]
            hint = did_you_mean(name.text, known)
            scope.report.error(name.span, f"unknown edge `{name.text}`", "T4", hint=hint)
        elif edge in found:
            scope.report.error(name.span, f"`{name.text}` is named twice")
        else:
            found.append(edge)
    return tuple(found) if len(found) == len(node.edges) else None


def _hops(scope: Scope, node: m.Traversal) -> tuple[int, int] | None:
    if node.hops is None:
        return 1, 1
    low, high = node.hops.low, node.hops.high
    problem = None
    if high is None:
        problem = "the upper bound is missing"
    elif low < 1:
        problem = "the lower bound must be at least 1"
    elif high < low:
        problem = f"the upper bound {high} is below the lower bound {low}"
    elif high > MOST_HOPS:
        problem = f"the upper bound must be at most {MOST_HOPS:,}"
    if problem is not None or high is None:
        scope.report.error(node.hops.span, str(problem), "T15", hint="write `{1,3}`")
        return None
    return low, high


def _endpoint(scope: Scope, end: m.Variable) -> bool:
    if end.name == ANONYMOUS:
        return True
    return may_bind(scope, end) and not isinstance(scope.variables.get(end.name), Broken)


def _edge_name(scope: Scope, node: m.Traversal) -> bool:
    """Whether the edge variable is valid or absent; report it if not."""
    variable = node.edge_variable
    if variable is None or variable.name == ANONYMOUS:
        return True
    name = variable.name
    problem: str | None = None
    code: str | None = "T23"
    if name in (node.source.name, node.target.name):
        problem = f"`${name}` cannot be both the edge and one of its endpoints"
    elif name in scope.parameters:
        problem, code = f"`${name}` is a parameter and cannot be bound", None
    elif name in scope.variables:
        problem = f"`${name}` is already bound"
    elif node.hops is not None and (node.hops.low, node.hops.high) != (1, 1):
        problem = "an edge variable is a single edge and cannot be combined with hop bounds"
    if problem is not None:
        scope.report.error(variable.span, problem, code)
    return problem is None


def _known(scope: Scope, end: m.Variable) -> str | None:
    bound = scope.variables.get(end.name)
    return bound.type_name if isinstance(bound, NodeVariable) else None


def _way(scope: Scope, node: m.Traversal, edges: tuple[Edge, ...]) -> _Way | None:
    if node.undirected and not _symmetric(scope, node, edges):
        return None
    source, target = _known(scope, node.source), _known(scope, node.target)
    ways: list[_Way] = []
    for edge, name in zip(edges, node.edges, strict=True):
        way = _orient(scope.catalog, edge, source, target)
        if way is None:
            _report_ends(scope, node, edge, source)
            return None
        if ways and (way.source, way.target) != (ways[0].source, ways[0].target):
            message = f"`{name.text}` joins {way.source} and {way.target}, "
            message += f"`{node.edges[0].text}` joins {ways[0].source} and {ways[0].target}"
            scope.report.error(name.span, message, "T5")
            return None
        ways.append(way)
    return _closed(scope, node, ways[0], target)


def _symmetric(scope: Scope, node: m.Traversal, edges: tuple[Edge, ...]) -> bool:
    for edge, name in zip(edges, node.edges, strict=True):
        if edge.source != edge.target:
            message = f"{edge.name} goes from {edge.source} to {edge.target}; "
            message += "only an edge within one type can be undirected"
            scope.report.error(name.span, message, "T22")
            return False
    return True


def _orient(catalog: Catalog, edge: Edge, source: str | None, target: str | None) -> _Way | None:
    """Orient the edge outward if the bound endpoint allows it, else inward; the source decides."""
    if source is not None:
        if out := narrower(catalog, source, edge.source):
            return _Way(out, edge.target)
        back = narrower(catalog, source, edge.target)
        return _Way(back, edge.source) if back else None
    if target is not None:
        if out := narrower(catalog, target, edge.target):
            return _Way(edge.source, out)
        back = narrower(catalog, target, edge.source)
        return _Way(edge.target, back) if back else None
    return _Way(edge.source, edge.target)


def _closed(scope: Scope, node: m.Traversal, way: _Way, target: str | None) -> _Way | None:
    """Return the endpoint types, unless the target is already bound to an incompatible type."""
    if target is None:
        return way
    narrowed = narrower(scope.catalog, target, way.target)
    if narrowed is None:
        message = f"`${node.target.name}` is a {target}, but `{node.edges[0].text}` goes "
        message += f"from {way.source} to {way.target}"
        scope.report.error(node.target.span, message, "T5")
        return None
    return _Way(way.source, narrowed)


def _report_ends(scope: Scope, node: m.Traversal, edge: Edge, source: str | None) -> None:
    end = node.source if source is not None else node.target
    kind = _known(scope, end)
    message = f"`${end.name}` is a {kind}, but {edge.name} goes from {edge.source} to {edge.target}"
    scope.report.error(end.span, message, "T5")


def _steps(node: m.Traversal, edges: tuple[Edge, ...], way: _Way) -> tuple[plan.Step, ...]:
    if node.undirected:
        return tuple(plan.Step(edge.name, "both") for edge in edges)
    return tuple(
        plan.Step(
            edge.name, "out" if (edge.source, edge.target) == (way.source, way.target) else "in"
        )
        for edge in edges
    )


def _take_type(scope: Scope, end: m.Variable, kind: str) -> list[Clause]:
    return take_type(scope, end.name, kind) if end.name != ANONYMOUS else []


def _bind_edge(scope: Scope, node: m.Traversal, edges: tuple[Edge, ...]) -> str | None:
    variable = node.edge_variable
    if variable is None or variable.name == ANONYMOUS:
        return None
    name = scope.plan_name(variable.name)
    scope.variables[variable.name] = EdgeVariable(name, tuple(edge.name for edge in edges))
    return name


def _plan_name(scope: Scope, end: m.Variable) -> str | None:
    bound = scope.variables.get(end.name)
    return bound.name if bound is not None else None


def _give_up(scope: Scope, node: m.Traversal) -> None:
    """Suppress later errors about variables that this clause should have bound."""
    for end in (node.source, node.edge_variable, node.target):
        if end is None or end.name == ANONYMOUS or end.name in scope.parameters:
            continue
        scope.variables.setdefault(end.name, Broken(scope.plan_name(end.name)))
