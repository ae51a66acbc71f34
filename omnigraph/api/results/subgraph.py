"""`Subgraph`: the nodes and edges in a query result, for libraries that work on in-memory graphs.

A subgraph contains only plain Python values and is not connected to the graph. Nodes are identified by type and id,
because nodes of different types may have the same id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from omnigraph.api.optional_imports import import_optional

NodeKey = tuple[str, str]  # a node's type and id


@dataclass(frozen=True, slots=True)
class SubgraphEdge:
    """An edge, with its id, type, endpoint keys and properties."""

    id: str
    type: str
    source: NodeKey
    target: NodeKey
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Distinct nodes and edges. Both endpoints of every edge are in the subgraph.

    `nodes` maps each node's type and id to its properties. A node has no properties if the query returned it only as an
    endpoint of an edge.

    >>> knows = SubgraphEdge("e1", "Knows", ("Person", "ada"), ("Person", "bob"), {"since": 2020})
    >>> subgraph = Subgraph({("Person", "ada"): {"age": 36}, ("Person", "bob"): {}}, (knows,))
    >>> subgraph
    <Subgraph: 2 nodes, 1 edge>
    >>> sorted(subgraph.to_networkx().successors(("Person", "ada")))
    [('Person', 'bob')]
    """

    nodes: Mapping[NodeKey, Mapping[str, Any]] = field(default_factory=dict)
    edges: tuple[SubgraphEdge, ...] = ()

    def __repr__(self) -> str:
        node_count, edge_count = len(self.nodes), len(self.edges)
        return f"<Subgraph: {node_count} node{'s' * (node_count != 1)}, {edge_count} edge{'s' * (edge_count != 1)}>"

    def _repr_html_(self) -> str:
        from omnigraph.api.graph_drawing.card import graph_card
        from omnigraph.api.graph_drawing.drawn_graph import draw_subgraph

        return f'<div class="og">{graph_card(draw_subgraph(self))}<small>{repr(self)[1:-1]}</small></div>'

    def to_networkx(self) -> Any:
        """Return a `networkx.MultiDiGraph`.

        Its nodes are (type, id) pairs, and its edges use the edge id as their key. Nodes and edges have `type`, `id`
        and the properties as attributes.
        """
        graph = import_optional("networkx").MultiDiGraph()
        graph.add_nodes_from((node_key, _node_attributes(node_key, self.nodes[node_key])) for node_key in self.nodes)
        graph.add_edges_from((edge.source, edge.target, edge.id, _edge_attributes(edge)) for edge in self.edges)
        return graph

    def to_igraph(self) -> Any:
        """Return a directed `igraph.Graph`. Vertices and edges have `type`, `id` and the properties as attributes."""
        positions = {node_key: position for position, node_key in enumerate(self.nodes)}
        graph = import_optional("igraph").Graph(
            n=len(positions),
            edges=[(positions[edge.source], positions[edge.target]) for edge in self.edges],
            directed=True,
        )
        _set_attributes(graph.vs, [_node_attributes(node_key, values) for node_key, values in self.nodes.items()])
        _set_attributes(graph.es, [_edge_attributes(edge) for edge in self.edges])
        return graph

    def to_graphml(self, path: str | PathLike[str]) -> None:
        """Write a GraphML file, which Gephi, yEd, Cytoscape and networkx can read.

        Numbers, booleans and strings keep their types. Lists are written as JSON, and all other values as text.
        """
        from omnigraph.api.results.graphml import write_graphml

        node_rows = [
            (_spell_key(node_key), _node_attributes(node_key, values)) for node_key, values in self.nodes.items()
        ]
        edge_rows = [
            (_spell_key(edge.source), _spell_key(edge.target), edge.id, _edge_attributes(edge)) for edge in self.edges
        ]
        write_graphml(path, node_rows, edge_rows)


def _node_attributes(node_key: NodeKey, properties: Mapping[str, Any]) -> dict[str, Any]:
    type_name, node_id = node_key
    return {"type": type_name, "id": node_id, **properties}


def _edge_attributes(edge: SubgraphEdge) -> dict[str, Any]:
    return {"type": edge.type, "id": edge.id, **edge.properties}


def _set_attributes(sequence: Any, rows: list[dict[str, Any]]) -> None:
    """Set attributes on igraph vertices or edges, one column at a time. Missing values are None."""
    for name in _attribute_names(rows):
        sequence[name] = [row.get(name) for row in rows]


def _attribute_names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _spell_key(node_key: NodeKey) -> str:
    return "/".join(node_key)
