"""Workers that die while they start, and reloads (SIGHUP) that are disturbed in this way."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.http_writers import SCHEMA, Writers, check_writes
from tests.rig.timeouts import PATIENCE
from tests.server.conftest import make_graph

EXIT_MESSAGE = "a worker exited unexpectedly"
PEOPLE = "match { $p: Person } return { $p.name }"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_graph(tmp_path_factory.mktemp("reloads") / "graph")


def reload_and_wait(server: HttpServer) -> None:
    """Replace all workers, and wait until none of the old ones runs."""
    before = workers_of(server)
    server.signal(signal.SIGHUP)
    wait_until(lambda: not workers_of(server) & before)


def test_a_worker_killed_during_its_replacement_is_replaced_once(uri: str, tmp_path: Path) -> None:
    with serving(tmp_path, uri, "--unauthenticated") as server:
        (old,) = workers_of(server)
        server.signal(signal.SIGHUP)
        wait_until(lambda: len(workers_of(server)) == 2)
        (successor,) = workers_of(server) - {old}
        os.kill(successor, signal.SIGSTOP)  # it cannot become ready before the old worker is missed
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: EXIT_MESSAGE in server.log.read_text())
        os.kill(successor, signal.SIGCONT)
        assert server.query(PEOPLE).status == 200, "the connection waits for the successor"
        assert workers_of(server) == {successor}
        reload_and_wait(server)
        assert server.query(PEOPLE).status == 200
        assert len(workers_of(server)) == 1


def test_a_reload_is_repeated_until_a_successor_starts(uri: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"ann": {"token": "old", "permission": "admin"}}')
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    with serving(tmp_path, uri, variables=variables, token="old") as server:
        tokens.write_text("not JSON")
        server.signal(signal.SIGHUP)
        wait_until(lambda: EXIT_MESSAGE in server.log.read_text())
        assert server.query(PEOPLE).status == 200, "the old worker serves on"
        tokens.write_text('{"ann": {"token": "new", "permission": "admin"}}')
        wait_until(lambda: server.get("/whoami", token="new").status == 200)
        wait_until(lambda: len(workers_of(server)) == 1)
        assert server.get("/whoami", token="old").status == 401


def test_workers_killed_during_startup_are_replaced_without_growing_delays(uri: str, tmp_path: Path) -> None:
    with serving(tmp_path, uri, "--unauthenticated", "--log-format", "json") as server:
        for count in range(1, 5):
            (worker,) = workers_of(server)
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda count=count: len(restart_delays(server)) == count)  # type: ignore[misc]
            wait_until(lambda: len(workers_of(server)) == 1)
        assert server.query(PEOPLE).status == 200
    assert restart_delays(server) == [0.0, 0.5, 0.5, 0.5]


def restart_delays(server: HttpServer) -> list[float]:
    """The delays that the log reports for the workers that ended."""
    events = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [event["restart_delay"] for event in events if EXIT_MESSAGE in event["message"]]


class PythonClients:
    """Threads that write and read through remote graphs until they are stopped; nothing that fails is repeated here."""

    def __init__(self, url: str, count: int) -> None:
        self._url, self._stop = url, threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(f"python{number}",)) for number in range(count)]
        self.commit_ids: dict[str, str] = {}
        self.failures: list[str] = []

    def __enter__(self) -> "PythonClients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a request is blocked"

    def _run(self, name: str) -> None:
        try:
            with omnigraph.open(self._url) as graph:
                while not self._stop.is_set():
                    self._write_and_read(graph, f"{name}-{len(self.commit_ids)}")
        except Exception as error:
            self.failures.append(repr(error))

    def _write_and_read(self, graph: Graph, text: str) -> None:
        receipt = graph.mutate("query add($t: String) { insert Mark { text: $t } }", t=text)
        assert receipt.commit_id is not None
        self.commit_ids[text] = receipt.commit_id
        rows = graph.query("query find($t: String) { match { $m: Mark  $m.text = $t } return { $m.text } }", t=text)
        assert len(rows) == 1, "a client reads its own writes"


@pytest.mark.full
@pytest.mark.timeout(900)
def test_twenty_reloads_under_load_fail_no_request(tmp_path: Path) -> None:
    uri = omnigraph.init(tmp_path / "graph", SCHEMA, durability="os").uri
    reads = 0
    # The writers keep their connections open, each read opens its own, and the Python clients do as they do for users.
    with (
        serving(tmp_path, uri, "--unauthenticated", "--workers", "2") as server,
        Writers([server], 2) as writers,
        PythonClients(f"http://{server.address}/graphs/default", 2) as clients,
    ):
        for _ in range(20):
            before = workers_of(server)
            server.signal(signal.SIGHUP)
            while workers_of(server) & before:
                assert server.query("match { $m: Mark } return { $m.text } limit 1").status == 200
                reads += 1
    print(f"{reads} reads, {len(clients.commit_ids)} writes of Python clients,", writers.log.figures())
    assert writers.log.failures == {}
    assert clients.failures == []
    assert clients.commit_ids
    assert writers.log.commit_ids.keys().isdisjoint(clients.commit_ids)
    writers.log.commit_ids |= clients.commit_ids
    check_writes(uri, writers.log)
