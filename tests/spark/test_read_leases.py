"""Read leases: a cleanup beside a Spark scan or export removes none of its files."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import HistoryReclaimed
from omnigraph.spark import export, table_scan
from omnigraph.spark.snapshot_frames import SparkGraph
from omnigraph.storage.objects import ControlObjects
from tests.crash.verbs import overdue

pytest.importorskip("pyspark")
SCHEMA = "node A { k: String @key  n: I32? }\nnode B { k: String @key }"
ROWS = [{"type": "A", "data": {"k": f"{at}", "n": at}} for at in range(4)]


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    """A type of two fragments, and another type."""
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.load([*ROWS[:2], {"type": "B", "data": {"k": "b"}}], mode="append")
    made.load(ROWS[2:], mode="append")
    return made


def replaced(graph: Any) -> None:
    """Everything is written anew, and what is old is cleaned away."""
    other = omnigraph.open(graph.uri)
    for at in (7, 8):
        other.load([{"type": "A", "data": {"k": "x", "n": at}}], mode="overwrite")
        other.load([{"type": "B", "data": {"k": f"b{at}"}}], mode="overwrite")
    other.maintenance.cleanup(keep=1, grace=0, confirm=True)


def source_of(graph: Any) -> tuple[Any, list[Any]]:
    """A reader of the data source, with a partition for each fragment."""
    from omnigraph.spark.source import GraphSource

    columns: Any = [SimpleNamespace(name="k")]
    reader = GraphSource({"graph": graph.uri, "type": "A"}).reader(columns)
    reader.fragment_groups = [[one] for some in reader.fragment_groups for one in some]
    return reader, list(reader.partitions())


def names(batches: Any) -> list[str]:
    return sorted(name for one in batches for name in one.column("k").to_pylist())


def test_cleanup_between_tasks_removes_no_leased_files(graph: Any) -> None:
    reader, (first, second) = source_of(graph)
    assert names(reader.read(first)) == ["0", "1"]
    replaced(graph)
    assert names(reader.read(second)) == ["2", "3"]
    assert len(graph._handle.store.objects.list("__recovery")) in (1, 2)  # the lease runs out by itself


def test_expired_lease_is_removed_silently(graph: Any) -> None:
    reader, (first, second) = source_of(graph)
    assert names(reader.read(first)) == ["0", "1"]
    with overdue():
        replaced(graph)
    assert graph._handle.store.objects.list("__recovery") == []
    assert graph.maintenance.operations.recoveries() == []
    with pytest.raises(HistoryReclaimed):
        names(reader.read(second))


def test_lease_is_renewed_after_a_pause(graph: Any) -> None:
    reader, (first, second) = source_of(graph)
    assert names(reader.read(first)) == ["0", "1"]
    with overdue():
        omnigraph.open(graph.uri)  # looks for what was cut off
    assert graph._handle.store.objects.list("__recovery") == []
    assert names(reader.read(first)) == ["0", "1"]
    replaced(graph)
    assert names(reader.read(second)) == ["2", "3"]


def test_read_continues_without_a_lease_if_writing_is_denied(
    graph: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader, (first, _) = source_of(graph)

    def refuse(*_: Any) -> bool:
        raise PermissionError(13, "not for you")

    monkeypatch.setattr(ControlObjects, "create_json", refuse)
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert names(reader.read(first)) == ["0", "1"]
    assert "cannot obtain a read lease" in caplog.text


def test_spark_scan_and_export_hold_leases(
    spark: Any, graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = table_scan.group_fragments
    monkeypatch.setattr(table_scan, "group_fragments", lambda sizes: real(sizes, 1))
    shown = omnigraph.open(graph.uri, read_only=True).spark.frames(spark)
    assert isinstance(shown, SparkGraph)
    rows = shown.nodes("A", ["k"]).toLocalIterator()
    assert next(rows)["k"] in "01"
    finish, done = export._name_parts, list[Any]()

    def finished(*given: Any) -> Any:
        if not done:
            replaced(graph)
        done.append(given)
        return finish(*given)

    monkeypatch.setattr(export, "_name_parts", finished)
    made = shown.export(tmp_path / "out")
    assert made.rows == {"node:A": 4, "node:B": 1}
    assert len(list(rows)) == 3
    assert len(done) == 2


def test_commit_of_another_branch_is_leased(graph: Any) -> None:
    from omnigraph.spark.source import GraphSource

    graph.branches.create("dev")
    graph.checkout("dev").load([{"type": "A", "data": {"k": "dev"}}], mode="append")
    columns: Any = [SimpleNamespace(name="k")]
    commit = graph.checkout("dev").head.id
    reader = GraphSource({"graph": graph.uri, "type": "A", "at": commit}).reader(columns)
    reader.fragment_groups = [[one] for some in reader.fragment_groups for one in some]
    *_, first, last = reader.partitions()
    names(reader.read(first))
    graph.checkout("dev").load([{"type": "A", "data": {"k": "y"}}], mode="overwrite")
    replaced(graph)
    assert names(reader.read(last)) == ["dev"]
