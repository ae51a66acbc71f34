"""A graph as plain dictionaries: the stored data as the engine oracles see it.

Values are plain Python: text, bool, int, float, `date`, `datetime` in UTC, tuples, bytes, None. No
array library comes near it, and nothing here knows how the product stores or finds anything.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.values import PropertyType, ScalarType, coerce_loaded, entity_id

Value = Any
Properties = dict[str, Value]
Entity = tuple[str, str]  # the name of a type, and an id

_FIRST_DAY = date(1970, 1, 1)
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class World:
    """Nodes and edges by type and id; an edge has `from` and `to` among its properties."""

    catalog: Catalog
    nodes: dict[str, dict[str, Properties]] = field(default_factory=dict)
    edges: dict[str, dict[str, Properties]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.catalog.nodes:
            self.nodes.setdefault(node.name, {})
        for edge in self.catalog.edges:
            self.edges.setdefault(edge.name, {})

    def copy(self) -> "World":
        """The same graph, to be changed without changing this one."""
        nodes = {name: dict(rows) for name, rows in self.nodes.items()}
        return World(self.catalog, nodes, {name: dict(rows) for name, rows in self.edges.items()})

    def same(self, other: "World") -> bool:
        """Whether both hold the same entities with the same values."""
        return self.nodes == other.nodes and self.edges == other.edges

    def rows(self, key: str) -> dict[str, Properties]:
        """The rows of `node:T` or `edge:T`."""
        kind, _, name = key.partition(":")
        return self.nodes[name] if kind == "node" else self.edges[name]


def native(kind: PropertyType, value: Any) -> Value:
    """A stored value as plain Python: days become dates, milliseconds become moments."""
    if value is None:
        return None
    if kind.is_list or kind.is_vector:
        return tuple(native(kind.element_type(), one) for one in value)
    if kind.scalar is ScalarType.DATE:
        return _FIRST_DAY + timedelta(days=value)
    if kind.scalar is ScalarType.DATETIME:
        return _FIRST_MOMENT + timedelta(milliseconds=value)
    return value


def stored(value: Value) -> Any:
    """The way back from `native`, for the conversions of `omnigraph.values`."""
    if isinstance(value, datetime):
        return (value - _FIRST_MOMENT) // timedelta(milliseconds=1)
    if isinstance(value, date):
        return (value - _FIRST_DAY).days
    return tuple(stored(one) for one in value) if isinstance(value, tuple) else value


def default_of(kind: PropertyType, literal: Any, **place: Any) -> Value:
    """The value that a property without one takes: that of `@default`, else null."""
    if literal is None:
        return None
    text = literal.text if hasattr(literal, "text") else literal.value
    if kind.scalar is ScalarType.STRING:
        given: Any = text
    elif kind.scalar is ScalarType.BOOL:
        given = text in ("true", True)
    elif kind.scalar.is_numeric:
        given = json.loads(str(text))
    else:
        given = text
    return native(kind, coerce_loaded(kind, given, **place))


def canonical_id(kind: NodeType | EdgeType, properties: Mapping[str, Value]) -> str:
    """The id that a keyed entity has by its key; an edge names its ends first."""
    if isinstance(kind, EdgeType):
        return edge_id(kind, properties)
    node, names = kind, kind.key or ()
    kinds = [node.properties_by_name[name].type for name in names]
    return entity_id(kinds, [stored(properties[name]) for name in names], names)


def edge_id(edge: EdgeType, properties: Mapping[str, Value]) -> str:
    """The id of a keyed edge, made without the product: its members as text, several as a JSON array."""
    key = edge.key or ()
    ends = [properties[word] for name, word in (("src", "from"), ("dst", "to")) if name in key]
    members = [*ends, *(str(stored(properties[name])) for name in sorted({*key} - {"src", "dst"}))]
    return members[0] if len(members) == 1 else json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def properties_of(kind: NodeType | EdgeType, given: Mapping[str, Any], line: int | None = None) -> Properties:
    """All properties of a loaded entity: as given, by default, or null."""
    found: Properties = {}
    for one in kind.properties:
        place = {"type_name": kind.name, "property_name": one.name}
        if one.name not in given and one.default is not None:
            found[one.name] = default_of(one.type, one.default, **place)
            continue
        loaded = coerce_loaded(one.type, given.get(one.name), line_number=line, **place)
        found[one.name] = native(one.type, loaded)
    return found


def world_of(catalog: Catalog, lines: Iterable[str]) -> World:
    """A graph from valid NDJSON; an entity without an id is numbered in the order of the lines."""
    world = World(catalog)
    for number, line in enumerate(lines, 1):
        if line.strip():
            add(world, json.loads(line), number)
    return world


def add(world: World, record: Mapping[str, Any], number: int) -> None:
    """One record into the graph, unchecked."""
    data = dict(record.get("data", {}))
    given = data.pop("id", None)
    if "type" in record:
        node = world.catalog.node(record["type"])
        assert node is not None, record
        found = properties_of(node, data, number)
        own = given or (canonical_id(node, found) if node.key else f"#{number:05}")
        world.nodes[node.name][own] = found
        return
    edge = world.catalog.edge_ignoring_case(record["edge"])
    assert edge is not None, record
    loaded = {"from": record["from"], "to": record["to"]} | properties_of(edge, data, number)
    own = given or (canonical_id(edge, loaded) if edge.key else f"#{number:05}")
    world.edges[edge.name][own] = loaded
