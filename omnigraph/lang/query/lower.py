"""From a checked query to the plan that engines run.

Owns the order of operators. Per connected part: its seed is scanned, then each traversal follows as
soon as one end is there, the first in the text that is ready. Then filters, then `not`, `optional`
and the filters that need an `optional`, in textual order. Never looks at data or costs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.record import record

from . import plan
from .check.checked import Bind, CheckedRead, Clause, Keep, Match, Maybe, Walk, Without
from .check.scope import implementers
from .components import Component, components
from .free import needed_by, variables_of

_TURNED: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}
_Predicates = dict[str, tuple[plan.Predicate, ...]]


@record
class _Context:
    """The schema and a source of names that no query can spell."""

    catalog: Catalog
    fresh: Iterator[str]


def lower_read(checked: CheckedRead, catalog: Catalog) -> plan.ReadPlan:
    """The plan of a checked read."""
    context = _Context(catalog, (f"#{number}" for number in count(1)))
    return plan.ReadPlan(
        operators=tuple(_match(context, checked.match, [])),
        columns=checked.columns,
        variables=checked.match.introduced,
        aggregated=checked.aggregated,
        distinct=checked.distinct,
        order=checked.order,
        ranking=checked.ranking,
        limit=checked.limit,
        offset=checked.offset,
    )


def _match(context: _Context, match: Match, outside: list[str]) -> Iterator[plan.Operator]:
    """The operators of a list of clauses, for rows that hold the variables of `outside`."""
    there = list(outside)
    keeps = [one for one in match.clauses if isinstance(one, Keep)]
    # Types first: an id may occur in several types, and traversals trust the type of their source.
    kinds = [one for one in keeps if isinstance(one.predicate, plan.OfType)]
    yield from (plan.Filter(one.predicate) for one in kinds)
    for component in components(match, outside):
        yield from _component(context, component, match, there)
    early = [one for one in keeps if one not in kinds and _covered(one, there)]
    yield from (plan.Filter(one.predicate) for one in early)
    for clause in match.clauses:
        if clause not in kinds and clause not in early:
            yield from _late(context, clause, there)


def _covered(keep: Keep, there: list[str]) -> bool:
    return variables_of(keep.predicate) <= set(there)


def _late(context: _Context, clause: Clause, there: list[str]) -> Iterator[plan.Operator]:
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
            there += introduced


def _outer(inner: tuple[plan.Operator, ...], there: list[str]) -> tuple[str, ...]:
    needed = needed_by(inner)
    return tuple(name for name in there if name in needed)


def _component(
    context: _Context, component: Component, match: Match, there: list[str]
) -> Iterator[plan.Operator]:
    """Scan the seed, then walk; `there` grows by what is introduced."""
    predicates = _gathered(component.binds)
    for name in [one for one in predicates if one in there]:
        yield from (plan.Filter(one) for one in predicates[name])
    pending = list(component.walks)
    if not component.anchored:
        scan, pending = _seed(context, component, match, predicates)
        there.append(scan.variable)
        yield scan
    while pending:
        walk = next(one for one in pending if one.source in there or one.target in there)
        pending.remove(walk)
        yield from _expand(context, walk, predicates, there)


def _gathered(binds: Iterable[Bind]) -> _Predicates:
    """All predicates of a variable: binding it again only adds to them."""
    found: _Predicates = {}
    for bind in binds:
        found[bind.variable] = found.get(bind.variable, ()) + bind.predicates
    return found


def _seed(
    context: _Context, component: Component, match: Match, predicates: _Predicates
) -> tuple[plan.NodeScan, list[Walk]]:
    """The scan of the first binding; without one, of the first end that the text names."""
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
    context: _Context, walk: Walk, predicates: _Predicates, there: list[str]
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
    new = (walk.edge_variable, None if closing else walk.target)
    there += [name for name in new if name is not None]


def _turned(walk: Walk) -> Walk:
    return replace(
        walk,
        source=walk.target,
        target=walk.source,
        source_type=walk.target_type,
        target_type=walk.source_type,
        steps=tuple(plan.Step(one.edge_type, _TURNED[one.direction]) for one in walk.steps),
    )
