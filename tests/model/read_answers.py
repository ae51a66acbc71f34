"""Columns, groups, order and limits of a read, on the rows of the oracle.

Part of the oracle of the engine: bags become lists here, by the rules for ties and nulls.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.lang.query import model as m
from omnigraph.lang.query.column_names import column_name
from omnigraph.lang.schema.catalog import PropertyDefinition

from .clause_reading import in_order
from .dictionary_graph import Entity, Value, World
from .match_reference import Matcher, Row, Unmodelled
from .path_reference import FoundPath
from .scalar_reference import computed


@dataclass(frozen=True)
class Answer:
    """The columns and rows of a read, in order."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]


@dataclass
class _Line:
    """A row to come: its values, the rows behind it, and what its order follows."""

    values: tuple[Value, ...]
    rows: list[Row]


def answer(world: World, body: m.ReadBody | m.UnionBody, parameters: Mapping[str, Value]) -> Answer:
    """What a read or a union of reads gives."""
    if isinstance(body, m.UnionBody):
        return _union(world, body, parameters)
    nodes = [one.expression for one in body.projections]
    nodes += [one.expression for one in body.orderings]
    if any(isinstance(one, m.Call) for one in nodes):
        raise Unmodelled
    matcher = Matcher(world, parameters)
    names = list(dict.fromkeys(in_order(body.clauses, parameters)))
    rows = sorted(matcher.rows(body.clauses), key=lambda row: [_place(row[n]) for n in names])
    reader = _Reader(matcher, body, names)
    lines = reader.grouped(rows) if reader.aggregated else reader.plain(rows)
    if body.distinct:
        first: dict[Any, _Line] = {}
        for one in lines:
            first.setdefault(_same(one.values), one)
        lines = list(first.values())
    low = _amount(body.offset, parameters) or 0
    high = _amount(body.limit, parameters)
    kept = lines[low:] if high is None else lines[low : low + high]
    return Answer(tuple(map(column_name, body.projections)), [one.values for one in kept])


def _union(world: World, body: m.UnionBody, parameters: Mapping[str, Value]) -> Answer:
    """The rows of all parts, one after another; ties of the order stay as they are."""
    parts = [answer(world, part, parameters) for part in body.parts]
    columns = parts[0].columns
    rows = [row for part in parts for row in part.rows]
    if not body.keeps_duplicates:
        first: dict[Any, tuple[Value, ...]] = {}
        for row in rows:
            first.setdefault(_same(row), row)
        rows = list(first.values())
    for ordering in reversed(body.orderings):
        assert isinstance(ordering.expression, m.Alias)
        at = columns.index(ordering.expression.name)
        rows.sort(key=lambda row, at=at: _shown_key(row[at]), reverse=ordering.direction == "desc")  # type: ignore[misc]
    low = _amount(body.offset, parameters) or 0
    high = _amount(body.limit, parameters)
    return Answer(columns, rows[low:] if high is None else rows[low : low + high])


def _shown_key(value: Value) -> Any:
    """A value of a result as a sort key: a whole node by its id, nulls first."""
    value = value["id"] if isinstance(value, dict) else value
    return (value is not None, value if value is not None else 0)


