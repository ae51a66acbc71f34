"""Reference evaluation of a `match` on dictionaries, from the tree as written.

The oracle of the engine. It follows the text of the language reference step by step: seeds,
traversals as soon as one end is there, filters, `not`, `optional`. It knows neither plans nor
operators, is as slow as it is simple, and must stay so: a defect that it shares with the engine
would be found by nobody.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import QueryExecutionError
from omnigraph.lang.query import model as m

from .clause_reading import Kinds, Reading, Step, Walk, names_of, part_of, parts
from .dictionary_graph import Entity, Value, World
from .path_reference import FoundPath, found_paths
from .scalar_reference import computed
from .value_comparison import compared, contained, literal

Row = dict[str, Any]  # entities, paths, or nothing


class Unmodelled(Exception):  # noqa: N818 - nothing went wrong
    """The oracle has no opinion: search and ranking."""


@dataclass
class Matcher:
    """Evaluates lists of clauses on a graph."""

    world: World
    parameters: Mapping[str, Value]
    _near: dict[tuple[Step, Entity], list[tuple[Entity, Entity]]] = field(default_factory=dict)

    kinds: Kinds = field(default_factory=dict)

    def rows(self, clauses: tuple[m.Clause, ...]) -> list[Row]:
        """The bag of rows of a whole `match`; `kinds` are the types of its variables then."""
        rows, self.kinds = self.solve(clauses, {}, {})
        return rows

    def solve(self, clauses: tuple[m.Clause, ...], given: Row, kinds: Kinds) -> tuple[list[Row], Kinds]:
        """The rows that clauses allow beside one row of variables bound outside."""
        reading = Reading(self.world.catalog, dict(kinds), frozenset(given))
        reading.take(clauses, self.parameters)
        rows: list[Row] = [dict(given)]
        for names in parts(reading):
            rows = self._part(reading, names, rows)
        rows = [row for row in rows if all(self._bound(bind, row) for bind in reading.binds)]
        rows = [row for row in rows if self._typed(reading, row)]
        for clause, seen in zip(clauses, reading.visible, strict=True):
            rows = self._later(clause, rows, seen)
        return rows, reading.kinds

    # Seeds and traversals -----------------------------------------------------------------------

    def _part(self, reading: Reading, names: frozenset[str], rows: list[Row]) -> list[Row]:
        """One connected part: its seed unless it hangs on the outside, then its traversals."""
        walks = [one for one in reading.walks if part_of(one) == names or part_of(one) & names]
        if not names & reading.outside:
            seed, walks = self._seed(reading, names, walks)
            entities = self._nodes(reading.kinds.get(seed) or walks[0].source_type)
            rows = [row | {seed: one} for row in rows for one in entities]
            there = reading.outside | {seed}
        else:
            there = reading.outside
        while walks:
            at = next(at for at, one in enumerate(walks) if {one.source, one.target} & there)
            walk = walks.pop(at)
            rows = [new for row in rows for new in self._expand(walk, row, there)]
            path = walk.path.variable.name if walk.path is not None else None
            there |= {one for one in (walk.source, walk.target, walk.edge, path) if one is not None}
        return rows

    @staticmethod
    def _seed(reading: Reading, names: frozenset[str], walks: list[Walk]) -> tuple[str, list[Walk]]:
        """The first binding; without one the first end that is named; else a nameless one."""
        bound = [one.variable.name for one in reading.binds if one.variable.name in names]
        if bound:
            return bound[0], walks
        first = walks[0]
        named = first.source or first.target
        return named or "?", walks if named else [replace(first, source="?"), *walks[1:]]

    def _nodes(self, kind: str) -> list[Entity]:
        catalog = self.world.catalog
        names = [one.name for one in catalog.nodes if one.name == kind or kind in one.implements]
        return [(name, own) for name in names for own in self.world.nodes[name]]

    def _expand(self, walk: Walk, row: Row, there: frozenset[str]) -> Iterator[Row]:
        if walk.source not in there:
            walk = walk.turned()
        start = row.get(walk.source or "")
        if start is None:
            return
        closes = walk.target is not None and walk.target in there
        if walk.path is not None:
            for path in self._paths(walk, start):
                end = path.nodes[0 if walk.backward else -1]
                if not closes or row[walk.target or ""] == end:
                    yield row | ({walk.target: end} if walk.target else {}) | {walk.path.variable.name: path}
            return
        for edge, end in self._reached(walk, start):
            if closes and row[walk.target or ""] != end:
                continue
            new: Row = row if walk.target is None else row | {walk.target: end}
            yield new if walk.edge is None else new | {walk.edge: edge}

    def _reached(self, walk: Walk, start: Entity) -> list[tuple[Entity | None, Entity]]:
        if walk.edge is not None:
            return [*self._passing(walk, start)]
        high = walk.high if walk.source_type == walk.target_type else min(walk.high, 1)
        visited, frontier = {start}, [start]
        emitted: dict[Entity, None] = {} if walk.low else {start: None}
        for hop in range(1, high + 1):
            entered: list[Entity] = []
            for node in frontier:
                for end in self._ends(walk, node):
                    if end != node and end in visited:
                        continue
                    if hop >= walk.low:
                        emitted[end] = None
                    if end != node:
                        visited.add(end)
                        entered.append(end)
            frontier = entered
        return [(None, end) for end in emitted]

    def _ends(self, walk: Walk, node: Entity) -> dict[Entity, None]:
        return dict.fromkeys(end for _, end in self._passing(walk, node))

    def _passing(self, walk: Walk, node: Entity) -> list[tuple[Entity, Entity]]:
        """Every edge at a node that the traversal may follow, with its other end."""
        pairs = [pair for step in walk.steps for pair in self._neighbors(step, node)]
        if walk.test is None:
            return pairs
        return [pair for pair in pairs if self.truth(walk.test, {walk.tested: pair[0]}) is True]

    def _paths(self, walk: Walk, start: Entity) -> list[FoundPath]:
        assert walk.path is not None
        by = walk.path.cost
        cost = None if by is None else (lambda edge: self._cost(edge, by.name))
        hops = (walk.low, walk.high)
        return found_paths(
            start, walk.path.mode, hops, lambda node: self._passing(walk, node), cost, backward=walk.backward
        )

    def _cost(self, edge: Entity, name: str) -> Value:
        held = self.property(edge, name)
        if held is not None and held < 0:
            raise QueryExecutionError(reason="a cost is negative")
        return held

    def _neighbors(self, step: Step, node: Entity) -> list[tuple[Entity, Entity]]:
        if (step, node) not in self._near:
            self._near[step, node] = list(self._look(step, node))
        return self._near[step, node]

    def _look(self, step: Step, node: Entity) -> Iterator[tuple[Entity, Entity]]:
        """Every edge at a node with its other end; an undirected self-loop is there once."""
        name, way = step
        edge = self.world.catalog.edge(name)
        assert edge is not None
        for own, row in self.world.edges[name].items():
            source, target = (edge.source, row["from"]), (edge.target, row["to"])
            if way in ("out", "both") and source == node:
                end = target
            elif way in ("in", "both") and target == node:
                end = source
            else:
                continue
            if end[1] in self.world.nodes[end[0]]:
                yield (name, own), end

    # Conditions ---------------------------------------------------------------------------------

    def _bound(self, bind: m.Binding, row: Row) -> bool:
        """A binding holds for a node that has all its values; a missing node is none."""
        entity = row[bind.variable.name]
        return entity is not None and all(self._inline(one, entity) for one in bind.predicates)

    def _inline(self, test: m.InlinePredicate, entity: Entity) -> bool:
        held, wanted = self.property(entity, test.name.text), self.value(test.value, {})
        if isinstance(test.value, m.Literal) and test.value.kind == "null":
            return held is None
        if held is None or wanted is None:
            return False
        return bool(wanted in held if isinstance(held, tuple) else held == wanted)

    def _typed(self, reading: Reading, row: Row) -> bool:
        """A variable of an interface that a clause narrows must be of the narrower type."""
        for name, kind in reading.kinds.items():
            entity = row.get(name)
            if entity is None or not kind or not self.world.catalog.node(kind):
                continue
            if entity[0] != kind:
                return False
        return True

    def _later(self, clause: m.Clause, rows: list[Row], seen: Kinds) -> list[Row]:
        match clause:
            case m.Filter():
                return [row for row in rows if self.truth(clause.condition, row) is True]
            case m.WordPair() if clause.left.name in self.parameters:
                test = _pair_test(clause)
                return [row for row in rows if self.truth(test, row) is True]
            case m.Negation():
                return [row for row in rows if not self._inner(clause.clauses, row, seen)]
            case m.OptionalMatch():
                new = names_of(clause.clauses, self.parameters) - seen.keys()
                nothing: Row = dict.fromkeys(new)
                extended: list[Row] = []
                for row in rows:
                    found = self._inner(clause.clauses, row, seen) or [nothing]
                    extended += [row | {name: one[name] for name in new} for one in found]
                return extended
        return rows

    def _inner(self, clauses: tuple[m.Clause, ...], row: Row, seen: Kinds) -> list[Row]:
        """The rows of a nested list: it sees what was bound before it, as it was known there."""
        given = {name: one for name, one in row.items() if name in seen}
        kinds = {name: kind for name, kind in seen.items() if kind}
        return self.solve(clauses, given, kinds)[0]

    def truth(self, test: m.Condition, row: Row) -> bool | None:  # noqa: PLR0911 - one return per kind
        """Three-valued: None is unknown."""
        match test:
            case m.And():
                found = [self.truth(one, row) for one in test.items]
                return False if False in found else None if None in found else True
            case m.Or():
                found = [self.truth(one, row) for one in test.items]
                return True if True in found else None if None in found else False
            case m.Not():
                inner = self.truth(test.item, row)
                return None if inner is None else not inner
            case m.IsNull():
                return (self.value(test.operand, row) is None) is not test.negated
            case m.Membership():
                return contained(self.value(test.operand, row), self.value(test.items, row))
            case m.Comparison():
                left, right = self.value(test.left, row), self.value(test.right, row)
                return compared(left, test.operator, right)
            case m.Truth():
                held = self.value(test.value, row)
                return None if held is None else bool(held)
        raise Unmodelled

    def value(self, node: m.Expression, row: Row) -> Value:
        """The value of an expression for one row."""
        match node:
            case m.Literal():
                return literal(node)
            case m.ListLiteral():
                return tuple(literal(one) for one in node.items)
            case m.Now():
                return self.parameters["__now"]
            case m.Variable():
                return self.parameters[node.name] if node.name in self.parameters else row[node.name]
            case m.Field():
                entity = row[node.variable]
                return None if entity is None else self.property(entity, node.name)
            case m.Arithmetic() | m.Negative() | m.ScalarCall() | m.Case():
                return computed(node, lambda one: self.value(one, row), lambda one: self.truth(one, row))
        raise Unmodelled

    def property(self, entity: Entity, name: str) -> Value:
        """A property, the id, or an end of an edge."""
        kind, own = entity
        if name == "id":
            return own
        edge = self.world.catalog.node(kind) is None
        return (self.world.edges if edge else self.world.nodes)[kind][own][name]


def _pair_test(pair: m.WordPair) -> m.Condition:
    if pair.word.text == "in":
        return m.Membership(pair.left, pair.right)
    operator: m.ComparisonOperator = "contains" if pair.word.text == "contains" else "starts_with"
    return m.Comparison(pair.left, operator, pair.right)
