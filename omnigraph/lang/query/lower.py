"""Lower a checked query to the plan that engines run.

Owns the order of operators. For each connected component: scan its seed, then expand traversals,
always the first in the text that has a bound endpoint. Then come filters; then `not`, `optional`
and the filters that depend on an `optional`, in textual order. Never uses data or costs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.record import record

from . import plan
from .check.checked import Bind, CheckedRead, Clause, Keep, Match, Maybe, Walk, Without
from .check.scope import implementers
from .components import Component, components
from .free import needed_by, variables_of

_TURNED: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}
_Names = dict[str, int]  # variables and the order in which they are introduced
_Predicates = dict[str, tuple[plan.Predicate, ...]]


@record
class _Context:
    """The schema, and a source of variable names that no query can spell."""

    catalog: Catalog
    fresh: Iterator[str]


def lower_read(checked: CheckedRead, catalog: Catalog) -> plan.ReadPlan:
    """Return the plan of a checked read."""
    context = _Context(catalog, (f"#{number}" for number in count(1)))
    return plan.ReadPlan(
        operators=tuple(_match(context, checked.match, {})),
        columns=checked.columns,
        variables=checked.match.introduced,
        aggregated=checked.aggregated,
        distinct=checked.distinct,
        order=checked.order,
        ranking=checked.ranking,
        limit=checked.limit,
        offset=checked.offset,
    )


def _match(context: _Context, match: Match, outside: _Names) -> Iterator[plan.Operator]:
    """Yield the operators of a list of clauses, for rows that hold `outer_variables`."""
    there = dict(outside)
    rest: list[Clause] = [one for one in match.clauses if not isinstance(one, Bind | Walk)]
    # Type tests come first: an id may occur in several types, and traversals rely on the type of
    # their source.
    kinds, rest = _split(rest, lambda keep: isinstance(keep.predicate, plan.OfType))
    yield from (plan.Filter(one.predicate) for one in kinds)
    for component in components(match, outside):
        yield from _component(context, component, match, there)
    early, rest = _split(rest, lambda keep: variables_of(keep.predicate) <= there.keys())
    yield from (plan.Filter(one.predicate) for one in early)
    for clause in rest:
        yield from _late(context, clause, there)


def _split(
    clauses: list[Clause], chosen: Callable[[Keep], bool]
) -> tuple[list[Keep], list[Clause]]:
    """Return the filters that are selected, and all other clauses."""
    first: list[Keep] = []
    rest: list[Clause] = []
    for clause in clauses:
        if isinstance(clause, Keep) and chosen(clause):
            first.append(clause)
        else:
            rest.append(clause)
    return first, rest


def _late(context: _Context, clause: Clause, there: _Names) -> Iterator[plan.Operator]:
    match clause:
        case Keep():
            yield plan.Filter(clause.predicate)
        case Without():
            inner = tuple(_match(context, clause.match, there))
            yield plan.AntiJoin(_outer(inner, there), inner)
        case Maybe():
            inner = tuple(_match(context, clause.match, there))
            introduced = clause.match.introduced
            yield plan.LeftJoin(_outer(inner, there), inner, introduced)
            _add(there, introduced)


def _outer(inner: tuple[plan.Operator, ...], there: _Names) -> tuple[str, ...]:
    return tuple(sorted(needed_by(inner) & there.keys(), key=there.__getitem__))


def _add(there: _Names, names: Iterable[str | None]) -> None:
    for name in names:
        if name is not None:
            there[name] = len(there)


def _component(
    context: _Context, component: Component, match: Match, there: _Names
) -> Iterator[plan.Operator]:
    """Scan the seed, then expand; adds the introduced variables to `bound_variables`."""
    predicates = _gathered(component.binds)
    for name in [one for one in predicates if one in there]:
        yield from (plan.Filter(predicate) for predicate in predicates[name])
    walks = list(component.walks)
    if not component.anchored:
        scan, walks = _seed(context, component, match, predicates)
        _add(there, [scan.variable])
        yield scan
    waiting = _waiting(walks)
    ready = _awake(waiting, [name for name in waiting if name in there])
    done: set[int] = set()
    while ready:
        at = heappop(ready)
        if at in done:
            continue
        done.add(at)
        before = len(there)
        yield from _expand(context, walks[at], predicates, there)
        for number in _awake(waiting, islice(there, before, None)):
            heappush(ready, number)


def _waiting(walks: list[Walk]) -> dict[str, list[int]]:
    """Return, for each variable, the indexes of the traversals that start or end there."""
    found: dict[str, list[int]] = {}
    for at, walk in enumerate(walks):
        for name in (walk.source, walk.target):
            if name is not None:
                found.setdefault(name, []).append(at)
    return found


def _awake(waiting: dict[str, list[int]], names: Iterable[str]) -> list[int]:
    return sorted(number for name in names for number in waiting.get(name, ()))


def _gathered(binds: Iterable[Bind]) -> _Predicates:
    """Return all predicates of each variable: binding it again only adds predicates."""
    found: _Predicates = {}
    for bind in binds:
        found[bind.variable] = found.get(bind.variable, ()) + bind.predicates
    return found


def _seed(
    context: _Context, component: Component, match: Match, predicates: _Predicates
) -> tuple[plan.NodeScan, list[Walk]]:
    """Return the scan of the first binding; without bindings, of the first named endpoint."""
    walks = list(component.walks)
    if component.binds:
        name = component.binds[0].variable
        kind = match.node_types[name]
    else:
        first = walks[0]
        if first.source is None and first.target is None:
            first = replace(first, source=next(context.fresh))
            walks[0] = first
        name, kind = first.source or "", first.source_type
        if first.source is None and first.target is not None:
            name, kind = first.target, first.target_type
    scanned = implementers(context.catalog, kind)
    return plan.NodeScan(name, kind, predicates.get(name, ()), scanned), walks


def _expand(
    context: _Context, walk: Walk, predicates: _Predicates, there: _Names
) -> Iterator[plan.Operator]:
    if walk.source not in there:
        walk = _turned(walk)
    closing = walk.target is not None and walk.target in there
    target = next(context.fresh) if closing else walk.target
    yield plan.Expand(
        source=walk.source or "",
        target=target,
        steps=walk.steps,
        target_type=walk.target_type,
        min_hops=walk.low,
        max_hops=walk.high,
        target_filters=predicates.get(target, ()) if target is not None else (),
        edge_variable=walk.edge_variable,
    )
    if closing and target is not None and walk.target is not None:
        yield plan.Close(target, walk.target)
    _add(there, (walk.edge_variable, None if closing else walk.target))


def _turned(walk: Walk) -> Walk:
    return replace(
        walk,
        source=walk.target,
        target=walk.source,
        source_type=walk.target_type,
        target_type=walk.source_type,
        steps=tuple(plan.Step(one.edge_type, _TURNED[one.direction]) for one in walk.steps),
    )
