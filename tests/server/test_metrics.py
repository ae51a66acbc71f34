"""Metrics of a running server: probes for newer commits, repeated writes, and the memory of each worker."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import omnigraph
from omnigraph.errors import KeyConflict
from omnigraph.publish import publish
from omnigraph.publish.swap import swap_and_verify
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.thread_server import thread_server

GRAPH = "/graphs/default"
SCHEMA = "node Person { name: String @key  age: I32? }"
PEOPLE = "match { $p: Person } return { $p.name }"
PROBES = "omnigraph_freshness_probes_total"
SWAPS, PLANS = (f'omnigraph_publish_retries_total{{step="{step}"}}' for step in ("swap", "plan"))


def read_metrics(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics")
    omnigraph.init(folder / "graph", SCHEMA, durability="os").insert("Person", {"name": "ada", "age": 1})
    return folder


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[HttpServer]:
    """A server with two workers."""
    with serving(folder, str(folder / "graph"), "--workers", "2", "--unauthenticated") as server:
        yield server


def test_probes_of_all_workers_are_counted(pair: HttpServer, folder: Path) -> None:
    def count() -> float:
        return read_metrics(pair.get("/metrics").body.decode())[PROBES]

    before = count()
    graph = omnigraph.open(folder / "graph", durability="os")
    for number in range(5):
        graph.insert("Person", {"name": f"p{number}"})
        assert pair.query(PEOPLE).json()["graph_commit_id"] == graph.head.id
    assert count() >= before + 5


def test_each_worker_reports_its_memory(pair: HttpServer) -> None:
    def resident_bytes() -> dict[int, float]:
        metrics = read_metrics(pair.get("/metrics").body.decode())
        matches = (
            (re.fullmatch(r'omnigraph_worker_resident_bytes\{pid="(\d+)"\}', name), metrics[name]) for name in metrics
        )
        return {int(match[1]): value for match, value in matches if match is not None}

    wait_until(lambda: resident_bytes().keys() == workers_of(pair))
    for worker_id, measured in resident_bytes().items():
        (line,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{worker_id}/status").read_text())
        assert int(line) * 1024 / 2 < measured < int(line) * 1024 * 2


@pytest.mark.parametrize(
    ("rival_name", "repeated"),
    [("bob", {SWAPS: 1, PLANS: 0}), ("cyd", {SWAPS: 0, PLANS: 1})],
    ids=["other entity", "same entity"],
)
def test_writes_that_lose_against_another_write_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rival_name: str, repeated: dict[str, float]
) -> None:
    root = tmp_path / "graph"
    rival = omnigraph.init(root, SCHEMA, durability="fsync")  # shares no state with the server, as in another process
    rival_names = [rival_name]

    def lose(*arguments: Any) -> bool:
        if rival_names:
            rival.insert("Person", {"name": rival_names.pop()})
        return swap_and_verify(*arguments)

    def metrics() -> dict[str, float]:
        with urlopen(f"http://{server.address}/metrics") as response:
            return read_metrics(response.read().decode())

    with thread_server(tmp_path) as server:
        remote = omnigraph.open(server.serve(root))
        before = metrics()
        monkeypatch.setattr(publish, "swap_and_verify", lose)
        with nullcontext() if rival_name == "bob" else pytest.raises(KeyConflict):
            remote.insert("Person", {"name": "cyd"})
        after = metrics()
    assert {name: after[name] - before[name] for name in repeated} == repeated
    assert set(rival.refresh().nodes("Person").ids()) == {rival_name, "cyd"}
