"""Writes to a graph on a server: receipts, preconditions, idempotency keys, lost answers and retries."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    InputError,
    KeyConflict,
    NotSupportedRemotely,
    PreconditionFailed,
    ReadOnlyError,
    ServerUnreachable,
    TypeCheckError,
    Unauthenticated,
    UsageError,
)
from tests.rig.http_server import HttpServer, serving
from tests.server.conftest import make_graph


def test_records_become_one_commit_with_a_receipt(graph: Graph) -> None:
    receipt = graph.insert("Person", {"name": "cyd", "age": 1}, {"name": "dee"}, message="two more")
    assert receipt.commit is not None
    assert (dict(receipt.nodes), dict(receipt.edges)) == ({"Person": 2}, {})
    assert receipt.ids == {"Person": ["cyd", "dee"]}
    assert (receipt.commit.message, receipt.branch, receipt.replayed) == ("two more", graph.branch_name, False)
    assert graph.head.id == receipt.commit_id
    edges = graph.connect_nodes("Knows", [("cyd", "dee", {"since": 1999}), ("dee", "ada")])
    assert dict(edges.edges) == {"Knows": 2}
    assert graph.upsert("Person", {"name": "cyd", "bio": "x"}, {"name": "eve"}).affected_nodes == 2
    assert graph.patch("Person", {"name": "cyd", "age": 2}).affected_nodes == 1
    node = graph["Person", "cyd"]
    assert (node.age, node.bio) == (2, "x")


def test_times_tables_and_blobs_can_be_written(graph: Graph) -> None:
    import pyarrow as pa

    seen = datetime(2024, 1, 31, 12, tzinfo=UTC)
    graph.insert("Person", pa.table({"name": ["t1", "t2"], "seen": [seen, None]}))
    assert graph["Person", "t1"].seen == seen
    graph.insert("Doc", {"slug": "d", "body": b"\x00bytes"})
    assert graph.node("Doc", "d") is not None


def test_mutations_updates_and_deletes(graph: Graph) -> None:
    receipt = graph.mutate("insert Person { name: $who, age: 7 }", who="cyd")
    assert (receipt.affected_nodes, receipt.query_name) == (1, "anonymous")
    assert graph.update("Person", where="age < $limit", set={"age": 8}, limit=8).affected_nodes == 1
    assert graph["Person", "cyd"].age == 8
    deleted = graph.delete("Person", where="name = 'ada'")
    assert (dict(deleted.nodes), dict(deleted.edges)) == ({"Person": 1}, {"Knows": 1})
    assert not graph.delete("Person", where="name = 'nobody'")
    with pytest.raises(TypeCheckError, match="query"):
        graph.mutate("match { $p: Person } return { $p.name }")


def test_a_duplicate_suggests_upsert(graph: Graph) -> None:
    with pytest.raises(KeyConflict) as raised:
        graph.insert("Person", {"name": "ada"})
    assert raised.value.hint == "use `upsert` to change existing entities"
    assert raised.value.effect == "none"


def test_preconditions_and_idempotency_keys(graph: Graph) -> None:
    head = graph.head.id
    first = graph.insert("Person", {"name": "cyd"}, if_commit=head, idempotency_key="k1")
    again = graph.insert("Person", {"name": "cyd"}, idempotency_key="k1")
    assert (again.commit_id, again.replayed) == (first.commit_id, True)
    with pytest.raises(PreconditionFailed):
        graph.insert("Person", {"name": "dee"}, if_commit=head)


def test_graphs_that_reject_writes(graph: Graph, url: str) -> None:
    with pytest.raises(ReadOnlyError):
        graph.at("HEAD").insert("Person", {"name": "x"})
    with omnigraph.open(url, read_only=True) as reader, pytest.raises(ReadOnlyError):
        reader.insert("Person", {"name": "x"})
    with pytest.raises(NotSupportedRemotely, match="actor"):
        graph.insert("Person", {"name": "x"}, actor="eve")
    with pytest.raises(BranchNotFound):
        graph.insert("Person", {"name": "x"}, branch="nowhere")
    with pytest.raises(UsageError, match="unknown option"):
        graph.insert("Person", {"name": "x"}, wrong=1)  # type: ignore[call-arg]


@contextmanager
def breaking_proxy(server: HttpServer, *, lost_answers: int) -> Iterator[str]:
    """A proxy that forwards requests, but closes the connection instead of sending the first answers to writes."""
    listener = socket.create_server(("127.0.0.1", 0))
    remaining_losses, is_write = [lost_answers], threading.Event()

    def forward(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", server.port)) as upstream:
            answers = threading.Thread(target=forward_answers, args=(client, upstream), daemon=True)
            answers.start()
            while request := client.recv(1 << 16):
                if request.startswith(b"POST"):
                    is_write.set()
                upstream.sendall(request)
            upstream.shutdown(socket.SHUT_RDWR)
            answers.join()

    def forward_answers(client: socket.socket, upstream: socket.socket) -> None:
        while answer := upstream.recv(1 << 16):
            if is_write.is_set() and remaining_losses[0] > 0:
                remaining_losses[0] -= 1
                is_write.clear()
                client.shutdown(socket.SHUT_RDWR)
                return
            client.sendall(answer)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=forward, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/graphs/default"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_a_write_whose_answer_is_lost_is_sent_again_and_applied_once(graph: Graph, server: HttpServer) -> None:
    with breaking_proxy(server, lost_answers=2) as url, omnigraph.open(url, branch=graph.branch_name) as proxied:
        receipt = proxied.insert("Person", {"name": "cyd"})
    assert receipt.commit_id == graph.head.id
    assert not receipt.replayed
    assert graph.head.parent == graph.log()[1].id
    assert graph.nodes("Person").count() == 3


def test_the_effect_is_unknown_if_every_answer_is_lost(graph: Graph, server: HttpServer) -> None:
    with (
        breaking_proxy(server, lost_answers=9) as url,
        omnigraph.open(url, branch=graph.branch_name, retries=1) as proxied,
        pytest.raises(ServerUnreachable) as raised,
    ):
        proxied.insert("Person", {"name": "cyd"})
    assert raised.value.effect == "unknown"


def test_a_branch_block_merges_or_drops_its_branch(graph: Graph) -> None:
    names = list(graph.branches)
    with graph.branch("scratch", on_exit="drop") as branch:
        branch.insert("Person", {"name": "cyd"})
    with graph.branch("import", on_exit="merge") as branch:
        branch.insert("Person", {"name": "dee"})
    with graph.branch("merged", on_exit="merge") as branch:
        graph.merge("merged", delete_branch=True)
    assert list(graph.branches) == names
    assert graph.nodes("Person").count() == 3
    unknown: Any = "push"
    with pytest.raises(InputError, match="'push'"), graph.branch("import", on_exit=unknown):
        pass


def test_tokens_come_from_the_option_or_the_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("tokens")
    uri = make_graph(folder / "graph")
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"act-ada": "secret-token-of-ada"}'}
    with serving(folder, uri, variables=variables, token="secret-token-of-ada") as running:
        url = f"http://{running.address}/graphs/default"
        with pytest.raises(Unauthenticated):
            omnigraph.open(url)
        with omnigraph.open(url, token="secret-token-of-ada") as graph:
            assert graph.actor == "act-ada"
            assert "secret" not in repr(graph)
        monkeypatch.setenv("OMNIGRAPH_TOKEN", "secret-token-of-ada")
        with omnigraph.open(url) as graph:
            assert graph.nodes("Person").count() == 2
