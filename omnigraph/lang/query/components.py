"""The connected components of a `match`: variables connected by traversals.

A traversal to `$_` connects nothing. Components are in the order of their first clause. Lowering
uses them to choose seeds, lint to find cross products.
"""

from collections.abc import Iterable

from omnigraph.diagnostics import Span
from omnigraph.record import record

from .check.checked import Bind, Match, Walk


@record
class Component:
    """Connected variables, with their bindings and traversals in textual order.

    `has_outer_variable` says that one of them is bound outside, so that no seed is needed.
    """

    variables: frozenset[str]
    binds: tuple[Bind, ...]
    walks: tuple[Walk, ...]
    anchored: bool
    span: Span


class Ties:
    """Names that are connected to one another, directly or through others (a union-find).

    >>> ties = Ties()
    >>> ties.tie(["a", "b"]), ties.tie(["b", "c"]), ties.tie(["d"])
    (None, None, None)
    >>> ties.knot("a") == ties.knot("c"), ties.knot("a") == ties.knot("d")
    (True, False)
    """

    def __init__(self) -> None:
        self._next: dict[str, str] = {}

    def tie(self, names: Iterable[str]) -> None:
        """Connect all the names to one another."""
        first: str | None = None
        for name in names:
            knot = self.knot(name)
            first = first or knot
            self._next[knot] = first

    def knot(self, name: str) -> str:
        """Return the name that represents all names connected to this one."""
        while (above := self._next.setdefault(name, name)) != name:
            self._next[name] = self._next[above]  # path halving keeps later lookups short
            name = above
        return name


def components(match: Match, outside: Iterable[str] = ()) -> tuple[Component, ...]:
    """Return the components of one list of clauses; nested lists are ignored."""
    known = frozenset(outside)
    clauses = [one for one in match.clauses if isinstance(one, Bind | Walk)]
    ties = Ties()
    for clause in clauses:
        ties.tie(_names(clause))
    groups: dict[str | int, list[Bind | Walk]] = {}
    for at, clause in enumerate(clauses):
        names = _names(clause)
        # A traversal between anonymous endpoints is a component of its own.
        groups.setdefault(ties.knot(names[0]) if names else at, []).append(clause)
    return tuple(_component(inside, known) for inside in groups.values())


def _component(clauses: list[Bind | Walk], known: frozenset[str]) -> Component:
    variables = frozenset(name for one in clauses for name in _names(one))
    return Component(
        variables=variables,
        binds=tuple(one for one in clauses if isinstance(one, Bind)),
        walks=tuple(one for one in clauses if isinstance(one, Walk)),
        anchored=not variables.isdisjoint(known),
        span=clauses[0].span,
    )


def _names(clause: Bind | Walk) -> list[str]:
    if isinstance(clause, Bind):
        return [clause.variable]
    return [end for end in (clause.source, clause.target) if end is not None]
