"""Choose what a drawing shows: nodes and edges with short labels, taken from a subgraph or a query result.

The size is bounded: a drawing shows only the first nodes and edges, and `omission_note` describes what is missing. A
result does not include the types of an edge's endpoints, so these types are derived from the nodes in the result.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.api.results.subgraph import NodeKey, Subgraph
from omnigraph.errors.counts import format_count

MAX_NODES = 60
MAX_EDGES = 240
_MAX_ROWS = 300  # maximum number of result rows read for a drawing
_MAX_LABEL_LENGTH = 20
_MAX_TOOLTIP_LENGTH = 400
_LABEL_PROPERTIES = ("name", "title", "label")
_EDGE_MEMBERS = ("id", "type", "from", "to")
UNKNOWN_TYPE = ""  # the type shown for an endpoint that is not among the result's nodes


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node with its type, its short label and its tooltip."""

    type: str
    label: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge between two drawn nodes, identified by their positions in the node list."""

    source: int
    target: int
    type: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """The nodes and edges in a drawing, and a note about what was left out."""

    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    omission_note: str = ""


@dataclass(slots=True)
class _Entities:
    """The distinct nodes and edges in a result, in order of appearance."""

    nodes: dict[NodeKey, dict[str, Any]] = field(default_factory=dict)
    edges: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)


def draw_subgraph(subgraph: Subgraph) -> DrawnGraph:
    """Choose what to draw from a subgraph."""
    edges = ((edge.source, edge.target, edge.type, edge.id, edge.properties) for edge in subgraph.edges)
    return _choose(subgraph.nodes, list(edges))


def draw_table(table: pa.Table) -> DrawnGraph | None:
    """Choose what to draw from a result table. Return None if it contains no nodes, edges or paths."""
    column_names = [column.name for column in table.schema if _contains_entities(column.type)]
    if not column_names or not table.num_rows:
        return None
    entities = _Entities()
    for column_name in column_names:
        for value in _without_large_members(table.column(column_name).slice(0, _MAX_ROWS)).to_pylist():
            _collect(value, entities)
    if not entities.nodes and not entities.edges:
        return None
    edges = list(_resolve_endpoints(entities))
    rows_note = f"Drawn from the first {_MAX_ROWS} of {table.num_rows} rows. " if table.num_rows > _MAX_ROWS else ""
    return _choose(entities.nodes, edges, rows_note)


def _contains_entities(data_type: pa.DataType) -> bool:
    """Return whether a column of this type may contain nodes, edges or paths."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return _contains_entities(data_type.value_type)
    if not pa.types.is_struct(data_type):
        return False
    members = {data_type.field(index).name for index in range(data_type.num_fields)}
    return {"id", "type"} <= members or {"nodes", "edges"} <= members


