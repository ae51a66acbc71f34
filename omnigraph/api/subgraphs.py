"""`graph.subgraph()`: collect the nodes and edges that a query returns.

Nodes, edges and paths are taken from the columns in the result, and other columns are ignored. The schema determines
the types of the endpoints, so nodes of different types never get mixed up, even if their ids are equal.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.api.builders.prepared_queries import QuerySource
from omnigraph.api.handle import Handle
from omnigraph.api.queries import Params, QueryCall, combine_arguments, run_query
from omnigraph.api.results.result import Result
from omnigraph.api.results.subgraph import NodeKey, Subgraph, SubgraphEdge
from omnigraph.errors import InputError
from omnigraph.history.revisions import Revision
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.type_names import resolve_type

_EDGE_MEMBERS = ("id", "type", "from", "to")


def subgraph(  # noqa: PLR0913 - all but the first are keywords
    handle: Handle,
    source: QuerySource | Result,
    /,
    *,
    name: str | None = None,
    params: Params = None,
    branch: str | None = None,
    at: Revision | None = None,
    timeout: float | None = None,
    **values: Any,
) -> Subgraph:
    """Return the nodes and edges in a query result, for networkx, igraph or a GraphML file.

    `source` is a query, as for `graph.query`, or a result from this graph. The query must return whole nodes, whole
    edges or paths, as in `return { $p, $e, $q }`.

    >>> from omnigraph import testing
    >>> schema = "node Person { name: String @key }  edge Knows: Person -> Person"
    >>> with testing.graph(schema) as graph:
    ...     _ = graph.insert("Person", {"name": "ada"}, {"name": "bob"})
    ...     _ = graph.connect_nodes("Knows", [("ada", "bob")])
    ...     graph.subgraph("match { $p: Person  $p $e:knows $q } return { $p, $e, $q }")
    <Subgraph: 2 nodes, 1 edge>

    Raises `InputError` if the result has rows but no nodes, edges or paths, and the same errors as `graph.query`.
    """
    target = handle.for_read(branch, at)
    if isinstance(source, Result):
        result = source
    else:
        result = run_query(target, QueryCall(source, name, combine_arguments(params, values), timeout))
    return collect_subgraph(result, target.latest_snapshot().schema.ir.catalog)


def collect_subgraph(result: Result, catalog: Catalog) -> Subgraph:
    """Collect the nodes, edges and paths in a result's columns."""
    nodes: dict[NodeKey, dict[str, Any]] = {}
    edges: dict[tuple[str, str], SubgraphEdge] = {}
    has_entities = False
    for entity in _iter_entities(result):
        has_entities = True
        if "from" in entity and "to" in entity:
            edge = _build_edge(entity, catalog)
            edges.setdefault((edge.type, edge.id), edge)
            nodes.setdefault(edge.source, {})
            nodes.setdefault(edge.target, {})
        else:
            properties = {member: value for member, value in entity.items() if member not in ("id", "type")}
            nodes.setdefault((entity["type"], entity["id"]), {}).update(properties)
    if not has_entities and result.num_rows:
        hint = "return whole nodes, whole edges or paths, as in `return { $p, $e, $q }`"
        raise InputError("the result contains no nodes and no edges", reason="no entities", hint=hint)
    return Subgraph(nodes, tuple(edges.values()))


def _iter_entities(result: Result) -> Iterator[Mapping[str, Any]]:
    """Yield every node and edge in the result, including those in paths."""
    for column in result.columns:
        for value in result.scalars(column):
            yield from _entities_of(value)


def _entities_of(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for member in value:
            yield from _entities_of(member)
    elif isinstance(value, dict) and "id" in value and "type" in value:
        yield value
    elif isinstance(value, dict) and "nodes" in value and "edges" in value:
        yield from _entities_of(value["nodes"])
        yield from _entities_of(value["edges"])


def _build_edge(entity: Mapping[str, Any], catalog: Catalog) -> SubgraphEdge:
    edge_type = resolve_type(catalog, entity["type"], "edge")
    properties = {member: value for member, value in entity.items() if member not in _EDGE_MEMBERS}
    source, target = (edge_type.source, entity["from"]), (edge_type.target, entity["to"])
    return SubgraphEdge(entity["id"], edge_type.name, source, target, properties)
