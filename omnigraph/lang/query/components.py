"""The connected parts of a `match`: variables joined by traversals.

Traversals to `$_` join nothing. Parts are in order of their first clause. Used by lowering to find
seeds and by lint to find cross products.
"""

from collections.abc import Iterable

from omnigraph.diagnostics import Span
from omnigraph.record import record

from .check.checked import Bind, Match, Walk


@record
class Component:
    """Variables that hang together, with their bindings and traversals in textual order.

    `anchored` says that a variable from outside is among them, so that no seed is needed.
    """

    variables: frozenset[str]
    binds: tuple[Bind, ...]
    walks: tuple[Walk, ...]
    anchored: bool
    span: Span


def components(match: Match, outside: Iterable[str] = ()) -> tuple[Component, ...]:
    """The parts of one list of clauses; nested lists are not looked into."""
    known = frozenset(outside)
    clauses = [one for one in match.clauses if isinstance(one, Bind | Walk)]
    groups: list[tuple[set[str], list[Bind | Walk]]] = []
    for clause in clauses:
        names = _names(clause)
        near = [group for group in groups if group[0] & names]
        if not near:
            groups.append((names, [clause]))
            continue
        home = near[0]
        for other in near[1:]:
            home[0].update(other[0])
            home[1].extend(other[1])
            groups.remove(other)
        home[0].update(names)
        home[1].append(clause)
    order = {id(clause): at for at, clause in enumerate(clauses)}
    return tuple(_component(names, inside, order, known) for names, inside in groups)


def _component(
    names: set[str], inside: list[Bind | Walk], order: dict[int, int], known: frozenset[str]
) -> Component:
    clauses = sorted(inside, key=lambda one: order[id(one)])
    return Component(
        variables=frozenset(names),
        binds=tuple(one for one in clauses if isinstance(one, Bind)),
        walks=tuple(one for one in clauses if isinstance(one, Walk)),
        anchored=bool(names & known),
        span=clauses[0].span,
    )


def _names(clause: Bind | Walk) -> set[str]:
    if isinstance(clause, Bind):
        return {clause.variable}
    return {end for end in (clause.source, clause.target) if end is not None}
