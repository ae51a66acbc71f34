"""Loads that fail or are overtaken: rows land once or not at all, and the next load works."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import Conflict, OmnigraphError, RecoveryRequired, ServerError, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.input_parts import find_input_files
from omnigraph.publish import intent, long_operations, recover
from omnigraph.spark.load import BulkLoad, load_on_spark
from omnigraph.spark.session import running_tasks, translate_spark_errors
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants

SCHEMA = "node N { k: String @key }\nedge E: N -> N"


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.load([{"type": "N", "data": {"k": "old"}}], mode="append")
    return made


def bulk(folder: Path, *names: str, **how: Any) -> BulkLoad:
    file = folder / "in.ndjson"
    file.write_text("".join(f"{json.dumps({'type': 'N', 'data': {'k': k}})}\n" for k in names))
    return BulkLoad(how.pop("mode", "append"), find_input_files(str(file)), **how)


def held(graph: Any) -> list[str]:
    return sorted(json.loads(line)["data"]["id"] for line in graph.refresh().export())


def pending(line: BranchState) -> int:
    return len(intent.list_intents(line.store).pending)


def test_load_is_restaged_after_a_concurrent_write(spark: Any, graph: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    def told(stage: str) -> None:
        seen.append(stage)
        if seen.count("check") == 1 and stage == "check":
            graph.load([{"type": "N", "data": {"k": "other"}}], mode="append")

    done = load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path, "a", "b", on_step=told))
    assert done.commit is not None
    assert held(graph) == ["a", "b", "old", "other"]
    assert seen == ["stage", "check", "stage", "check", "publish"]
    assert [one.operation for one in graph.log()].count("refused") == 0
    found = load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path, "b", "c"))
    assert [one.id for one in found.problems] == ["b"]
    assert pending(graph._handle.branch_state) == 0


@pytest.mark.full
@pytest.mark.parametrize(("second", "landed"), [("c", 2), ("a", 1)])
def test_racing_loads_on_one_branch_both_land(spark: Any, graph: Any, tmp_path: Path, second: str, landed: int) -> None:
    """Both have staged on one base; the later one looks again, and finds what the other wrote."""
    staged = threading.Barrier(2)

    def racing(name: str, *keys: str) -> Any:
        waits = [1]

        def told(stage: str, *_: object) -> None:
            if stage == "check" and waits:
                waits.pop()
                staged.wait(120)

        (tmp_path / name).mkdir()
        return load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path / name, *keys, on_step=told))

    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(racing, "one", "a", "b"), pool.submit(racing, "two", second, "d")]
        done = [one.result() for one in tries]
    assert sum(one.commit is not None for one in done) == landed
    found = held(graph)
    assert len(found) == len(set(found)) == 1 + 2 * landed
    assert [one.operation for one in graph.log()].count("load") == 1 + landed
    lost = [one for load in done for one in load.problems]
    assert {one.error.code for one in lost} == ({"KeyConflict"} if landed == 1 else set())
    assert pending(graph._handle.branch_state) == 0
    check_invariants(graph.uri)


@pytest.mark.full
@pytest.mark.parametrize(("times", "lands"), [(2, True), (3, False)])
def test_load_lands_beside_mutations(spark: Any, graph: Any, tmp_path: Path, times: int, lands: bool) -> None:
    """Each look at the graph is overtaken; after three of them the load gives up, and says so."""
    wrote: list[str] = []

    def told(stage: str, *_: object) -> None:
        if stage == "check" and len(wrote) < times:
            wrote.append(f"m{len(wrote)}")
            graph.mutate('insert N { k: "' + wrote[-1] + '" }')

    load = bulk(tmp_path, "a", "b", on_step=told)
    if lands:
        assert load_on_spark(spark, graph._handle.branch_state, load).commit is not None
    else:
        with pytest.raises(Conflict) as lost:
            load_on_spark(spark, graph._handle.branch_state, load)
        assert (lost.value.effect, lost.value.retryable) == ("none", "fresh")
    assert held(graph) == sorted([*(["a", "b"] if lands else []), "old", *wrote])
    assert pending(graph._handle.branch_state) == 0
    check_invariants(graph.uri)
    assert load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path, "z")).commit is not None


def test_interrupted_load_leaves_nothing(spark: Any, graph: Any, tmp_path: Path) -> None:
    def told(stage: str) -> None:
        if stage == "check":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path, "a", on_step=told))
    assert held(graph) == ["old"]
    assert pending(graph._handle.branch_state) == 0


def test_interrupt_does_not_cancel_other_jobs(spark: Any, tmp_path: Path) -> None:
    released = tmp_path / "released"

    def wait_for_release(batches: Iterator[Any]) -> Iterator[Any]:
        while not released.exists():
            time.sleep(0.05)
        yield from batches

    def interrupted() -> None:
        with translate_spark_errors(spark):
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: spark.range(5).mapInArrow(wait_for_release, "id long").count())
        try:
            while not running_tasks(spark)[1]:
                time.sleep(0.05)
            with pytest.raises(KeyboardInterrupt):
                interrupted()
        finally:
            released.touch()
        assert other.result() == 5


@pytest.mark.full
def test_confirmed_load_is_finished_by_the_next_open(
    spark: Any, graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise StorageError("the driver is gone", kind="transient")

    monkeypatch.setattr(long_operations, "finish_confirmed", gone)
    with pytest.raises(RecoveryRequired):
        load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path, "a"))
    monkeypatch.undo()
    assert held(graph) == ["old"]
    with overdue():
        recover.recover(graph._handle.branch_state.store)
    assert held(graph) == ["a", "old"]
    assert pending(graph._handle.branch_state) == 0
    assert load_on_spark(spark, graph._handle.branch_state, bulk(tmp_path, "b")).commit is not None


@pytest.mark.full
def test_failing_task_is_a_typed_error(spark: Any, graph: Any, tmp_path: Path) -> None:
    def broken(batches: Any) -> Any:
        for _ in batches:
            raise ValueError("no room")
        yield from ()

    frame = spark.range(3).mapInArrow(broken, "k string")
    with pytest.raises(ServerError, match="no room") as failed:
        load_on_spark(spark, graph._handle.branch_state, BulkLoad("append", frames={"N": frame}))
    assert isinstance(failed.value, OmnigraphError)
    assert failed.value.effect == "none"
    assert held(graph) == ["old"]
    assert pending(graph._handle.branch_state) == 0
