"""The messages of errors and objects of a server and its clients."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InputError, PermissionDenied, ServerUnreachable
from omnigraph.server.access.permissions import Principal, authorize
from tests.rig.timeouts import PATIENCE


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        accepted: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    accepted.append(listener.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/graphs/default"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
        for connection in accepted:
            connection.close()


def test_a_reused_key_is_shown_as_the_caller_passed_it(graph: Graph) -> None:
    graph.insert("Person", {"name": "k1"}, idempotency_key="key-1")
    with pytest.raises(InputError, match=r"^idempotency key 'key-1' was already used for a different request$"):
        graph.insert("Person", {"name": "k2"}, idempotency_key="key-1")


def test_an_unknown_type_suggests_a_type_and_no_file(graph: Graph) -> None:
    with pytest.raises(InputError) as caught:
        graph.insert("Persn", {"name": "k1"})
    assert caught.value.hint == "did you mean `Person`?"
    with pytest.raises(InputError) as caught:
        graph.insert("Zzzzzzzz", {"name": "k1"})
    assert caught.value.hint is not None
    assert "Person" in caught.value.hint
    assert "CSV" not in caught.value.hint


def test_a_denied_action_is_described_in_words() -> None:
    with pytest.raises(PermissionDenied, match=r"^actor 'ann' is not allowed to run maintenance\b") as caught:
        authorize(Principal("ann", "read"), "admin")
    assert (caught.value.action, caught.value.actor) == ("admin", "ann")


def test_a_server_without_a_graph_names_its_address_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "omnigraph", "serve", "nonexist", "--bind", "127.0.0.1:0", "--unauthenticated"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1
    assert "graph 'default' is quarantined: no graph at nonexist" in ended.stderr
    assert f"error: invalid configuration: no graph can be served: no graph at {tmp_path}/nonexist" in ended.stderr


def test_a_time_out_says_how_long_the_client_waited() -> None:
    with silent_server() as url, pytest.raises(ServerUnreachable) as caught:
        omnigraph.open(url, timeout=0.05, retries=0)
    error = caught.value
    address = url.partition("/graphs")[0]
    assert error.message == f"the server at {address} did not answer within 0.05 seconds"
    assert (error.effect, error.hint) == ("none", "pass a larger `timeout`, or check that the server is running")


def test_a_write_that_times_out_may_have_been_applied(graph: Graph) -> None:
    from omnigraph.client.exchange import Exchange
    from omnigraph.client.locations import parse_graph_address
    from omnigraph.client.retries import RetryPolicy

    with silent_server() as url:
        exchange = Exchange(parse_graph_address(url), timeout=0.05, policy=RetryPolicy(retries=0))
        with pytest.raises(ServerUnreachable) as caught:
            exchange.post("mutate", body={"query": "…"})
        exchange.close()
    assert caught.value.effect == "unknown"
    assert caught.value.hint == (
        "the write may have been applied; repeat it with the same idempotency key, "
        "or check whether the data has changed"
    )


def test_pages_of_changes_show_their_content(graph: Graph) -> None:
    start = graph.changes.poll("now").cursor
    graph.insert("Person", {"name": "r1"}, {"name": "r2"})
    page = graph.changes.poll(cursor=start)
    assert repr(page) == f"RemoteChangePage(blocks=1, cursor='{page.cursor}', caught_up=True)"
    commit_page = graph.changes.commit_page(graph.head.id, limit=1)
    assert repr(commit_page).startswith(f"RemoteCommitPage(<ChangeBlock {graph.head.id}: ")