@dataclass
class _Reader:
    """Evaluates the columns and sort keys of one read."""

    matcher: Matcher
    body: m.ReadBody
    names: list[str]

    @property
    def aggregated(self) -> bool:
        having = () if self.body.having is None else _operands(self.body.having)
        nodes = [*(one.expression for one in self.body.projections), *having]
        return any(map(_aggregated, nodes))

    def plain(self, rows: list[Row]) -> list[_Line]:
        """One line for each row; ties of an order go by ids, in the order of variable names."""
        lines = [_Line(self._values([row]), [row]) for row in rows]
        if self.body.orderings:
            lines.sort(key=lambda one: [_place(one.rows[0][n]) for n in sorted(self.names)])
        return self._sorted(lines)

    def grouped(self, rows: list[Row]) -> list[_Line]:
        """One line for each group; ties of an order go by the values of the keys."""
        keys = [one for one in self.body.projections if not _aggregated(one.expression)]
        groups: dict[Any, list[Row]] = {} if keys else {(): []}
        for row in rows:
            found = tuple(self._shown(one.expression, [row]) for one in keys)
            groups.setdefault(_same(found), []).append(row)
        lines = [_Line(self._values(group), group) for group in groups.values() if self._kept(group)]
        if self.body.orderings:
            lines.sort(key=lambda one: [self._key(key.expression, one) for key in keys])
        return self._sorted(lines)

    def _kept(self, rows: list[Row]) -> bool:
        """Whether a group passes `having`; its bare words are columns."""
        if self.body.having is None:
            return True
        matcher = _GroupMatcher(self.matcher.world, self.matcher.parameters, reader=self, group=rows)
        return matcher.truth(self.body.having, rows[0] if rows else {}) is True

    def column(self, name: str) -> m.Expression:
        """The expression behind the name of a column."""
        names = [column_name(one) for one in self.body.projections]
        return self.body.projections[names.index(name)].expression

    def _sorted(self, lines: list[_Line]) -> list[_Line]:
        for ordering in reversed(self.body.orderings):
            key = self._sort_key(ordering.expression)
            lines.sort(key=key, reverse=ordering.direction == "desc")
        return lines

    def _sort_key(self, node: m.Expression) -> Callable[[_Line], Any]:
        return lambda line: self._key(node, line)

    def _key(self, node: m.Expression, line: _Line) -> Any:
        if isinstance(node, m.Alias):
            at = [column_name(one) for one in self.body.projections].index(node.name)
            node = self.body.projections[at].expression
        found = self._value(node, line.rows)
        if isinstance(node, m.Variable) and node.name not in self.matcher.parameters:
            found = _place(found) if isinstance(found, FoundPath) else None if found is None else found[1]
        return (found is not None, found if found is not None else 0)

    def _values(self, rows: list[Row]) -> tuple[Value, ...]:
        return tuple(self._shown(one.expression, rows) for one in self.body.projections)

    def _shown(self, node: m.Expression, rows: list[Row]) -> Value:
        """A value as a result shows it: a whole node as an object."""
        found = self._value(node, rows)
        if isinstance(node, m.Variable) and node.name not in self.matcher.parameters:
            if isinstance(found, FoundPath):
                return self._path(found)
            return None if found is None else self._object(found, self.matcher.kinds[node.name])
        return found

    def _object(self, entity: Entity, declared: str) -> dict[str, Value]:
        """A whole node, with the properties of the type or interface of its variable, or a whole edge."""
        kind, own = entity
        catalog = self.matcher.world.catalog
        if catalog.node(kind) is None:
            return self._edge_object(entity, declared.split("|"))
        shape = catalog.node(declared) or catalog.interface(declared)
        assert shape is not None
        held = self.matcher.world.nodes[kind][own]
        names = [one.name for one in shape.properties if one.type.scalar.value != "Blob"]
        return {"id": own, "type": kind} | {name: held[name] for name in names}

    def _edge_object(self, entity: Entity, edge_types: list[str]) -> dict[str, Value]:
        """A whole edge with both ends and the properties that all types of its variable share."""
        shapes = [{one.name: one.type.as_nullable(True) for one in self._edge_properties(name)} for name in edge_types]
        shared = [name for name, kind in shapes[0].items() if all(shape.get(name) == kind for shape in shapes)]
        identity = {"id": entity[1], "type": entity[0]}
        return identity | {name: self.matcher.property(entity, name) for name in ("from", "to", *shared)}

    def _edge_properties(self, name: str) -> list[PropertyDefinition]:
        edge = self.matcher.world.catalog.edge(name)
        assert edge is not None
        return [one for one in edge.properties if one.type.scalar.value != "Blob"]

    def _path(self, path: FoundPath) -> dict[str, Value]:
        """A whole path; its edges with both ends."""
        edges = [
            {"id": own, "type": kind, **{end: self.matcher.property((kind, own), end) for end in ("from", "to")}}
            for kind, own in path.edges
        ]
        nodes = [{"id": own, "type": kind} for kind, own in path.nodes]
        return {"length": len(edges), "nodes": nodes, "edges": edges}

    def _value(self, node: m.Expression, rows: list[Row]) -> Value:
        if isinstance(node, m.Aggregate):
            return self.aggregate(node, rows)
        row = rows[0] if rows else {}
        if isinstance(node, m.Arithmetic | m.Negative | m.ScalarCall | m.Case):
            return computed(node, lambda one: self._value(one, rows), lambda one: self.matcher.truth(one, row))
        return self.matcher.value(node, row)

    def aggregate(self, node: m.Aggregate, rows: list[Row]) -> Value:
        """An aggregate over the rows of a group."""
        if isinstance(node.argument, m.AllRows):
            return len(rows)
        entity = isinstance(node.argument, m.Variable)
        entity = entity and node.argument.name not in self.matcher.parameters  # type: ignore[union-attr]
        found = [self.matcher.value(node.argument, row) for row in rows]
        held = [one[1] if entity and isinstance(one, tuple) else one for one in found if one is not None]
        if node.distinct:
            first: dict[Any, Value] = {}
            for one in held:
                first.setdefault(_same(one), one)
            held = list(first.values())
        return _FUNCTIONS[node.function](held)


