"""Merges of graphs as plain dictionaries: the merge model of the oracles.

A graph is `{"node:Person": {id: row}, "edge:Knows": {id: row}}`; edges have `src` and `dst`.
Nothing here knows how the product compares, stores or finds anything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Graph = dict[str, dict[str, Row]]
Entity = tuple[str, str]
Conflict = tuple[str, str, str]  # kind, table, id
DOUBT = object()  # bases that contradict each other


@dataclass(frozen=True)
class Rules:
    """What a graph must obey: the node types of edges, unique columns, numbers of edges."""

    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unique: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Outcome:
    """What became of a merge."""

    outcome: str
    graph: Graph
    conflicts: set[Conflict] = field(default_factory=set)


class History:
    """Commits with their parents and graphs, and where branches stand."""

    def __init__(self, first: Graph, rules: Rules) -> None:
        self.rules = rules
        self.parents: dict[int, tuple[int, ...]] = {0: ()}
        self.graphs: dict[int, Graph] = {0: first}
        self.heads: dict[str, int] = {"main": 0}

    def graph(self, branch: str) -> Graph:
        """What a branch shows; a copy."""
        return _copy(self.graphs[self.heads[branch]])

    def fork(self, name: str, source: str = "main") -> None:
        """A new branch."""
        self.heads[name] = self.heads[source]

    def commit(self, branch: str, graph: Graph, *merged: int) -> None:
        """A new state of a branch."""
        number = len(self.parents)
        self.parents[number] = (self.heads[branch], *merged)
        self.graphs[number] = _copy(graph)
        self.heads[branch] = number

    def merge(
        self,
        source: str,
        target: str = "main",
        side: str | None = None,
        *,
        by_property: bool = False,
        try_only: bool = False,
    ) -> Outcome:
        """Merge a branch; nothing happens when a conflict is left."""
        theirs, ours = self.heads[source], self.heads[target]
        if theirs in self.ancestors(ours):
            return Outcome("already_up_to_date", self.graph(target))
        bases = self.bases([ours], [theirs])
        word = "fast_forward" if bases == [ours] else "merged"
        three = self.graphs[ours], self.graphs[theirs], lambda e: self._virtual(bases, e)
        found = _merge(*three, self.rules, side, by_property)
        if not found.conflicts and not try_only:
            self.commit(target, found.graph, theirs)
        return Outcome("conflict" if found.conflicts else word, found.graph, found.conflicts)

    def ancestors(self, *commits: int) -> set[int]:
        """Commits and all that they stand on."""
        seen: set[int] = set()
        waiting = list(commits)
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                waiting += self.parents[at]
        return seen

    def bases(self, one: list[int], other: list[int]) -> list[int]:
        """The best common ancestors: those that no other common one stands on."""
        shared = self.ancestors(*one) & self.ancestors(*other)
        return sorted(c for c in shared if not any(c in self.ancestors(d) - {d} for d in shared))

    def _virtual(self, bases: list[int], entity: Entity) -> Any:
        """The value of an entity in the merge of all bases."""
        value: Any = _get(self.graphs[bases[0]], entity)
        for at in range(1, len(bases)):
            other = _get(self.graphs[bases[at]], entity)
            if value is DOUBT or value == other:
                continue
            below = self._virtual(self.bases(bases[:at], [bases[at]]), entity)
            if below is not DOUBT and value == below:
                value = other
            elif below is DOUBT or other != below:
                value = DOUBT
        return value


def _merge(ours: Graph, theirs: Graph, base: Any, rules: Rules, side: str | None, by_property: bool) -> Outcome:
    """Decide entity by entity, then look at the whole; a side is chosen until nothing is left."""
    chosen: dict[Entity, str] = {}
    sides = {"ours": ours, "theirs": theirs}
    while True:
        graph, found = _copy(ours), {}
        for entity in _entities(ours, theirs):
            value, kind = _decide(base(entity), _get(ours, entity), _get(theirs, entity), by_property)
            if entity in chosen:
                mixed = value if by_property else None
                value = _chosen(chosen[entity], mixed, sides, entity, base(entity), kind)
            elif kind:
                found[(kind, *entity)] = [entity]
            _put(graph, entity, value)
        found |= _broken(graph, ours, theirs, rules)
        more = {e for involved in found.values() for e in involved if e not in chosen}
        if not side or not more:
            return Outcome("", graph, set(found))
        chosen |= dict.fromkeys(more, side)


def _decide(base: Any, ours: Any, theirs: Any, by_property: bool) -> tuple[Any, str | None]:
    """The truth table."""
    if ours == theirs:
        return ours, None
    if base is not DOUBT and base in (ours, theirs):
        return (theirs if ours == base else ours), None
    if ours is None or theirs is None:
        return ours, "delete_vs_update"
    if base is None:
        return ours, "divergent_insert"
    if by_property and base is not DOUBT:
        clash = [n for n in ours if len({_key(r[n]) for r in (base, ours, theirs)}) == 3]
        mixed = {n: theirs[n] if _key(ours[n]) == _key(base[n]) else ours[n] for n in ours}
        return mixed, "divergent_update" if clash else None
    return ours, "divergent_update"


def _chosen(side: str, mixed: Any, sides: dict[str, Graph], entity: Entity, was: Any, kind: Any) -> Any:
    """What an entity becomes when a side is chosen; `mixed` has the properties of both."""
    if mixed is None or kind != "divergent_update" or was is DOUBT:
        return _get(sides[side], entity)
    ours, theirs = (_get(sides[name], entity) or {} for name in ("ours", "theirs"))
    clash = {n for n in ours if len({_key(r[n]) for r in (was, ours, theirs)}) == 3}
    return {n: theirs[n] if n in clash and side == "theirs" else mixed[n] for n in mixed}


def _broken(graph: Graph, ours: Graph, theirs: Graph, rules: Rules) -> dict[Conflict, list[Entity]]:
    """Rules that the whole breaks, each with the entities that it is about."""
    found = _orphans(graph, rules)
    for key, columns in rules.unique.items():
        for column in columns:
            for holders in _grouped(graph[key], column).values():
                if len(holders) > 1:
                    found["unique_violation", key, column] = [(key, one) for one in holders]
    for key, high in rules.at_most.items():
        for node, edges in _grouped(graph[key], "src").items():
            if len(edges) > high:
                every = {**_by(ours[key], node), **_by(theirs[key], node)}
                changed = [e for e in every if ours[key].get(e) != theirs[key].get(e)]
                found["cardinality_violation", key, node] = [(key, one) for one in changed]
    return found


def _orphans(graph: Graph, rules: Rules) -> dict[Conflict, list[Entity]]:
    found: dict[Conflict, list[Entity]] = {}
    for key, nodes in rules.ends.items():
        for edge, row in graph[key].items():
            for column, node in zip(("src", "dst"), nodes, strict=True):
                if row[column] not in graph[node]:
                    about = found.setdefault(("orphan_edge", key, edge), [(key, edge)])
                    about.append((node, row[column]))
    return found


def _by(rows: dict[str, Row], node: str) -> dict[str, Row]:
    return {one: row for one, row in rows.items() if row["src"] == node}


def _grouped(rows: dict[str, Row], column: str) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for one, row in rows.items():
        if row[column] is not None:
            found.setdefault(row[column], []).append(one)
    return found


def _entities(*graphs: Graph) -> Iterable[Entity]:
    return sorted({(key, one) for graph in graphs for key, rows in graph.items() for one in rows})


def _get(graph: Graph, entity: Entity) -> Row | None:
    return graph[entity[0]].get(entity[1])


def _put(graph: Graph, entity: Entity, row: Row | None) -> None:
    graph[entity[0]].pop(entity[1], None)
    if row is not None:
        graph[entity[0]][entity[1]] = dict(row)


def _copy(graph: Graph) -> Graph:
    return {key: {one: dict(row) for one, row in rows.items()} for key, rows in graph.items()}


def _key(value: Any) -> str:
    return repr(value)
