"""Single entities: their values, versions, blame and neighbors."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from msgspec import UNSET

from omnigraph.api.builders.mutation_text import resolve_edge_id, resolve_node_id
from omnigraph.api.entity_keys import parse_entity_key
from omnigraph.api.graph import Graph
from omnigraph.api.results.json_encoding import iter_json_rows
from omnigraph.api.results.subgraph import Subgraph
from omnigraph.errors import EntityNotFound, InputError
from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.entities import (
    BlamedPropertyOutput,
    BlameOutput,
    EntityHistoryOutput,
    EntityOutput,
    EntityVersionOutput,
    SubgraphEdgeOutput,
    SubgraphNodeOutput,
    SubgraphOutput,
)
from omnigraph.server.models.requests import EntityKindName, QueryRequest
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.server.wire.values import to_wire_value

from .documents import commit_output
from .reads import query_timeout

_DEFAULT_NEIGHBOURS, _MAX_NEIGHBOURS = 100, 10_000


def get_entity(call: ServerCall) -> Answer:
    """Return a node or an edge."""
    graph, kind, type_name, key = _read_address(call)
    entity_id = _resolve_id(graph, kind, type_name, key)
    entities = graph.nodes(type_name) if kind == "node" else graph.edges(type_name)
    result = entities.where(id=entity_id).result()
    rows = list(iter_json_rows(result.table))
    if not rows:
        raise EntityNotFound(entity_kind=kind, type_name=type_name, entity_id=entity_id)
    values = {name.rpartition(".")[2]: value for name, value in rows[0].items()}
    document = EntityOutput(
        kind=kind, type=type_name, id=values.pop("id"), properties=values, graph_commit_id=str(result.commit_id)
    )
    if kind == "edge":
        document.endpoints = {"from": values.pop("from"), "to": values.pop("to")}
    return json_answer(document)


def entity_history(call: ServerCall) -> Answer:
    """Return the versions of an entity, newest first."""
    graph, kind, type_name, key = _read_address(call)
    versions = graph.revisions.history(type_name, key, kind=kind, limit=call.query_values.get("limit"))
    if not versions and versions.complete:
        raise EntityNotFound(f"no {type_name} with this key in the history")
    document = EntityHistoryOutput(
        versions=[_version_output(call, version) for version in versions], complete=versions.complete
    )
    if versions.gap is not None:
        document.gap_commit_id, document.gap_reason = versions.gap.id, versions.describe_gap()
    return json_answer(document)


def _version_output(call: ServerCall, version: Any) -> EntityVersionOutput:
    endpoints = version.endpoints
    return EntityVersionOutput(
        commit=commit_output(version.commit, call),
        op=version.op,
        changed=list(version.changed),
        properties=to_wire_value(version.values),
        before=to_wire_value(version.before),
        endpoints={"from": endpoints["src"], "to": endpoints["dst"]} if endpoints else UNSET,
    )


def entity_blame(call: ServerCall) -> Answer:
    """Return the commit that last set each property of an entity."""
    graph, kind, type_name, key = _read_address(call)
    blamed = graph.revisions.blame(type_name, key, kind=kind)
    properties = [
        BlamedPropertyOutput(
            name=entry.name,
            value=to_wire_value(entry.value),
            actor_id=entry.actor,
            commit=None if entry.commit is None else commit_output(entry.commit, call),
        )
        for entry in blamed.values()
    ]
    return json_answer(BlameOutput(properties=properties))


def neighbors(call: ServerCall) -> Answer:
    """Return the edges of a node and the nodes at their other ends."""
    graph, _, type_name, key = _read_address(call, "node")
    limit = call.query_values.get("limit", _DEFAULT_NEIGHBOURS)
    if not 1 <= limit <= _MAX_NEIGHBOURS:
        raise InputError(f"limit must be between 1 and {_MAX_NEIGHBOURS}", reason="invalid value")
    pinned = graph.revisions.pin()
    catalog = pinned.schema.ir.catalog
    start_id = resolve_node_id(pinned.schema.ir, type_name, key)
    if not pinned.nodes(type_name).where(id=start_id).exists():
        raise EntityNotFound(entity_kind="node", type_name=type_name, entity_id=start_id)
    collected = Subgraph({}, ())
    for text in _neighbor_queries(call, catalog, type_name, limit + 1):
        found = pinned.subgraph(engine_access.query_text(text), params={"start": start_id})
        collected = Subgraph({**collected.nodes, **found.nodes}, (*collected.edges, *found.edges))
        if len(collected.edges) > limit:
            break
    return json_answer(subgraph_output(collected, pinned.head.id, limit))


def _neighbor_queries(call: ServerCall, catalog: Catalog, type_name: str, limit: int) -> Iterator[str]:
    """Yield a query for each edge type that can connect to the node, in each requested direction."""
    direction = call.query_values.get("direction", "both")
    wanted = call.query_values.get("edge")
    edge_types = [resolve_type(catalog, name, "edge") for name in wanted] if wanted else catalog.edges
    for edge in cast("list[EdgeType]", edge_types):
        word = edge.name[0].lower() + edge.name[1:]
        patterns = []
        if direction in ("out", "both") and edge.source == type_name:
            patterns.append(f"$n $e:{word} $m")
        if direction in ("in", "both") and edge.target == type_name:
            patterns.append(f"$m: {edge.source}  $m $e:{word} $n")
        for pattern in patterns:
            body = f"match {{ $n: {type_name}  $n.id = $start  {pattern} }} return {{ $n, $e, $m }} limit {limit}"
            yield f"query neighbors($start: String) {{ {body} }}"


def subgraph(call: ServerCall) -> Answer:
    """Return the nodes and edges of a query result."""
    body = call.body_as(QueryRequest)
    graph = call.graph_for_read(body.branch, body.snapshot)
    result = graph.query(
        engine_access.query_text(body.query),
        name=body.name,
        params=body.params,
        timeout=query_timeout(call, body.timeout),
        assume_utc=body.assume_utc,
    )
    return json_answer(subgraph_output(graph.subgraph(result), str(result.commit_id), None))


def subgraph_output(collected: Subgraph, commit_id: str, limit: int | None) -> SubgraphOutput:
    """Return the JSON for a subgraph with at most `limit` edges."""
    edges = list(islice(collected.edges, limit))
    return SubgraphOutput(
        nodes=[
            SubgraphNodeOutput(type=node_type, id=node_id, properties=to_wire_value(properties))
            for (node_type, node_id), properties in collected.nodes.items()
        ],
        edges=[
            SubgraphEdgeOutput(
                type=edge.type,
                id=edge.id,
                from_={"type": edge.source[0], "id": edge.source[1]},
                to={"type": edge.target[0], "id": edge.target[1]},
                properties=to_wire_value(edge.properties),
            )
            for edge in edges
        ],
        graph_commit_id=commit_id,
        truncated=len(edges) < len(collected.edges),
    )


def _read_address(
    call: ServerCall, expected_kind: EntityKindName | None = None
) -> tuple[Graph, EntityKindName, str, Any]:
    """Return the graph to read, and the kind, type and key of the entity in the path."""
    kind, type_name = call.path_values["kind"], call.path_values["type"]
    if kind not in ("node", "edge") or (expected_kind is not None and kind != expected_kind):
        raise InputError("the kind must be `node` or `edge`", reason="invalid kind")
    values = call.query_values
    graph = call.graph_for_read(values.get("branch"), values.get("snapshot")).refresh()
    catalog = graph.schema.ir.catalog
    entity_type = resolve_type(catalog, type_name, kind)
    return (
        graph,
        cast("EntityKindName", kind),
        entity_type.name,
        parse_entity_key(catalog, entity_type.name, kind, call.path_values["id"]),
    )


def _resolve_id(graph: Graph, kind: str, type_name: str, key: Any) -> str:
    ir = graph.schema.ir
    if kind == "node":
        return resolve_node_id(ir, type_name, key)
    return resolve_edge_id(ir, resolve_type(ir.catalog, type_name, "edge"), key)