def _without_large_members(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a node column without members that are never drawn: vectors, lists and bytes."""
    if not pa.types.is_struct(column.type) or "nodes" in (member.name for member in column.type):
        return column
    names = [member.name for member in column.type if not _is_large(member.type)]
    members = [pc.struct_field(column.combine_chunks(), name) for name in names]
    return pa.chunked_array([pc.make_struct(*members, field_names=names)])


def _is_large(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_nested(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _collect(value: Any, entities: _Entities) -> None:
    if isinstance(value, list):
        for member in value:
            _collect(member, entities)
    elif isinstance(value, dict) and "nodes" in value and "edges" in value:
        _collect(value["nodes"], entities)
        _collect(value["edges"], entities)
    elif isinstance(value, dict) and value.get("id") is not None and value.get("type") is not None:
        if value.get("from") is not None and value.get("to") is not None:
            entities.edges.setdefault((value["type"], value["id"]), value)
        else:
            entities.nodes.setdefault((value["type"], value["id"]), {}).update(value)


_EdgeFacts = tuple[NodeKey, NodeKey, str, str, Mapping[str, Any]]


def _resolve_endpoints(entities: _Entities) -> Iterator[_EdgeFacts]:
    """Yield each edge with its endpoints' keys. Endpoints that are missing from the result are added as nodes."""
    types_by_id: dict[str, list[str]] = {}
    for type_name, node_id in entities.nodes:
        types_by_id.setdefault(node_id, []).append(type_name)
    endpoint_types = _learn_endpoint_types(entities, types_by_id)
    for (edge_type, edge_id), edge in entities.edges.items():
        keys = []
        for side in ("from", "to"):
            node_types = types_by_id.get(edge[side], [])
            type_name = node_types[0] if len(node_types) == 1 else endpoint_types.get((edge_type, side), UNKNOWN_TYPE)
            keys.append((type_name, edge[side]))
            entities.nodes.setdefault(keys[-1], {})
        properties = {member: value for member, value in edge.items() if member not in _EDGE_MEMBERS}
        yield keys[0], keys[1], edge_type, edge_id, properties


def _learn_endpoint_types(entities: _Entities, types_by_id: Mapping[str, list[str]]) -> dict[tuple[str, str], str]:
    """Return the node type at each end of an edge type. Omit ends whose type the result does not determine."""
    return {
        (edge_type, side): types_by_id[edge[side]][0]
        for (edge_type, _), edge in entities.edges.items()
        for side in ("from", "to")
        if len(types_by_id.get(edge[side], [])) == 1
    }


def _choose(nodes: Mapping[NodeKey, Mapping[str, Any]], edges: list[_EdgeFacts], note: str = "") -> DrawnGraph:
    """Choose and describe the first nodes and the edges between them."""
    positions = {node_key: index for index, node_key in zip(range(MAX_NODES), nodes, strict=False)}
    drawable = [edge for edge in edges if edge[0] in positions and edge[1] in positions]
    drawn_edges = tuple(
        DrawnEdge(positions[source], positions[target], edge_type, _tooltip(edge_type, edge_id, properties))
        for source, target, edge_type, edge_id, properties in drawable[:MAX_EDGES]
    )
    drawn_nodes = tuple(_describe_node(node_key, nodes[node_key]) for node_key in positions)
    omitted = ((len(nodes) - len(drawn_nodes), "node"), (len(edges) - len(drawn_edges), "edge"))
    counts = " and ".join(f"{count} {noun}{'s' * (count != 1)}" for count, noun in omitted if count)
    verb = "is" if sum(count for count, _ in omitted) == 1 else "are"
    return DrawnGraph(drawn_nodes, drawn_edges, f"{note}{counts} {verb} not drawn." if counts else note.strip())


def _describe_node(node_key: NodeKey, properties: Mapping[str, Any]) -> DrawnNode:
    type_name, node_id = node_key
    names = (properties.get(name) for name in _LABEL_PROPERTIES)
    label = next((name for name in names if isinstance(name, str) and name.strip()), node_id)
    return DrawnNode(type_name, _shorten(label, _MAX_LABEL_LENGTH), _tooltip(type_name or "node", node_id, properties))


def _tooltip(type_name: str, entity_id: str, properties: Mapping[str, Any]) -> str:
    shown = ((name, value) for name, value in properties.items() if name not in _EDGE_MEMBERS and value is not None)
    lines = [
        _shorten(f"{type_name} {entity_id}", 120),
        *(f"{name}: {_shorten(_as_text(value), 60)}" for name, value in shown),
    ]
    return "\n".join(lines)[:_MAX_TOOLTIP_LENGTH]


def _as_text(value: Any) -> str:
    return format_count(len(value), "byte") if isinstance(value, bytes) else str(value)


def _shorten(text: str, max_length: int) -> str:
    single_line = " ".join(_printable(text[: 4 * max_length]).split())
    return single_line if len(single_line) <= max_length else f"{single_line[: max_length - 1]}…"


def _printable(text: str) -> str:
    r"""Remove the control characters that XML does not allow.

    >>> _printable("a\x00b")
    'a b'
    """
    return "".join(_printable_characters(text))


def _printable_characters(text: str) -> Iterable[str]:
    return (character if character.isprintable() else " " for character in text)
