"""Limits of a server for single results, and their documented statuses."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ResourceLimitExceeded
from tests.rig.http_server import HttpServer, Reply, serving

GRAPH = "/graphs/default"
NAMES = "match { $p: Person } return { $p.name }"
BIOS = "match { $p: Person } return { $p.bio } limit 2"
STREAMED = ["application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server that returns at most three rows and 4000 bytes."""
    folder = tmp_path_factory.mktemp("limits")
    graph = omnigraph.init(folder / "graph", "node Person { name: String @key  bio: String }", durability="os")
    graph.insert("Person", *({"name": f"p{number}", "bio": "x" * 3000} for number in range(4)))
    with serving(folder, graph.uri, "--unauthenticated", "--max-rows", "3", "--max-result-bytes", "4000") as running:
        yield running


def limit_of(reply: Reply) -> tuple[int, str, int]:
    exceeded = reply.json()["resource_limit"]
    return reply.status, exceeded["resource"], exceeded["limit"]


def test_a_result_with_too_many_rows_is_413(server: HttpServer) -> None:
    assert limit_of(server.query(NAMES)) == (413, "result_rows", 3)
    assert len(server.rows(f"{NAMES} limit 3")) == 3


def test_a_result_that_is_too_large_is_413(server: HttpServer) -> None:
    assert limit_of(server.query(BIOS)) == (413, "result_bytes", 4000)


@pytest.mark.parametrize("media_type", STREAMED)
def test_a_streamed_result_beyond_a_limit_is_never_complete(server: HttpServer, media_type: str) -> None:
    for text, resource in ((NAMES, "result_rows"), (BIOS, "result_bytes")):
        try:
            reply = server.post(f"{GRAPH}/query", {"query": text}, headers={"Accept": media_type})
        except http.client.IncompleteRead:
            continue  # the response had begun
        assert limit_of(reply)[:2] == (413, resource)


def test_the_limits_are_listed(server: HttpServer) -> None:
    limits = server.get(f"{GRAPH}/limits").json()
    assert (limits["result_rows"], limits["result_bytes"], limits["query_memory_bytes"]) == (3, 4000, 4 << 30)


def test_a_query_beyond_its_memory_is_413(server: HttpServer, tmp_path: Path) -> None:
    uri = str(server.log.parent / "graph")
    with serving(tmp_path, uri, "--unauthenticated", "--query-memory", "1") as limited:
        assert limit_of(limited.query(f"{NAMES} order {{ $p.name }}")) == (413, "query_memory_bytes", 1)


def test_workers_share_the_memory_for_queries(server: HttpServer, tmp_path: Path) -> None:
    uri = str(server.log.parent / "graph")
    with serving(tmp_path, uri, "--unauthenticated", "--workers", "2") as pair:
        assert pair.get(f"{GRAPH}/limits").json()["query_memory_bytes"] == 2 << 30


def test_parameters_may_be_as_large_as_a_load(server: HttpServer) -> None:
    text = "x" * (3 << 20)
    query = {"query": "query find($bio: String) { match { $p: Person  $p.bio = $bio } return { $p.name } }"}
    assert server.post(f"{GRAPH}/query", {**query, "params": {"bio": text}}).json()["rows"] == []
    mutation = 'query set($bio: String) { update Person set { bio: $bio } where name = "nobody" }'
    assert server.post(f"{GRAPH}/mutate", {"query": mutation, "params": {"bio": text}}).status == 200


@pytest.mark.parametrize("is_option", [True, False])
def test_the_limit_for_queries_is_an_option_and_an_environment_variable(
    server: HttpServer, tmp_path: Path, is_option: bool
) -> None:
    uri = str(server.log.parent / "graph")
    arguments = ("--max-query-bytes", "2000") if is_option else ()
    variables = {} if is_option else {"OMNIGRAPH_MAX_QUERY_BYTES": "2000"}
    with serving(tmp_path, uri, "--unauthenticated", *arguments, variables=variables) as limited:
        assert limited.get(f"{GRAPH}/limits").json()["query_bytes"] == 2000
        for path in ("query", "mutate", "explain"):
            reply = limited.post(f"{GRAPH}/{path}", {"query": NAMES, "params": {"x": "x" * 2000}})
            assert limit_of(reply) == (413, "query_request_bytes", 2000)


def test_records_beyond_the_limit_suggest_a_load(server: HttpServer, tmp_path: Path) -> None:
    uri = str(server.log.parent / "graph")
    records = [{"name": f"n{number}", "bio": "x" * 100} for number in range(100)]
    with (
        serving(tmp_path, uri, "--unauthenticated", "--max-load-bytes", "4000") as limited,
        omnigraph.open(f"http://{limited.address}{GRAPH}", branch="main") as graph,
    ):
        for write, mode in ((graph.insert, "append"), (graph.patch, "patch")):
            with pytest.raises(ResourceLimitExceeded) as caught:
                write("Person", records)
            assert caught.value.hint == (
                f'write fewer records at once, or use graph.load({{"Person": …}}, mode="{mode}"), '
                "which sends large input in parts"
            )
        with pytest.raises(ResourceLimitExceeded) as caught:
            graph.upsert("Person", records)
        assert caught.value.hint == "write fewer records at once"
