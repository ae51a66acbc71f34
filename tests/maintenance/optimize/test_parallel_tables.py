"""Several tables are optimized in parallel, reported in order, and logged."""

import errno
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import StorageError
from omnigraph.storage import tail_compaction
from omnigraph.storage.concurrency import maintenance_concurrency
from omnigraph.storage.effects import Fault
from omnigraph.testing import graph as new_graph
from tests.evolve.test_concurrent_writers import elsewhere
from tests.rig.timeouts import PATIENCE

SETTING = "OMNIGRAPH_MAINTENANCE_CONCURRENCY"
NAMES = tuple("ABCDEFGHI")
SCHEMA = "\n".join(f"node {name} {{ k: String @key }}" for name in NAMES)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """Nine tables with two fragments each."""
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 1 << 20)
    with new_graph(SCHEMA) as graph:
        for n in range(2):
            graph.load({name: [{"k": f"k{n}"}] for name in NAMES}, mode="append")
        yield graph


@contextmanager
def met(graph: Graph, kind: str, count: int) -> Iterator[list[int]]:
    """So many effects of a kind wait for one another; how many there were at most."""
    effects, lock = graph._handle.store.effects, threading.Condition()
    real, inside, most = effects.run, [0], [0]

    def run(given: Any, target: str, action: Any) -> Any:
        if given != kind:
            return real(given, target, action)
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            lock.notify_all()
            lock.wait_for(lambda: most[0] >= count, timeout=PATIENCE)
        try:
            return real(given, target, action)
        finally:
            with lock:
                inside[0] -= 1

    effects.run = run  # type: ignore[method-assign,assignment]
    try:
        yield most
    finally:
        del effects.run


@pytest.mark.parametrize(
    ("given", "expected"), [(None, 8), ("0", 8), ("x", 8), ("-3", 8), ("2.5", 8), ("", 8), ("3", 3), (" 12 ", 12)]
)
def test_maintenance_concurrency_is_read_from_the_environment(
    given: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    if given is not None:
        monkeypatch.setenv(SETTING, given)
    assert maintenance_concurrency() == expected


@pytest.mark.parametrize(("given", "expected"), [("0", 8), ("2", 2)])
def test_tables_run_in_parallel_and_results_are_in_order(
    graph: Graph, given: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, given)
    with met(graph, "stage", expected) as most:
        done = graph.maintenance.optimize()
    assert most == [expected]
    keys = [one.type_key for one in done.datasets]
    assert keys == sorted(keys) == [f"node:{name}" for name in NAMES]
    assert all(one.committed for one in done.datasets)
    assert len(done.commits) == 1
    assert not graph.maintenance.check().findings


@pytest.mark.parametrize("kind", ["stage", "index"])
def test_full_disk_leaves_the_graph_unchanged(graph: Graph, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head, before = graph.head.id, list(graph.export())
    full = OSError(errno.ENOSPC, "No space left on device")
    at = 2 if kind == "stage" else len(NAMES) * 2 + 2
    with graph._handle.store.effects.failing(Fault(at, "before", full)), pytest.raises(StorageError) as told:
        graph.maintenance.optimize()
    assert told.value.effect == "none"
    again = elsewhere(graph)
    assert (again.head.id, list(again.export())) == (head, before)
    assert graph._handle.store.objects.list("__recovery") == []
    assert graph.maintenance.optimize()
    assert list(graph.export()) == before


def test_concurrent_optimizes_leave_one_result(graph: Graph) -> None:
    before, made, other = list(graph.export()), [], elsewhere(graph)
    start = threading.Barrier(2)

    def run(one: Graph) -> None:
        start.wait()
        made.append(one.maintenance.optimize())

    threads = [threading.Thread(target=run, args=(one,)) for one in (graph, other)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(made) == 2
    assert any(made)
    fresh = elsewhere(graph)
    assert list(fresh.export()) == before
    assert {len(fresh.table(name).get_fragments()) for name in NAMES} == {1}
    assert fresh._handle.store.objects.list("__recovery") == []


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    told = (getattr(one, "event", {}) for one in caplog.records)
    return [one for one in told if one.get("operation") == name]


def test_maintenance_is_logged_per_table_and_in_total(graph: Graph, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "omnigraph"):
        graph.maintenance.optimize(types=["A", "B"])
        graph.maintenance.ensure_indices()
        graph.maintenance.repair()
        graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    (whole,) = events(caplog, "optimize")
    first, second = events(caplog, "table_optimized")
    assert first["id"] == second["id"] == whole["id"]
    assert (first["verb"], first["type_key"], second["type_key"]) == ("optimize", "node:A", "node:B")
    assert (first["fragments_removed"], first["fragments_added"]) == (2, 1)
    assert first["version_after"] > first["version_before"] > 0
    assert first["bytes_before"] > 0
    assert (whole["maintenance_conflict_retries"], whole["pending_indexes"]) == (0, 0)
    built = {one["type_key"]: one["indexes"] for one in events(caplog, "table_indexed")}
    assert built.keys() == {f"node:{name}" for name in NAMES[2:]}
    assert {one["action"] for one in events(caplog, "table_repaired")} == {"no_op"}
    (cleaned,) = events(caplog, "cleanup")
    rows = events(caplog, "table_cleaned")
    assert cleaned["gc_bytes_removed"] == sum(one["bytes_removed"] for one in rows) > 0
    assert cleaned["gc_versions_removed"] == sum(one["old_versions_removed"] for one in rows)
    assert cleaned["orphans_reclaimed"] == 0
