"""`graph.queries` calls the queries that are stored on a server like functions."""

import asyncio
import inspect
import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any
from unittest.mock import Mock, call

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import GraphClosed, InputError, ParameterError, ReadOnlyError, StoredQueryNotFound
from tests.rig.http_server import serving

SCHEMA = "node Person { name: String @key  age: I32?  born: Date?  seen: DateTime?  photo: Blob?  near: Vector(2)? }"
QUERIES = """
query adults($min: I32, $since: Date?) @description("People of an age") @instruction("Ask for an age first") {
    match { $p: Person  $p.age >= $min }
    return { $p.name, $p.age }
    order { $p.name }
}
query find($born: [Date], $seen: DateTime, $near: Vector(2)) {
    match { $p: Person  $p.born in $born  $p.seen = $seen }
    return { $p.name }
    order { nearest($p.near, $near) }
    limit 1
}
query add($name: String, $age: I32?, $photo: Blob?) { insert Person { name: $name, age: $age, photo: $photo } }
query born($from: Date, $class: String?, $age: I32?, $params: I32?) {
    match { $p: Person  $p.born >= $from }
    return { $p.name }
}
query values() { match { $p: Person } return { count($p) as n } }
"""
SEEN = datetime(2024, 1, 31, 10, tzinfo=UTC)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a graph with stored queries."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "queries").mkdir()
    (folder / "queries" / "people.gq").write_text(QUERIES)
    ada = {"name": "ada", "age": 36, "born": date(1815, 12, 10), "seen": SEEN, "near": [1.0, 0.0]}
    omnigraph.init(folder / "g", SCHEMA, durability="os").insert("Person", ada, {"name": "bo", "age": 12})
    options = ("--queries", str(folder / "queries"), "--unauthenticated")
    with serving(folder, str(folder / "g"), *options) as server:
        yield f"http://{server.address}/graphs/default"


