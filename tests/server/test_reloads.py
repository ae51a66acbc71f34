"""Reloads (SIGHUP) that are disturbed: workers that die, and successors that cannot start."""

import os
import signal
from pathlib import Path

import pytest

from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.server.conftest import make_graph

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
        wait_until(lambda: "a worker ended" in server.log.read_text())
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
        wait_until(lambda: "a worker ended" in server.log.read_text())
        assert server.query(PEOPLE).status == 200, "the old worker serves on"
        tokens.write_text('{"ann": {"token": "new", "permission": "admin"}}')
        wait_until(lambda: server.get("/whoami", token="new").status == 200)
        wait_until(lambda: len(workers_of(server)) == 1)
        assert server.get("/whoami", token="old").status == 401
