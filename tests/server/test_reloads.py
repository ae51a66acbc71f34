"""Workers that die while they start, and reloads (SIGHUP) that are disturbed in this way."""

import json
import os
import signal
from pathlib import Path

import pytest

import omnigraph
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.http_writers import SCHEMA, Writers, check_writes
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


@pytest.mark.full
@pytest.mark.timeout(900)
def test_twenty_reloads_under_load_fail_no_request(tmp_path: Path) -> None:
    uri = omnigraph.init(tmp_path / "graph", SCHEMA, durability="os").uri
    reads = 0
    # The writers keep their connections open, and each read opens its own connection.
    with (
        serving(tmp_path, uri, "--unauthenticated", "--workers", "2") as server,
        Writers([server], 4) as writers,
    ):
        for _ in range(20):
            before = workers_of(server)
            server.signal(signal.SIGHUP)
            while workers_of(server) & before:
                assert server.query("match { $m: Mark } return { $m.text } limit 1").status == 200
                reads += 1
    print(f"{reads} reads,", writers.log.figures())
    assert writers.log.failures == {}
    check_writes(uri, writers.log)
