"""Effects of mutations and loads on dictionaries: the write oracle.

Statements in order on the latest version of each row; then the rules, in their order, on what was
touched. A refusal names the class of the error that the product must raise.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.lang.query import model as m
from omnigraph.lang.schema.catalog import Catalog, Check, EdgeType, Key, NodeType, Range, Unique
from omnigraph.values import canonical_spelling, coerce_assigned

from .dictionary_graph import Properties, Value, World, canonical_id, default_of, native, properties_of, stored
from .match_reference import Matcher, Row


class Refused(Exception):  # noqa: N818 - that is what it is
    """The product must refuse, with an error of this class, and change nothing."""

    def __init__(self, error: str, **facts: Any) -> None:
        super().__init__(f"{error} {facts}")
        self.error = error
        self.facts = facts


_ENDS = {"src": "from", "dst": "to"}  # the names of endpoints in statements


@dataclass
class Delta:
    """A graph that is being changed, and what was done to it."""

    world: World
    touched: dict[str, set[str]] = field(default_factory=dict)
    staged: list[tuple[str, str, Properties]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    removed: dict[str, dict[str, Properties]] = field(default_factory=dict)
    before: World | None = None
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    written: set[tuple[str, str]] = field(default_factory=set)
    deleted: set[tuple[str, str]] = field(default_factory=set)

    def settle(self, *keys: str) -> None:
        """Refuse inserts of existing ids; they are looked up before their table is read, or at the end."""
        for key, own in self.conflicts:
            if not keys or key in keys:
                raise Refused("KeyConflict", entity_id=own)

    def put(self, key: str, own: str, properties: Properties) -> None:
        """A row takes these values; its older version counts as gone."""
        rows = self.world.rows(key)
        if own in rows and own not in self.touched.get(key, set()):
            self.removed.setdefault(key, {})[own] = rows[own]
        rows[own] = properties
        self.touched.setdefault(key, set()).add(own)
        self.staged.append((key, own, properties))

    def drop(self, key: str, own: str) -> None:
        """A row is gone."""
        self.removed.setdefault(key, {})[own] = self.world.rows(key).pop(own)


def mutate(world: World, body: m.WriteBody, parameters: Mapping[str, Value], fresh: Iterator[str]) -> Delta:
    """The graph after a mutation; `fresh` gives the ids of what has no key."""
    delta = Delta(world.copy(), before=world)
    for statement in body.statements:
        match statement:
            case m.Insert() | m.Upsert() | m.Patch():
                _write_one(delta, statement, parameters, fresh)
            case m.Update():
                _update(delta, statement, parameters)
            case m.Delete():
                _delete(delta, statement, parameters)
            case m.MatchedUpdate():
                _matched_update(delta, statement, parameters)
            case m.MatchedDelete():
                _matched_delete(delta, statement, parameters)
    delta.settle()
    check(delta)
    return delta


def _touch(delta: Delta, touched: set[tuple[str, str]], *, deleting: bool = False) -> None:
    """A statement wrote or deleted rows; what one statement deletes, no other may touch."""
    if touched & (delta.written if deleting else delta.deleted):
        raise Refused("StatementConflict")
    (delta.deleted if deleting else delta.written).update(touched)


def _endpoints_of(delta: Delta, key: str, own: str) -> set[tuple[str, str]]:
    """The nodes of an edge."""
    kind = _kind(delta.world.catalog, key)
    if not isinstance(kind, EdgeType):
        return set()
    row = delta.world.rows(key)[own]
    return {(f"node:{kind.source}", row["from"]), (f"node:{kind.target}", row["to"])}


def _change(delta: Delta, key: str, own: str, properties: Properties) -> None:
    """A statement writes a row: its values are checked at once, those of the graph at the end."""
    delta.put(key, own, properties)
    delta.counts[key] += 1
    _values(_kind(delta.world.catalog, key), own, properties)


def _write_one(
    delta: Delta, node: m.Insert | m.Upsert | m.Patch, parameters: Mapping[str, Value], fresh: Iterator[str]
) -> None:
    if isinstance(node, m.Insert):
        key, own = _insert(delta, node, parameters, fresh)
    else:
        key, own = _upsert_or_patch(delta, node, parameters, fresh)
    if _endpoints_of(delta, key, own) & delta.deleted:
        raise Refused("StatementConflict")
    _touch(delta, {(key, own)})


def _insert(delta: Delta, node: m.Insert, parameters: Mapping[str, Value], fresh: Iterator[str]) -> tuple[str, str]:
    catalog = delta.world.catalog
    kind = catalog.node(node.type_name.text) or catalog.edge(node.type_name.text)
    assert kind is not None
    given = _assigned(delta, kind, node.assignments, parameters)
    properties = {one.name: _initial(kind, one.name, given) for one in kind.properties}
    _required(kind, properties)
    if isinstance(kind, EdgeType):
        ends = {name: given.get(name) for name in ("from", "to")}
        if None in ends.values():
            raise Refused("PropertyValueError")
        properties = ends | properties
    key = _key_of(catalog, node.type_name.text)
    own = _own_id(kind, properties, fresh)
    if own in delta.world.rows(key):
        delta.conflicts.append((key, own))
    _change(delta, key, own, properties)
    return key, own


def _upsert_or_patch(
    delta: Delta, node: m.Upsert | m.Patch, parameters: Mapping[str, Value], fresh: Iterator[str]
) -> tuple[str, str]:
    """A row named by its key or id takes the assigned values; an absent one is new, or refused."""
    key = _key_of(delta.world.catalog, node.type_name.text)
    kind = _kind(delta.world.catalog, key)
    given = _assigned(delta, kind, node.assignments, parameters)
    _given(kind, given)
    own = given.pop("id", None)
    if {_ENDS.get(member, member) for member in kind.key or ()} & given.keys():
        expected = _own_id(kind, {**given}, fresh)
        if own not in (None, expected):
            raise Refused("InputError")
        own = expected
    if not own:
        raise Refused("PropertyValueError" if own is None else "InputError")
    delta.settle(key)
    rows = delta.world.rows(key)
    if own in rows:
        properties = rows[own] | given
    elif isinstance(node, m.Patch):
        raise Refused("EntityNotFound", entity_id=own)
    else:
        properties = given | {one.name: _initial(kind, one.name, given) for one in kind.properties}
        _required(kind, properties)
    _change(delta, key, own, properties)
    return key, own


def _given(kind: NodeType | EdgeType, given: Properties) -> None:
    """A required property, or an endpoint, is not assigned null."""
    for name in given:
        declared = kind.property(name)
        if given[name] is None and (declared is None or not declared.type.nullable):
            raise Refused("PropertyValueError", property=name)


def _initial(kind: NodeType | EdgeType, name: str, given: Mapping[str, Value]) -> Value:
    declared = kind.properties_by_name[name]
    if name in given:
        return given[name]
    return default_of(declared.type, declared.default, type_name=kind.name, property_name=name)


def _required(kind: NodeType | EdgeType, properties: Properties) -> None:
    for one in kind.properties:
        if properties[one.name] is None and not one.type.nullable:
            raise Refused("PropertyValueError", property=one.name)


def _own_id(kind: NodeType | EdgeType, properties: Properties, fresh: Iterator[str]) -> str:
    if not kind.key:
        return next(fresh)
    try:
        return canonical_id(kind, properties)
    except OmnigraphError as error:
        raise Refused(error.code) from None


def _assigned(
    delta: Delta,
    kind: NodeType | EdgeType,
    assignments: Iterable[m.Assignment],
    parameters: Mapping[str, Value],
    row: Row | None = None,
) -> dict[str, Value]:
    matcher = _RowMatcher(delta.world, parameters)
    found: dict[str, Value] = {}
    for one in assignments:
        name, value = one.name.text, matcher.value(one.value, row or {})
        declared = kind.property(name)
        if declared is not None and value is not None:
            place = {"type_name": kind.name, "property_name": name}
            try:
                value = native(declared.type, coerce_assigned(declared.type, stored(value), **place))
            except OmnigraphError as error:
                raise Refused(error.code, property=name) from None
        found[name] = value
    return found


def _update(delta: Delta, node: m.Update, parameters: Mapping[str, Value]) -> None:
    key = _key_of(delta.world.catalog, node.type_name.text)
    kind = _kind(delta.world.catalog, key)
    delta.settle(key)
    rows = delta.world.rows(key)
    matched = [own for own in rows if _passes(delta.world, kind.name, own, node.where, parameters)]
    given = {own: _assigned(delta, kind, node.assignments, parameters, {"_": (kind.name, own)}) for own in matched}
    for own in matched:
        _required(kind, rows[own] | given[own])
        _change(delta, key, own, rows[own] | given[own])
    _touch(delta, {(key, own) for own in matched})


def _matched_update(delta: Delta, node: m.MatchedUpdate, parameters: Mapping[str, Value]) -> None:
    """Every matched entity once; two different values for one of its properties are refused."""
    delta.settle()
    matcher = Matcher(delta.world, parameters)
    rows = matcher.rows(node.clauses)
    key = _target_key(matcher, node)
    kind = _kind(delta.world.catalog, key)
    chosen: dict[str, tuple[list[Value], Row]] = {}
    for row in rows:
        entity = row[node.variable.name]
        if entity is None:
            continue
        values = [matcher.value(one.value, row) for one in node.assignments]
        if chosen.setdefault(entity[1], (values, row))[0] != values:
            raise Refused("AmbiguousAssignment")
    stored_rows = delta.world.rows(key)
    given = {own: _assigned(delta, kind, node.assignments, parameters, row) for own, (_, row) in chosen.items()}
    for own, values_by_name in given.items():
        _required(kind, stored_rows[own] | values_by_name)
        _change(delta, key, own, stored_rows[own] | values_by_name)
    _touch(delta, {(key, own) for own in given})


def _target_key(matcher: Matcher, node: m.MatchedUpdate) -> str:
    """The table of the changed variable; the edge variable of a traversal names its edge type."""
    name = matcher.kinds.get(node.variable.name)
    if name is not None and matcher.world.catalog.node(name) is not None:
        return f"node:{name}"
    edges = _edges_named(node.clauses, node.variable.name)
    kind = matcher.world.catalog.edge_ignoring_case(next(edges))
    assert kind is not None
    return f"edge:{kind.name}"


def _edges_named(clauses: Iterable[m.Clause], variable: str) -> Iterator[str]:
    for clause in clauses:
        if isinstance(clause, m.OptionalMatch):
            yield from _edges_named(clause.clauses, variable)
        elif isinstance(clause, m.Traversal) and clause.edge_variable and clause.edge_variable.name == variable:
            yield clause.edges[0].text


def _key_of(catalog: Catalog, name: str) -> str:
    return f"node:{name}" if catalog.node(name) else f"edge:{name}"


def _matched_delete(delta: Delta, node: m.MatchedDelete, parameters: Mapping[str, Value]) -> None:
    """A match sees what the statements before it did."""
    delta.settle()
    rows = Matcher(delta.world, parameters).rows(node.clauses)
    gone = {entity for row in rows if (entity := row[node.variable.name]) is not None}
    for name in {name for name, _ in gone}:
        _drop(delta, _key_of(delta.world.catalog, name), {own for kind, own in gone if kind == name})


def _delete(delta: Delta, node: m.Delete, parameters: Mapping[str, Value]) -> None:
    """A delete sees what the statements before it did, so what two of them match is counted once."""
    name = node.type_name.text
    key = _key_of(delta.world.catalog, name)
    delta.settle(key)
    _drop(delta, key, {own for own in delta.world.rows(key) if _passes(delta.world, name, own, node.where, parameters)})


def _drop(delta: Delta, key: str, gone: set[str]) -> None:
    """Rows are gone, with the edges of nodes."""
    dropped = {(key, own) for own in gone}
    if key.startswith("node:"):
        dropped |= _edges_of(delta, key.partition(":")[2], gone)
    for table, own in dropped:
        delta.drop(table, own)
        delta.counts[table] += 1
    _touch(delta, dropped, deleting=True)


def _edges_of(delta: Delta, name: str, gone: set[str]) -> set[tuple[str, str]]:
    return {
        (f"edge:{edge.name}", own)
        for edge in delta.world.catalog.edges
        for own, row in delta.world.edges[edge.name].items()
        if (edge.source == name and row["from"] in gone) or (edge.target == name and row["to"] in gone)
    }


def _passes(world: World, name: str, own: str, test: m.Condition, parameters: Mapping[str, Value]) -> bool:
    """Whether a row passes a `where`; its bare words are properties of the row."""
    matcher = _RowMatcher(world, parameters)
    return matcher.truth(test, {"_": (name, own)}) is True


class _RowMatcher(Matcher):
    def value(self, node: m.Expression, row: Any) -> Value:
        if isinstance(node, m.Alias):
            return self.property(row["_"], node.name)
        return super().value(node, row)


# Loads ------------------------------------------------------------------------------------------


def load(world: World, records: Iterable[Mapping[str, Any]], mode: str, fresh: Iterator[str]) -> Delta:
    """The graph after a load of well-formed records."""
    delta = Delta(world.copy(), before=world)
    entities = [_loaded(world.catalog, one, fresh) for one in records]
    if mode == "overwrite":
        for key in {key for key, _, _, _ in entities}:
            for own in list(delta.world.rows(key)):
                delta.drop(key, own)
    for key, own, properties, keyed in entities:
        if mode != "merge" and not keyed and own in delta.touched.get(key, set()):
            raise Refused("KeyConflict", entity_id=own)
        if mode == "append" and own in world.rows(key):
            raise Refused("KeyConflict", entity_id=own)
        if keyed and own in delta.touched.get(key, set()):
            raise Refused("UniqueViolation")
        delta.put(key, own, properties)
        delta.counts[key] += 1
    check(delta)
    return delta


def _loaded(catalog: Catalog, record: Mapping[str, Any], fresh: Iterator[str]) -> tuple[str, str, Properties, bool]:
    data = dict(record.get("data", {}))
    given = data.pop("id", None)
    kind: NodeType | EdgeType | None
    if "type" in record:
        kind, key = catalog.node(record["type"]), f"node:{record['type']}"
    else:
        kind = catalog.edge_ignoring_case(record["edge"])
        key = f"edge:{kind.name if kind else ''}"
    assert kind is not None
    try:
        properties = properties_of(kind, data)
    except OmnigraphError as error:
        raise Refused(error.code) from None
    if isinstance(kind, EdgeType):
        ends = {"from": record.get("from", record.get("src")), "to": record.get("to", record.get("dst"))}
        properties = ends | properties
    if kind.key:
        own = _own_id(kind, properties, fresh)
        if given not in (None, own):
            raise Refused("InputError")
        return key, own, properties, True
    return key, given or next(fresh), properties, False


# Rules ------------------------------------------------------------------------------------------


def check(delta: Delta) -> None:
    """All rules on what was touched, in their order; the first violation is the refusal."""
    catalog = delta.world.catalog
    for key, own, properties in delta.staged:
        _values(_kind(catalog, key), own, properties)
    for key in delta.touched:
        _unique(delta, key)
    for edge in catalog.edges:
        _endpoints(delta, edge)
    for edge in catalog.edges:
        _cardinality(delta, edge)


def _kind(catalog: Catalog, key: str) -> NodeType | EdgeType:
    name = key.partition(":")[2]
    found = catalog.node(name) if key.startswith("node:") else catalog.edge(name)
    assert found is not None
    return found


def _values(kind: NodeType | EdgeType, own: str, properties: Properties) -> None:
    facts = {"type_name": kind.name, "entity_id": own}
    for rule in kind.constraints:
        held = properties.get(rule.column) if isinstance(rule, Range | Check) else None
        if held is None:
            continue
        if isinstance(rule, Range) and not _within(rule, held):
            raise Refused("ConstraintViolation", rule="@range", **facts)
        if isinstance(rule, Check) and not re.search(rule.pattern, held):
            raise Refused("ConstraintViolation", rule="@check", **facts)
    for one in kind.properties:
        held = properties[one.name]
        words = held if isinstance(held, tuple) else (held,)
        if one.type.enum_values and held is not None and set(words) - set(one.type.enum_values):
            raise Refused("ConstraintViolation", rule="enum", **facts)


def _within(rule: Range, held: Any) -> bool:
    return (rule.low is None or rule.low <= held) and (rule.high is None or held <= rule.high)


def _unique(delta: Delta, key: str) -> None:
    kind = _kind(delta.world.catalog, key)
    for rule in kind.constraints:
        if not isinstance(rule, Unique | Key):
            continue
        seen: dict[tuple[str, ...], str] = {}
        for own, row in delta.world.rows(key).items():
            held = _tuple(kind, rule.columns, row)
            other = seen.setdefault(held, own) if held is not None else own
            if other != own and {own, other} & delta.touched[key]:
                raise Refused("UniqueViolation", type_name=kind.name)


def _tuple(kind: NodeType | EdgeType, columns: tuple[str, ...], row: Properties) -> tuple[str, ...] | None:
    ends = {"src": "from", "dst": "to"} if isinstance(kind, EdgeType) else {}
    held = [(name, row[ends.get(name, name)]) for name in columns]
    if any(value is None for _, value in held):
        return None
    return tuple(
        value if name in ends else canonical_spelling(kind.properties_by_name[name].type, stored(value))
        for name, value in held
    )


def _endpoints(delta: Delta, edge: EdgeType) -> None:
    for own, row in delta.world.edges[edge.name].items():
        for kind, end, word in ((edge.source, row["from"], "src"), (edge.target, row["to"], "dst")):
            if end not in delta.world.nodes[kind]:
                raise Refused("ConstraintViolation", rule="endpoint", entity_id=own, property=word)


def _cardinality(delta: Delta, edge: EdgeType) -> None:
    key = f"edge:{edge.name}"
    rows = delta.world.edges[edge.name]
    sources = {rows[own]["from"] for own in delta.touched.get(key, set()) if own in rows}
    sources |= {row["from"] for row in delta.removed.get(key, {}).values()}
    counted = Counter(row["from"] for row in rows.values())
    for source in sources & delta.world.nodes[edge.source].keys():
        if counted[source] < edge.min_cardinality or (
            edge.max_cardinality is not None and counted[source] > edge.max_cardinality
        ):
            raise Refused("ConstraintViolation", rule="@card", type_name=edge.name)