def _aggregated(node: m.Expression) -> bool:
    """Whether an expression is or has an aggregate."""
    match node:
        case m.Arithmetic():
            return any(map(_aggregated, node.operands))
        case m.Negative():
            return _aggregated(node.operand)
        case m.ScalarCall():
            return any(map(_aggregated, node.arguments))
        case m.Case():
            default = [] if node.default is None else [node.default]
            return any(map(_aggregated, [*(one.value for one in node.branches), *default]))
    return isinstance(node, m.Aggregate)


@dataclass
class _GroupMatcher(Matcher):
    """Evaluates the condition on a group."""

    reader: Any = None
    group: list[Row] = field(default_factory=list)

    def value(self, node: m.Expression, row: Row) -> Value:
        if isinstance(node, m.Alias):
            node = self.reader.column(node.name)
        if isinstance(node, m.Aggregate):
            return self.reader.aggregate(node, self.group)
        return super().value(node, row)


def _operands(test: m.Condition) -> list[m.Expression]:
    match test:
        case m.And() | m.Or():
            return [node for one in test.items for node in _operands(one)]
        case m.Not():
            return _operands(test.item)
        case m.Comparison():
            return [test.left, test.right]
        case m.Membership() | m.IsNull():
            return [test.operand]
        case m.Truth():
            return [test.value]
    return []


def _average(held: list[Value]) -> float | None:
    return _total(held) / len(held) if held else None


def _sum(held: list[Value]) -> float | None:
    """Exact for integers, as far as 64 bits hold it."""
    found = _total(held) if held else None
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise OverflowError
    return found


def _total(held: list[Value]) -> Any:
    return sum(held) if all(isinstance(one, int) for one in held) else math.fsum(held)


_FUNCTIONS: dict[str, Callable[[list[Value]], Value]] = {
    "count": len,
    "sum": _sum,
    "avg": _average,
    "min": lambda held: min(held, default=None),
    "max": lambda held: max(held, default=None),
    "collect": tuple,
}


def _amount(node: m.Literal | m.Variable | None, parameters: Mapping[str, Value]) -> int | None:
    if node is None:
        return None
    found = int(node.text) if isinstance(node, m.Literal) else parameters[node.name]
    return int(found)


def _place(entity: Entity | FoundPath | None) -> tuple[Any, ...]:
    """Where an entity or a path stands in an order: by its id, missing ones first."""
    if isinstance(entity, FoundPath):
        return (True, *entity.place)
    return (False, "", "") if entity is None else (True, entity[1], entity[0])


def _same(value: Value) -> Any:
    """Something to compare by: equal values, equal things."""
    if isinstance(value, dict):
        return tuple((name, _same(one)) for name, one in sorted(value.items()))
    return tuple(map(_same, value)) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else value