@pytest.fixture
def graph(url: str, request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A graph on a branch of this test."""
    with omnigraph.open(url) as main:
        yield main.branches.create(f"c/{request.node.name}"[:100])


def test_stored_queries_are_found_by_name(graph: Graph) -> None:
    assert graph.queries.names() == ["add", "adults", "born", "find", "values"]
    assert [query.name for query in graph.queries.values()] == graph.queries.names()
    assert graph.queries.get("other") is None
    queries = graph.queries
    assert list(queries) == queries.names()
    assert ("adults" in queries, "other" in queries, len(queries)) == (True, False, 5)
    assert queries["values"].name == "values", "a query may have the name of a method"
    with pytest.raises(StoredQueryNotFound) as raised:
        queries["adult"]
    assert raised.value.hint == "did you mean `adults`?"
    with pytest.raises(AttributeError, match=r"no stored query named 'adult'; did you mean `adults`\?"):
        queries.adult  # noqa: B018 - the attribute is looked up
    assert repr(queries).startswith("<StoredQueries of RemoteGraph('http")


def test_a_stored_query_describes_itself(graph: Graph) -> None:
    adults = graph.queries.adults
    assert (adults.kind, dict(adults.params)) == ("read", {"min": "int", "since": "date?"})
    assert (adults.__doc__, adults.instruction) == ("People of an age", "Ask for an age first")
    assert str(inspect.signature(adults)) == "(*, min: 'int', since: 'date?' = None)"
    assert repr(adults) == "<StoredQuery read: adults($min: int, $since: date?)>"
    assert graph.queries.add.__doc__ == "Run the stored query `add`."
    assert dict(graph.queries.find.params) == {"born": "[date]", "seen": "datetime", "near": "vector(2)"}


def test_a_parameter_may_be_named_like_a_python_keyword(graph: Graph) -> None:
    born = graph.queries.born
    assert born(**{"from": date(1800, 1, 1)}).scalars() == ["ada"]
    assert str(inspect.signature(born)) == "(*, age: 'int?' = None, params: 'int?' = None, **params_)"
    assert repr(born) == "<StoredQuery read: born($from: date, $class: string?, $age: int?, $params: int?)>"


def test_the_list_of_queries_is_read_once_per_graph_and_again_after_a_refresh(
    graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = graph._handle.exchange
    get = Mock(wraps=exchange.get)
    monkeypatch.setattr(exchange, "get", get)
    assert graph.queries.adults is graph.queries["adults"]
    assert len(graph.queries) == 5
    assert get.mock_calls == [call("queries")]
    assert graph.refresh().queries.names() == ["add", "adults", "born", "find", "values"]
    assert get.mock_calls == [call("queries")] * 2


def test_names_are_completed(graph: Graph) -> None:
    queries: Any = graph.queries
    assert queries._ipython_key_completions_() == queries.names()
    assert set(queries.names()) <= set(dir(queries))


def test_a_stored_read_runs_on_the_branch_or_commit_of_the_graph(graph: Graph) -> None:
    before = graph.at("HEAD")
    graph.insert("Person", {"name": "cy", "age": 40})
    result = graph.queries.adults(min=18)
    assert (result.to_dicts(), result.query_name) == (
        [{"p.name": "ada", "p.age": 36}, {"p.name": "cy", "p.age": 40}],
        "adults",
    )
    assert (result.commit_id, result.params) == (graph.head.id, {"min": 18})
    assert before.queries.adults(min=18).scalars("p.name") == ["ada"]
    assert graph.queries["values"]().scalar() == 3


def test_python_values_are_converted_to_the_parameter_types(graph: Graph) -> None:
    assert graph.queries.find(born=[date(1815, 12, 10)], seen=SEEN, near=(1.0, 0.0)).scalars() == ["ada"]
    graph.queries.add(name="dee", photo=b"\x00pixels")
    assert graph.blob("Person", "dee", "photo").read() == b"\x00pixels"


def test_a_stored_mutation_makes_a_commit(graph: Graph) -> None:
    receipt = graph.queries.add(name="eve", age=7)
    assert (receipt.nodes, receipt.query_name, receipt.branch) == ({"Person": 1}, "add", graph.branch_name)
    assert graph["Person", "eve"]["age"] == 7
    with pytest.raises(ReadOnlyError):
        graph.at("HEAD").queries.add(name="fay")


def test_wrong_parameters_raise_the_errors_of_a_query(graph: Graph) -> None:
    with pytest.raises(ParameterError, match="min"):
        graph.queries.adults(min="many")
    with pytest.raises(InputError, match="max"):
        graph.queries.adults(min=1, max=2)
    with pytest.raises(ParameterError):
        graph.queries.adults()


def test_a_closed_graph_lists_no_queries(url: str) -> None:
    with omnigraph.open(url) as graph:
        adults = graph.queries.adults
    with pytest.raises(GraphClosed):
        graph.queries  # noqa: B018 - the property is read
    with pytest.raises(GraphClosed):
        adults(min=1)


def test_stored_queries_are_called_asynchronously(url: str) -> None:
    async def use() -> None:
        async with await omnigraph.aopen(url) as graph:
            queries = graph.queries
            assert [name async for name in queries] == await queries.names() == graph.sync.queries.names()
            assert (await queries.adults(min=18)).scalars("p.name") == ["ada"]
            adults = await queries["adults"]
            assert (adults.name, adults.__doc__, dict(adults.params)["min"]) == ("adults", "People of an age", "int")
            assert (await adults(min=18)).num_rows == 1
            assert [query.kind for query in await queries.values()] == ["mutation", *["read"] * 4]
            assert await queries.get("other") is None
            found = await queries.get("add")
            assert found is not None
            assert found.instruction is None
            assert "adults" in dir(queries)
            with pytest.raises(AttributeError, match="other"):
                await queries.other()

    asyncio.run(use())


def test_a_pickled_graph_reads_the_list_again(graph: Graph) -> None:
    assert "adults" in graph.queries.names()
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.queries.names() == graph.queries.names()
