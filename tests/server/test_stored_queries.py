"""Stored queries over HTTP: cases 18, 19 and 20 of the server's conformance list."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.deployments import Deployment
from tests.rig.http_server import HttpServer, start_server
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"
QUERIES = """
query adults($min: I32) @description("People of an age") {
    match { $p: Person  $p.age >= $min }
    return { $p.name, $p.age }
}
query find($name: String) { match { $p: Person  $p.name = $name } return { $p.name } }
query add($name: String) { insert Person { name: $name } }
"""
TOKENS = {
    "ann": {"token": "ann-token", "permission": "write"},
    "rita": {"token": "rita-token", "permission": "read"},
}


@pytest.fixture(scope="module")
def stored(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with stored queries and tokens."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "queries").mkdir()
    (folder / "queries" / "people.gq").write_text(QUERIES)
    uri = make_graph(deployment.new_root(folder))
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}
    arguments = (uri, "--queries", str(folder / "queries"))
    with deployment.serving(folder, *arguments, variables=variables, token="ann-token") as server:
        yield server


def test_the_catalog_lists_queries_with_their_parameters(stored: HttpServer) -> None:
    queries = stored.get(f"{GRAPH}/queries").json()["queries"]
    assert [(query["name"], query["mutation"]) for query in queries] == [
        ("add", True),
        ("adults", False),
        ("find", False),
    ]
    assert queries[1]["params"] == [{"name": "min", "kind": "int", "nullable": False}]
    assert queries[1]["description"] == "People of an age"


def test_a_stored_query_runs_by_name(stored: HttpServer) -> None:
    reply = stored.post(f"{GRAPH}/queries/adults", {"params": {"min": 37}})
    assert reply.json()["rows"] == [{"p.name": "bob", "p.age": 40}]
    wrong = stored.post(f"{GRAPH}/queries/adults", {"params": {"min": "many"}})
    assert wrong.status == 400
    assert stored.post(f"{GRAPH}/queries/adults", b"").status == 400, "the parameter is missing"
    assert stored.post(f"{GRAPH}/queries/adults?branch=main", {"params": {"min": 1}, "branch": "other"}).status == 400


def test_a_stored_read_by_get_is_not_repeated_for_an_unchanged_graph(stored: HttpServer) -> None:
    first = stored.get(f"{GRAPH}/queries/adults?min=37")
    assert first.json()["row_count"] == 1
    same = stored.get(f"{GRAPH}/queries/adults?min=37", headers={"If-None-Match": first.headers["etag"]})
    assert (same.status, same.body) == (304, b"")
    other = stored.get(f"{GRAPH}/queries/adults?min=1", headers={"If-None-Match": first.headers["etag"]})
    assert other.status == 200
    assert stored.get(f"{GRAPH}/queries/find?name=ada").json()["rows"] == [{"p.name": "ada"}]
    for bad in ("adults?min=x", "adults?min=1&max=2", "add?name=x"):
        assert stored.get(f"{GRAPH}/queries/{bad}").status == 400


def test_case_20_the_expected_kind_is_checked(stored: HttpServer) -> None:
    head = stored.head()
    body = {"params": {"name": "x"}, "expect_mutation": False}
    assert stored.post(f"{GRAPH}/queries/add", body).status == 400
    assert stored.post(f"{GRAPH}/queries/add", {"params": {"name": "x"}, "snapshot": "HEAD"}).status == 400
    assert stored.head() == head


def test_a_stored_mutation_writes_and_takes_a_condition(stored: HttpServer) -> None:
    head = stored.head()
    headers = {"Omnigraph-If-Graph-Commit": head}
    written = stored.post(f"{GRAPH}/queries/add/if-graph-commit", {"params": {"name": "c1"}}, headers=headers)
    assert written.json()["commit"]["parent_commit_id"] == head
    lost = stored.post(f"{GRAPH}/queries/add/if-graph-commit", {"params": {"name": "c2"}}, headers=headers)
    assert lost.status == 412
    read = stored.post(f"{GRAPH}/queries/adults/if-graph-commit", {"params": {"min": 1}}, headers=headers)
    assert read.status == 400


def test_case_18_an_unknown_name_tells_nothing(stored: HttpServer) -> None:
    replies = [stored.post(f"{GRAPH}/queries/{name}", b"{broken") for name in ("nothing", "other")]
    assert [reply.status for reply in replies] == [404, 404]
    assert replies[0].json()["error"] == "stored query not found"
    assert "nothing" not in replies[0].body.decode()


def test_case_19_a_reader_may_not_run_a_stored_mutation(stored: HttpServer) -> None:
    assert stored.post(f"{GRAPH}/queries/add", {"params": {"name": "x"}}, token="rita-token").status == 403
    assert stored.post(f"{GRAPH}/queries/adults", {"params": {"min": 1}}, token="rita-token").status == 200


def test_a_stored_query_that_does_not_fit_quarantines_the_graph(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "wrong.gq").write_text("query q() { match { $p: Person } return { $p.nmae } }")
    uri = make_graph(tmp_path / "graph")
    with pytest.raises(RuntimeError, match="no graph can be served"):
        start_server(tmp_path, uri, "--unauthenticated", "--queries", str(tmp_path / "queries"))
