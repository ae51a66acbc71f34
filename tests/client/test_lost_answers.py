"""A change to a graph on a server whose answer is lost is applied once, and its result still arrives."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import AlreadyExists, InputError, NotSupportedRemotely, ServerUnreachable
from tests.rig.http_proxy import Canned, HttpProxy, proxying
from tests.rig.http_server import HttpServer

Request = Callable[[Graph], Any]
REQUESTS: dict[str, Request] = {
    "merge": lambda graph: graph.merge("c/draft", delete_branch=True),
    "function": lambda graph: graph.merge("c/draft", strategy=lambda _: "theirs"),
    "revert": lambda graph: graph.revisions.revert("HEAD"),
    "cherry-pick": lambda graph: graph.revisions.cherry_pick("c/draft"),
    "reset": lambda graph: graph.branches.reset(graph.branch_name, to="HEAD~1"),
    "session": lambda graph: graph.branches.merge_session("c/draft").resolve_all("theirs").commit(),
}


@pytest.fixture
def proxy(server: HttpServer) -> Iterator[HttpProxy]:
    """A proxy in front of the server."""
    with proxying(server.port) as running:
        yield running


@pytest.fixture
def proxied(graph: Graph, proxy: HttpProxy) -> Iterator[Graph]:
    """The graph behind the proxy. The branch `c/draft` disagrees with it about ada's age."""
    if "c/draft" in graph.branches:
        graph.branches.delete("c/draft", force=True)
    graph.branches.create("c/draft").upsert("Person", {"name": "ada", "age": 5}, {"name": "dee"})
    graph.insert("Person", {"name": "own"})
    with omnigraph.open(proxy.url, branch=graph.branch_name) as opened:
        yield opened


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_whose_answer_is_lost_is_sent_again(name: str, proxied: Graph, proxy: HttpProxy) -> None:
    segment = {"function": "if-graph-commit", "session": "if-graph-commit"}.get(name, name)
    head = proxied.head.id
    proxy.lost_segments.append(segment)
    result = REQUESTS[name](proxied)
    assert proxy.paths("POST").count(segment) == 2
    assert not result.replayed
    assert (result.outcome, result.target) == ("merged", head)
    assert proxied.head.id == result.commit.id
    assert result.commit.parents[0] == head
    assert result.branch_delete_error is None


def test_a_schema_change_whose_answer_is_lost_is_sent_again(proxied: Graph, proxy: HttpProxy) -> None:
    wider = proxied.schema.source.replace("age: I32?", "age: I64?")
    proxy.lost_segments.append("apply")
    applied = proxied.schema.apply(wider)
    assert proxy.paths("POST").count("apply") == 2
    assert applied.commit is not None
    assert (proxied.head.id, len(applied.steps), applied.replayed) == (applied.commit.id, 1, False)


def test_a_request_is_not_sent_again_after_a_program_restarts_without_its_key(proxied: Graph, proxy: HttpProxy) -> None:
    impatient = omnigraph.open(proxy.url, branch=proxied.branch_name, retries=0)
    proxy.lost_segments.append("merge")
    with pytest.raises(ServerUnreachable) as raised:
        impatient.merge("c/draft", delete_branch=True, idempotency_key="restart")
    assert raised.value.effect == "unknown"
    result = impatient.merge("c/draft", delete_branch=True, idempotency_key="restart")
    assert (result.outcome, result.replayed, result.branch_deleted) == ("merged", True, True)


def test_a_function_cannot_be_combined_with_a_key(proxied: Graph) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: proxied.merge("c/draft", strategy=lambda _: "ours", idempotency_key="k"),
        lambda: proxied.revisions.revert("HEAD", strategy=lambda _: "ours", idempotency_key="k"),
    ]
    for call in calls:
        with pytest.raises(NotSupportedRemotely, match="function"):
            call()


# Branches and tags ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["branches", "tags"])
def test_a_deletion_whose_answer_is_lost_has_succeeded(method: str, proxied: Graph, proxy: HttpProxy) -> None:
    facet = getattr(proxied, method)
    facet.create("lost-x")
    proxy.lost_segments.append("lost-x")
    facet.delete("lost-x")
    assert proxy.paths("DELETE") == ["lost-x"]
    assert "lost-x" not in facet


def test_a_deletion_that_did_not_arrive_is_not_sent_again(proxied: Graph, proxy: HttpProxy) -> None:
    proxied.branches.create("kept-x")
    proxy.answers.append(Canned(502, b"", {}))
    with pytest.raises(omnigraph.errors.OmnigraphError) as raised:
        proxied.branches.delete("kept-x")
    assert raised.value.effect == "unknown"
    assert proxy.paths("DELETE") == ["kept-x"]
    proxied.branches.delete("kept-x")


def test_a_creation_whose_answer_is_lost_can_be_settled_with_exist_ok(proxied: Graph, proxy: HttpProxy) -> None:
    proxy.lost_segments.append("branches")
    with pytest.raises(ServerUnreachable) as raised:
        proxied.branches.create("made-x")
    assert raised.value.effect == "unknown"
    with pytest.raises(AlreadyExists):
        proxied.branches.create("made-x")
    proxy.lost_segments.append("branches")
    created = proxied.branches.create("made-y", exist_ok=True)
    assert created.branch_name == "made-y"
    assert proxy.paths("POST").count("branches") == 4
    for name in ("made-x", "made-y"):
        proxied.branches.delete(name)


def test_a_key_of_another_merge_is_rejected(proxied: Graph) -> None:
    proxied.merge("c/draft", strategy="theirs", idempotency_key="other")
    with pytest.raises(InputError, match="a different request"):
        proxied.merge("c/draft", strategy="ours", idempotency_key="other")
