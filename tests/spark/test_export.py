"""Spark exports equal local exports in every format and can be loaded."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import InputError
from omnigraph.spark.export import export_on_spark
from omnigraph.spark.step_progress import StepProgress
from omnigraph.values.name_rules import MAX_NAME_BYTES
from tests.engine.writes.conftest import DATA, SCHEMA

MORE = b"""
{"type": "User", "data": {"login": "cyd", "pic": "base64:AAE=", "joined": 5, "score": 0.5}}
{"type": "Event", "data": {"id": "e", "title": "t", "at": 0, "v": [1, 2]}}
{"edge": "Owns", "from": "cyd", "to": "e", "data": {"id": "o"}}
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = omnigraph.init(tmp_path_factory.mktemp("export") / "g", SCHEMA, durability="os")
    made.load(DATA, mode="append")
    made.load(MORE, mode="append")
    return made


def local(graph: Any) -> list[bytes]:
    return list(graph.export())


def test_ordered_ndjson_equals_the_local_export(spark: Any, graph: Any, tmp_path: Path) -> None:
    done = export_on_spark(spark, graph.snapshot, tmp_path / "out", ordered=True)
    files = [tmp_path / "out" / name for names in done.files.values() for name in names]
    assert b"".join(file.read_bytes() for file in files) == b"".join(local(graph))
    assert done.total == 6
    assert list((tmp_path / "out").rglob(".*")) == []
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load(str(tmp_path / "out"), mode="append", engine="spark", spark=spark)
    assert local(copy) == local(graph)


def test_parquet_export_can_be_loaded_and_reports_progress(
    spark: Any, graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[StepProgress] = []
    monkeypatch.setattr("omnigraph.spark.step_progress._POLL_SECONDS", 0.01)
    teller = SimpleNamespace(step=told.append)
    done = graph.spark.frames(spark).export(tmp_path / "out", "parquet", progress=teller)
    assert list(done.steps) == [key.partition(":")[2] for key in done.rows]
    assert all(spent >= 0 for spent in done.steps.values())
    assert {one.name for one in told} <= {*done.steps}
    assert any(one.total and one.rows for one in told)
    users = pq.read_table(tmp_path / "out" / "nodes" / "User")
    assert sorted(users["id"].to_pylist()) == ["ann", "bob", "cyd"]
    assert done.files["node:Slot"] == []
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load(str(tmp_path / "out"), mode="append", engine="local")
    assert local(copy) == local(graph)


def test_lance_export_contains_every_row(spark: Any, graph: Any, tmp_path: Path) -> None:
    export_on_spark(spark, graph.snapshot, tmp_path / "out", "lance", types=["User", "Slot"])
    users = lance.dataset(tmp_path / "out" / "nodes" / "User.lance").to_table()
    assert Counter(users["id"].to_pylist()) == Counter(["ann", "bob", "cyd"])
    assert lance.dataset(tmp_path / "out" / "nodes" / "Slot.lance").count_rows() == 0
    with pytest.raises(InputError, match="not empty"):
        export_on_spark(spark, graph.snapshot, tmp_path / "out", "lance")


def test_export_can_be_limited_to_types(spark: Any, graph: Any, tmp_path: Path) -> None:
    done = export_on_spark(spark, graph.snapshot, tmp_path / "out", types=["Owns"])
    (line,) = (tmp_path / "out" / done.files["edge:Owns"][0]).read_text().splitlines()
    assert json.loads(line)["from"] == "cyd"


@pytest.mark.full
@pytest.mark.parametrize("form", ["ndjson", "parquet", "lance"])
def test_the_longest_name_of_a_type_can_be_exported(spark: Any, tmp_path: Path, form: Any) -> None:
    name = "T" * MAX_NAME_BYTES
    graph = omnigraph.init(tmp_path / "g", f"node {name} {{ key: String @key }}", durability="os")
    graph.insert(name, {"key": "a"})
    assert export_on_spark(spark, graph.snapshot, tmp_path / "out", form).total == 1
