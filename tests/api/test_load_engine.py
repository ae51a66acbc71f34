"""The choice between this process and Spark: bytes, cores, memory, and a session that runs already."""

import sys
from pathlib import Path
from typing import Any

import pytest

from omnigraph import testing
from omnigraph.api import load_engine
from omnigraph.api.load_engine import choose_load_engine, measure_work
from omnigraph.api.load_engine_model import LoadWork, Machine, available_memory, predict_engine
from omnigraph.cli.main import run
from omnigraph.ingest.input_files import InputFile

GB = 1_000_000_000


def files(size: int, file_format: Any = "ndjson", suffix: str = "") -> list[InputFile]:
    return [InputFile(f"in.{file_format}{suffix}", file_format, size=size)]


@pytest.mark.parametrize(
    ("size", "machine", "engine"),
    [
        (GB, Machine(2, 16 * GB, 2), "local"),
        (GB, Machine(2, 16 * GB, 2, spark_is_running=True), "local"),
        (50 * GB, Machine(2, 64 * GB, 64, spark_is_running=True), "spark"),
        (100_000_000, Machine(2, 64 * GB, 64, spark_is_running=True), "local"),
        (50 * GB, Machine(2, 4 * GB, 2), "spark"),
        (50 * GB, Machine(2, 4 * GB, 0), "local"),
        (GB, Machine(2, None, 2), "local"),
    ],
)
def test_engine_follows_from_size_cores_memory_and_session(size: int, machine: Machine, engine: str) -> None:
    prediction = predict_engine(LoadWork({"ndjson": size}), machine)
    assert prediction.engine == engine
    assert prediction.reason


def test_a_merge_into_rows_and_compressed_text_need_more_memory() -> None:
    streamed = measure_work(files(GB), "merge", has_rows=False)
    replacing = measure_work(files(GB), "merge", has_rows=True)
    assert (streamed.is_streamed, replacing.is_streamed) == (True, False)
    machine = Machine(2, 3 * GB, 2)
    assert (predict_engine(streamed, machine).engine, predict_engine(replacing, machine).engine) == ("local", "spark")
    assert measure_work(files(GB, suffix=".gz"), "append", has_rows=False).total_bytes == 4 * GB
    assert not measure_work(files(GB), "patch", has_rows=False).is_streamed


def test_a_streamed_load_keeps_the_rows_of_at_most_as_many_threads_as_it_starts() -> None:
    streamed, machines = LoadWork({"ndjson": GB}), [Machine(cores, 64 * GB) for cores in (15, 16, 128)]
    needed = [predict_engine(streamed, machine).local_bytes for machine in machines]
    assert needed[0] < needed[1] == needed[2]


def test_java_is_not_looked_for_if_this_process_is_faster_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_engine, "_spark_cores", lambda *_, **__: pytest.fail("looked for Spark"))
    monkeypatch.setattr(load_engine, "available_memory", lambda: 8 * GB)
    assert choose_load_engine(LoadWork({"ndjson": 100_000_000}), None, None).engine == "local"


def test_memory_is_limited_by_the_container(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert available_memory("MemAvailable: 1000 kB\n", tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory("MemAvailable: 1 kB\n", tmp_path) == 1024
    assert available_memory("nonsense", tmp_path) is None


def test_the_command_names_the_engine_and_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("omnigraph.api.load_routing.STREAM_MIN_BYTES", 1)
    data = tmp_path / "people.ndjson"
    data.write_text('{"type":"Person","data":{"name":"ada"}}\n')
    with testing.graph("node Person { name: String @key }") as graph:
        assert run(["load", graph.uri, "--data", str(data), "--mode", "append"]) == 0
        output = "".join(capsys.readouterr())
        assert "engine local: Spark would need at least" in output
        assert "stage" in output
    assert "pyspark" not in sys.modules or choose_load_engine(LoadWork({"csv": 1}), None, None).engine == "local"
