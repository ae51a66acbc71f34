"""The connected components of a `match`: groups of variables that are connected by traversals.

A traversal to `$_` does not connect variables. Components are sorted by the position of their first clause. Lowering
uses components to choose where to start scanning, and lint uses them to find cross products.
"""

from collections.abc import Iterable

from omnigraph.errors.diagnostics import Span
from omnigraph.records.frozen import record

from .check.checked import CheckedBinding, CheckedMatch, CheckedTraversal


@record
class Component:
    """A group of connected variables, with their bindings and traversals in textual order.

    `has_outer_variable` is true if one of the variables is bound outside the match. In that case, the plan starts from
    the rows that bind this variable, and the component needs no scan.
    """

    variables: frozenset[str]
    bindings: tuple[CheckedBinding, ...]
    traversals: tuple[CheckedTraversal, ...]
    has_outer_variable: bool
    span: Span


class ConnectedNames:
    """Names that are connected to one another, directly or indirectly (a union-find structure).

    >>> ties = ConnectedNames()
    >>> ties.connect(["a", "b"]), ties.connect(["b", "c"]), ties.connect(["d"])
    (None, None, None)
    >>> ties.find_root("a") == ties.find_root("c"), ties.find_root("a") == ties.find_root("d")
    (True, False)
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def connect(self, names: Iterable[str]) -> None:
        """Connect all `names` to one another."""
        shared_root: str | None = None
        for name in names:
            name_root = self.find_root(name)
            shared_root = shared_root or name_root
            self._parents[name_root] = shared_root

    def find_root(self, name: str) -> str:
        """Return the representative of all names connected to `name`."""
        while (parent := self._parents.setdefault(name, name)) != name:
            self._parents[name] = self._parents[parent]  # path halving makes later lookups faster
            name = parent
        return name


def find_components(match: CheckedMatch, outer_variables: Iterable[str] = ()) -> tuple[Component, ...]:
    """Return the components in one list of clauses, ignoring nested lists."""
    outer_set = frozenset(outer_variables)
    joining_clauses = [joining for joining in match.clauses if isinstance(joining, CheckedBinding | CheckedTraversal)]
    connected_names = ConnectedNames()
    for clause in joining_clauses:
        connected_names.connect(_clause_variables(clause))
    groups: dict[str | int, list[CheckedBinding | CheckedTraversal]] = {}
    for clause_index, clause in enumerate(joining_clauses):
        clause_variables = _clause_variables(clause)
        # A traversal between anonymous endpoints forms its own component.
        groups.setdefault(
            connected_names.find_root(clause_variables[0]) if clause_variables else clause_index, []
        ).append(clause)
    return tuple(_build_component(group_clauses, outer_set) for group_clauses in groups.values())


def _build_component(clauses: list[CheckedBinding | CheckedTraversal], outer_variables: frozenset[str]) -> Component:
    variables = frozenset(variable for clause in clauses for variable in _clause_variables(clause))
    return Component(
        variables=variables,
        bindings=tuple(clause for clause in clauses if isinstance(clause, CheckedBinding)),
        traversals=tuple(clause for clause in clauses if isinstance(clause, CheckedTraversal)),
        has_outer_variable=not variables.isdisjoint(outer_variables),
        span=clauses[0].span,
    )


def _clause_variables(clause: CheckedBinding | CheckedTraversal) -> list[str]:
    if isinstance(clause, CheckedBinding):
        return [clause.variable]
    return [endpoint for endpoint in (clause.source, clause.target) if endpoint is not None]
