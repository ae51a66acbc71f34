"""Reads of a graph on a server return what an embedded graph returns."""

from datetime import date
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, Result
from omnigraph.errors import (
    BranchNotFound,
    EntityNotFound,
    GraphClosed,
    InputError,
    NotSupportedRemotely,
    ParseError,
    ServerUnreachable,
    TypeCheckError,
    UsageError,
)

NAMES = "match { $p: Person } return { $p.name } order { $p.name asc }"


def test_a_query_returns_a_result_with_the_commit_that_was_read(graph: Graph) -> None:
    result = graph.query("match { $p: Person  $p.age > $min } return { $p.name, $p.age }", min=36)
    assert isinstance(result, Result)
    assert result.to_records() == [("bob", 40)]
    assert result.columns == ("p.name", "p.age")
    assert result.commit_id == graph.head.id
    assert result.query_name == "anonymous"
    assert result.target == {"branch": graph.branch_name, "snapshot": None}


def test_parameters_keep_their_types(graph: Graph) -> None:
    graph.insert("Person", {"name": "cyd", "born": date(1990, 1, 2)})
    result = graph.query("match { $p: Person  $p.born = $born } return { $p.name, $p.born }", born=date(1990, 1, 2))
    assert result.to_records() == [("cyd", date(1990, 1, 2))]


def test_a_stream_yields_batches(graph: Graph) -> None:
    with graph.stream(NAMES) as stream:
        assert [row["p.name"] for row in stream.iter_rows()] == ["ada", "bob"]
    assert stream.commit_id == graph.head.id


def test_a_query_file_is_read_by_the_client(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.gq"
    path.write_text("query all() { match { $p: Person } return { $p.name } }\nquery none() { match")
    with pytest.raises(ParseError, match=r"people\.gq"):
        graph.query(path)
    path.write_text("query all() { match { $p: Person } return { count($p) as n } }")
    result = graph.query(path, name="all")
    assert (result.query_name, result.scalar()) == ("all", 2)


def test_language_errors_point_into_the_text_of_the_caller(graph: Graph) -> None:
    with pytest.raises(TypeCheckError) as raised:
        graph.query("match { $p: Person } return { $p.height }", unused=1)
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.line, diagnostic.column) == (1, 31)
    with pytest.raises(TypeCheckError, match="changes the graph") as refused:
        graph.query('insert Person { name: "zoe" }')
    assert "`mutate`" in (refused.value.hint or "")


def test_sets_of_nodes_and_edges(graph: Graph) -> None:
    people = graph.nodes("Person").filter("age > 36").select("name", "age")
    assert people.result().to_dicts() == [{"name": "bob", "age": 40}]
    assert graph.nodes("Person").count() == 2
    assert graph.edges("Knows").result().to_dicts()[0]["since"] == 2020


def test_single_nodes(graph: Graph) -> None:
    node = graph.node("Person", "ada")
    assert node is not None
    assert (node.id, node.age) == ("ada", 36)
    assert graph.node("Person", "nobody") is None
    with pytest.raises(EntityNotFound):
        graph["Person", "nobody"]


def test_past_states(graph: Graph) -> None:
    before = graph.head
    graph.insert("Person", {"name": "cyd"})
    assert graph.query(NAMES).num_rows == 3
    assert graph.query(NAMES, at=before.id).num_rows == 2
    past = graph.at("HEAD~1")
    assert past.query(NAMES).num_rows == 2
    assert past.head.id == before.id
    assert past.read_only
    assert past.at("HEAD~1").head.id == before.parent
    assert graph.at(before.published).head.id == before.id
    assert graph.at(graph.head.manifest_version).head.id == graph.head.id


def test_branches_of_a_call(graph: Graph) -> None:
    graph.insert("Person", {"name": "cyd"})
    assert graph.query(NAMES, branch="main").num_rows == 2
    assert graph.checkout("main").branch_name == "main"
    with pytest.raises(BranchNotFound):
        graph.checkout("nowhere")
    with pytest.raises(BranchNotFound):
        graph.query(NAMES, branch="nowhere")


def test_prepared_queries_plans_and_subgraphs(graph: Graph) -> None:
    prepared = graph.prepare("query older($min: I32) { match { $p: Person  $p.age > $min } return { $p.name } }")
    assert prepared.params == {"min": "I32"}
    assert prepared(min=36).scalars() == ["bob"]
    assert "Person" in str(graph.explain(NAMES))
    subgraph = graph.subgraph("match { $p: Person  $p $e:knows $q } return { $p, $e, $q }")
    assert (len(subgraph.nodes), len(subgraph.edges)) == (2, 1)


def test_exports_can_be_loaded_again(graph: Graph, tmp_path: Path) -> None:
    lines = list(graph.export())
    assert len(lines) == 3
    assert graph.export(tmp_path / "people.ndjson", types=["Person"]) == 2
    assert len((tmp_path / "people.ndjson").read_bytes().splitlines()) == 2
    copy = omnigraph.init(tmp_path / "copy", graph.schema.source, durability="os")
    (tmp_path / "all.ndjson").write_bytes(b"".join(lines))
    copy.load(tmp_path / "all.ndjson", mode="append")
    assert copy.nodes("Person").ids() == graph.nodes("Person").ids()


def test_the_schema(graph: Graph) -> None:
    assert graph.schema.node_types == ("Doc", "Person")
    assert "Knows" in graph.schema
    assert graph.schema["Person"].name == "Person"


def test_a_closed_graph_and_members_that_need_the_files(graph: Graph, url: str) -> None:
    assert graph.is_remote
    with pytest.raises(NotSupportedRemotely, match="`table` is not available") as raised:
        graph.table("Person")
    assert "graph.export" in str(raised.value.hint)
    other = omnigraph.open(url)
    other.close()
    with pytest.raises(GraphClosed):
        other.query(NAMES)


def test_wrong_locations_and_options(url: str, tmp_path: Path) -> None:
    with pytest.raises(BranchNotFound):
        omnigraph.open(url, branch="nowhere")
    with pytest.raises(UsageError, match="storage_options"):
        omnigraph.open(url, storage_options={})
    with pytest.raises(UsageError, match="token"):
        omnigraph.open(tmp_path / "g", token="t")
    with pytest.raises(InputError, match="is not the URL of a graph"):
        omnigraph.open(url.removesuffix("/graphs/default"))
    with pytest.raises(ServerUnreachable) as raised:
        omnigraph.open("http://127.0.0.1:1/graphs/default", retries=0)
    assert raised.value.effect == "none"
