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


class Ties:
    """Names that are tied to one another, directly or through others.

    >>> ties = Ties()
    >>> ties.tie(["a", "b"]), ties.tie(["b", "c"]), ties.tie(["d"])
    (None, None, None)
    >>> ties.knot("a") == ties.knot("c"), ties.knot("a") == ties.knot("d")
    (True, False)
    """

    def __init__(self) -> None:
        self._next: dict[str, str] = {}

    def tie(self, names: Iterable[str]) -> None:
        """Tie all the names together."""
        first: str | None = None
        for name in names:
            knot = self.knot(name)
            first = first or knot
            self._next[knot] = first

    def knot(self, name: str) -> str:
        """The name that stands for all the names tied to this one."""
        while (above := self._next.setdefault(name, name)) != name:
            self._next[name] = self._next[above]  # halve the way for the next time
            name = above
        return name


def components(match: Match, outside: Iterable[str] = ()) -> tuple[Component, ...]:
    """The parts of one list of clauses; nested lists are not looked into."""
    known = frozenset(outside)
    clauses = [one for one in match.clauses if isinstance(one, Bind | Walk)]
    ties = Ties()
    for clause in clauses:
        ties.tie(_names(clause))
    groups: dict[str | int, list[Bind | Walk]] = {}
    for at, clause in enumerate(clauses):
        names = _names(clause)
        # A walk between anonymous ends is a part of its own.
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
