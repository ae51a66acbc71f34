"""Clauses in textual order: the type of each variable, the direction of each edge.

Part of the oracle of the engine, with its own reading of the rules: it shares no code with the
checker. It trusts that the checker accepted the query.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.lang.query import model as m
from omnigraph.lang.schema.catalog import Catalog

Kinds = dict[str, str]  # variables with their node types or interfaces
Step = tuple[str, str]  # an edge type, and the way it is walked: out, in, both

_TURNED = {"out": "in", "in": "out", "both": "both"}


@dataclass(frozen=True)
class Walk:
    """A traversal with its direction decided; None is an anonymous end."""

    source: str | None
    target: str | None
    edge: str | None
    source_type: str
    target_type: str
    steps: tuple[Step, ...]
    low: int
    high: int
    tested: str = ""  # the name of the edge in `test`
    test: m.Condition | None = None
    path: m.PathPattern | None = None
    backward: bool = False

    def turned(self) -> "Walk":
        """The same traversal, walked from its other end."""
        steps = tuple((name, _TURNED[way]) for name, way in self.steps)
        ends = {"source": self.target, "target": self.source}
        kinds = {"source_type": self.target_type, "target_type": self.source_type}
        return replace(self, steps=steps, backward=not self.backward, **ends, **kinds)  # type: ignore[arg-type]


@dataclass
class Reading:
    """One list of clauses, read in textual order: what each variable is, which way each edge."""

    catalog: Catalog
    kinds: Kinds
    outside: frozenset[str]
    binds: list[m.Binding] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    visible: list[Kinds] = field(default_factory=list)  # what is known before each clause

    def take(self, clauses: Iterable[m.Clause], parameters: Mapping[str, Any]) -> None:
        """Read all clauses; nested lists only for the variables that they show."""
        shown = set(self.outside)
        for clause in clauses:
            self.visible.append({name: self.kinds.get(name, "") for name in shown})
            match clause:
                case m.Binding():
                    self.binds.append(clause)
                    self.narrow(clause.variable.name, clause.type_name.text)
                    shown.add(clause.variable.name)
                case m.Traversal():
                    shown |= self._walk(clause)
                case m.WordPair() if clause.left.name not in parameters:
                    shown |= self._walk(m.Traversal(clause.left, (clause.word,), clause.right))
                case m.OptionalMatch():
                    inner = Reading(self.catalog, dict(self.kinds), frozenset(shown))
                    inner.take(clause.clauses, parameters)
                    new = names_of(clause.clauses, parameters) - shown
                    self.kinds |= {name: inner.kinds.get(name, "") for name in new}
                    shown |= new

    def narrow(self, name: str, kind: str) -> None:
        """A variable is also of this type; of two types the narrower counts."""
        known = self.kinds.get(name)
        if known is None or self._is_a(kind, known):
            self.kinds[name] = kind

    def _is_a(self, kind: str, other: str) -> bool:
        node = self.catalog.node(kind)
        return kind == other or (node is not None and other in node.implements)

    def _walk(self, node: m.Traversal) -> set[str]:
        found = [self._way(node, word.text) for word in node.edges]
        source_type, target_type = found[0][1], found[0][2]
        hops = (node.hops.low, node.hops.high or 0) if node.hops is not None else (1, 1)
        ends = [_named(node.source), _named(node.target)]
        tested = node.edge_variable.name if node.edge_variable is not None else ""
        edge = _bound_edge(node)
        for name, kind in zip(ends, (source_type, target_type), strict=True):
            if name is not None:
                self.narrow(name, kind)
        steps = tuple((name, way) for name, _, _, way in found)
        if edge is not None:
            self.kinds[edge] = "|".join(name for name, _ in steps)
        types = (source_type, target_type)
        self.walks.append(Walk(ends[0], ends[1], edge, *types, steps, *hops, tested, node.edge_test, node.path))
        path = node.path.variable.name if node.path is not None else None
        return {name for name in (*ends, edge, path) if name is not None}

    def _way(self, node: m.Traversal, word: str) -> tuple[str, str, str, str]:
        edge = self.catalog.edge_ignoring_case(word)
        assert edge is not None
        name, one, other = edge.name, edge.source, edge.target
        if node.undirected:
            return name, one, other, "both"
        source, target = (self.kinds.get(end.name) for end in (node.source, node.target))
        backward = source is not None and not self._is_a(one, source)
        if source is None and target is not None:
            backward = not self._is_a(other, target)
        return (name, other, one, "in") if backward else (name, one, other, "out")


def names_of(clauses: Iterable[m.Clause], parameters: Mapping[str, Any]) -> set[str]:
    """The variables that clauses bind, those of `optional` parts included, `not` excluded."""
    return set(in_order(clauses, parameters))


def in_order(clauses: Iterable[m.Clause], parameters: Mapping[str, Any]) -> Iterator[str]:
    """The variables of clauses as the text names them, perhaps more than once."""
    for clause in clauses:
        ends: list[m.Variable | None] = []
        match clause:
            case m.Binding():
                ends = [clause.variable]
            case m.Traversal():
                edge = clause.edge_variable if _bound_edge(clause) is not None else None
                ends = [clause.source, edge, clause.target, clause.path.variable if clause.path is not None else None]
            case m.WordPair() if clause.left.name not in parameters:
                ends = [clause.left, clause.right]
            case m.OptionalMatch():
                yield from in_order(clause.clauses, parameters)
        yield from (one.name for one in ends if one is not None and one.name != "_")


def parts(reading: Reading) -> list[frozenset[str]]:
    """The connected parts: variables joined by traversals, in order of their first clause."""
    found: list[frozenset[str]] = []
    own = [frozenset([one.variable.name]) for one in reading.binds]
    for names in [*own, *(part_of(one) for one in reading.walks)]:
        touching = [one for one in found if one & names]
        found = [one for one in found if one not in touching]
        found.append(names.union(*touching))
    return found


def part_of(walk: Walk) -> frozenset[str]:
    """The variables that a traversal joins; one between nameless ends is a part of its own."""
    ends = {one for one in (walk.source, walk.target) if one is not None and one != "?"}
    return frozenset(ends) or frozenset([f"?{id(walk)}"])


def _bound_edge(node: m.Traversal) -> str | None:
    """The edge that a row holds: of several hops it holds none."""
    several = node.hops is not None and (node.hops.low, node.hops.high) != (1, 1)
    several = several or node.path is not None
    return None if several or node.edge_variable is None else _named(node.edge_variable)


def _named(variable: m.Variable) -> str | None:
    return None if variable.name == "_" else variable.name
