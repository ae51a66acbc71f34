"""Subgraphs of results, and what networkx, igraph and GraphML readers see of them."""

from pathlib import Path

import igraph
import networkx
import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import InputError
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Person { name: String @key  age: I64?  score: F64?  born: Date?  tags: [String]?  active: Bool? }
node Company { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company
"""


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    opened = graphs.init(SCHEMA)
    opened.insert(
        "Person",
        {"name": "a", "age": 2**40, "score": 0.5, "born": "2000-01-02", "tags": ["<x>", "y"], "active": True},
        {"name": "b", "age": 3},
    )
    opened.insert("Company", {"name": "a"})
    opened.connect_nodes("Knows", [("a", "b", {"since": 1}), ("a", "b", {"since": 2}), ("b", "b")])
    opened.connect_nodes("WorksAt", [("a", "a")])
    return opened


def test_parallel_edges_loops_and_equal_ids_of_two_types_stay_apart(graph: Graph) -> None:
    subgraph = graph.subgraph("match { $p: Person  $p $k:knows $q  $p $w:worksAt $c } return { $p, $k, $q, $w, $c }")
    assert set(subgraph.nodes) == {("Person", "a"), ("Person", "b"), ("Company", "a")}
    works_at = [edge for edge in subgraph.edges if edge.type == "WorksAt"]
    assert [(edge.source, edge.target) for edge in works_at] == [(("Person", "a"), ("Company", "a"))]
    assert sorted(edge.properties["since"] for edge in subgraph.edges if edge.type == "Knows") == [1, 2]


def test_networkx_gets_every_node_edge_and_property(graph: Graph) -> None:
    result = graph.query("match { $p: Person  $p $k:knows $q } return { $p, $k, $q, $p.age }")
    network = graph.subgraph(result).to_networkx()
    assert isinstance(network, networkx.MultiDiGraph)
    assert network.number_of_edges() == 3
    assert network.nodes["Person", "b"] | {"score": 0} == {
        "type": "Person", "id": "b", "name": "b", "age": 3, "score": 0, "born": None, "tags": None, "active": None,
    }  # fmt: skip
    assert sorted(attributes["since"] or 0 for *_, attributes in network.edges(data=True)) == [0, 1, 2]
    assert networkx.number_of_selfloops(network) == 1


def test_igraph_gets_the_same_graph(graph: Graph) -> None:
    network = graph.subgraph("match { $p: Person  $p $k:knows $q } return { $p, $k, $q }").to_igraph()
    assert isinstance(network, igraph.Graph)
    names = [(network.vs[edge.source]["name"], network.vs[edge.target]["name"]) for edge in network.es]
    assert sorted(names) == [("a", "b"), ("a", "b"), ("b", "b")]
    assert sorted(since or 0 for since in network.es["since"]) == [0, 1, 2]


def test_paths_bring_their_nodes_and_edges(graph: Graph) -> None:
    path = "$path = any shortest $p knows{1,3} $q"
    subgraph = graph.subgraph(f'match {{ $p: Person {{ name: "a" }}  {path}  $q.name = "b" }} return {{ $path }}')
    assert set(subgraph.nodes) == {("Person", "a"), ("Person", "b")}
    assert len(subgraph.edges) == 1


def test_an_edge_alone_brings_its_endpoints_without_properties(graph: Graph) -> None:
    subgraph = graph.subgraph("match { $p: Person  $p $w:worksAt $c } return { $w }")
    assert subgraph.nodes == {("Person", "a"): {}, ("Company", "a"): {}}


def test_graphml_is_read_back_with_types(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.graphml"
    graph.subgraph("match { $p: Person  $p $k:knows $q } return { $p, $k, $q }").to_graphml(path)
    network = networkx.read_graphml(path, force_multigraph=True)
    assert network.nodes["Person/a"] == {
        "type": "Person", "id": "a", "name": "a", "age": 2**40, "score": 0.5, "born": "2000-01-02",
        "tags": '["<x>", "y"]', "active": True,
    }  # fmt: skip
    assert network.nodes["Person/b"] == {"type": "Person", "id": "b", "name": "b", "age": 3}
    assert network.number_of_edges() == 3


def test_a_result_without_entities_is_refused(graph: Graph) -> None:
    with pytest.raises(InputError, match="no nodes and no edges") as refusal:
        graph.subgraph("match { $p: Person } return { $p.name }")
    assert "return { $p, $e, $q }" in str(refusal.value.hint)
    assert not graph.subgraph("match { $p: Person  $p.age < 0 } return { $p }").nodes
