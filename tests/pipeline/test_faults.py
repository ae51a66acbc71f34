"""Loads that fail or are overtaken: rows exactly once or not at all, and the next load works."""

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError, RecoveryRequired, ServerError, StorageError
from omnigraph.history import intent, long, recover
from omnigraph.history.line import Line
from omnigraph.pipeline.load import Bulk, load_on_spark
from omnigraph.pipeline.sources import find_inputs
from tests.crash.verbs import overdue

SCHEMA = "node N { k: String @key }\nedge E: N -> N"


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.load([{"type": "N", "data": {"k": "old"}}], mode="append")
    return made


def bulk(folder: Path, *names: str, **how: Any) -> Bulk:
    file = folder / "in.ndjson"
    file.write_text("".join(f"{json.dumps({'type': 'N', 'data': {'k': k}})}\n" for k in names))
    return Bulk(how.pop("mode", "append"), find_inputs(str(file)), **how)


def held(graph: Any) -> list[str]:
    return sorted(json.loads(line)["data"]["id"] for line in graph.refresh().export())


def pending(line: Line) -> int:
    return len(intent.listing(line.store).pending)


def test_a_load_that_is_overtaken_is_staged_again(spark: Any, graph: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    def told(stage: str) -> None:
        seen.append(stage)
        if seen.count("check") == 1 and stage == "check":
            graph.load([{"type": "N", "data": {"k": "other"}}], mode="append")

    done = load_on_spark(spark, graph._line, bulk(tmp_path, "a", "b", told=told))
    assert done.commit is not None
    assert held(graph) == ["a", "b", "old", "other"]
    assert seen == ["stage", "check", "stage", "check", "publish"]
    assert [one.operation for one in graph.log()].count("refused") == 0
    found = load_on_spark(spark, graph._line, bulk(tmp_path, "b", "c"))
    assert [one.id for one in found.problems] == ["b"]
    assert pending(graph._line) == 0


def test_an_interrupt_leaves_nothing(spark: Any, graph: Any, tmp_path: Path) -> None:
    def told(stage: str) -> None:
        if stage == "check":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_on_spark(spark, graph._line, bulk(tmp_path, "a", told=told))
    assert held(graph) == ["old"]
    assert pending(graph._line) == 0


@pytest.mark.full
def test_a_confirmed_load_is_finished_by_the_next_opening(
    spark: Any, graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise StorageError("the driver is gone", kind="transient")

    monkeypatch.setattr(long, "finish", gone)
    with pytest.raises(RecoveryRequired):
        load_on_spark(spark, graph._line, bulk(tmp_path, "a"))
    monkeypatch.undo()
    assert held(graph) == ["old"]
    with overdue():
        recover.recover(graph._line.store)
    assert held(graph) == ["a", "old"]
    assert pending(graph._line) == 0
    assert load_on_spark(spark, graph._line, bulk(tmp_path, "b")).commit is not None


@pytest.mark.full
def test_a_task_that_raises_is_a_typed_error(spark: Any, graph: Any, tmp_path: Path) -> None:
    def broken(batches: Any) -> Any:
        for _ in batches:
            raise ValueError("no room")
        yield from ()

    frame = spark.range(3).mapInArrow(broken, "k string")
    with pytest.raises(ServerError, match="no room") as failed:
        load_on_spark(spark, graph._line, Bulk("append", frames={"N": frame}))
    assert isinstance(failed.value, OmnigraphError)
    assert failed.value.effect == "none"
    assert held(graph) == ["old"]
    assert pending(graph._line) == 0
