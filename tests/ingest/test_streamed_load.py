"""Loads of large files in this process: pieces, threads, concurrent changes and bounded memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import testing
from omnigraph.api import load_routing
from omnigraph.errors import ConstraintViolation, OmnigraphError
from omnigraph.ingest.streaming import staged_input, streamed_load
from omnigraph.values.table_key import TableKey

SCHEMA = """
node Person { name: String @key  age: I32?  @range(age, 0..150) }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_routing, "STREAM_MIN_BYTES", 1)
    monkeypatch.setattr(load_routing, "PIECE_BYTES", 500)


def write(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def person(name: str, age: int = 1) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def knows(src: str, dst: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": src, "to": dst}


def network(count: int) -> list[dict[str, Any]]:
    people = [person(f"p{number}") for number in range(count)]
    return people + [knows(f"p{number}", f"p{(number + 1) % count}") for number in range(count)]


def test_rows_keep_the_order_of_the_input(tmp_path: Path) -> None:
    with testing.graph(SCHEMA) as graph:
        receipt: Any = graph.load(write(tmp_path / "in.ndjson", *network(200)), mode="append")
        assert (receipt.nodes, receipt.edges) == ({"Person": 200}, {"Knows": 200})
        assert (receipt.engine, set(receipt.steps)) == ("local", {"stage", "check", "publish"})
        assert "Spark would need" in receipt.engine_reason
        assert len(graph.snapshot.table(TableKey.node("Person")).dataset.get_fragments()) > 5
        names = [json.loads(line)["data"]["name"] for line in graph.export(types=["Person"])]
        assert sorted(names) == sorted(f"p{number}" for number in range(200))
        rows = graph.snapshot.table(TableKey.node("Person")).dataset.to_table(columns=["name"])["name"].to_pylist()
        assert rows == [f"p{number}" for number in range(200)]


def test_the_first_problem_in_input_order_is_raised_with_its_line(tmp_path: Path) -> None:
    records = network(100)
    records[150] = knows("p1", "nobody")
    records[60] = person("p60", age=900)
    with testing.graph(SCHEMA) as graph:
        path = write(tmp_path / "in.ndjson", *records)
        with pytest.raises(ConstraintViolation) as raised:
            graph.load(path, mode="append")
        assert raised.value.details["line"] == 61
        report: Any = graph.load(path, mode="append", on_error="report")
        assert [(problem.line, problem.file) for problem in report] == [(61, path), (151, path)]
        assert graph.nodes("Person").count() == 0


def test_edges_may_point_to_stored_nodes(tmp_path: Path) -> None:
    with testing.graph(SCHEMA) as graph:
        graph.load([person("old")], mode="append")
        graph.load(write(tmp_path / "a.ndjson", person("new"), knows("old", "new")), mode="append")
        with pytest.raises(OmnigraphError, match="gone"):
            graph.load(write(tmp_path / "b.ndjson", *network(50), knows("old", "gone")), mode="append")
        assert graph.edges("Knows").count() == 1


def test_a_merge_that_replaces_rows_is_loaded_in_memory(tmp_path: Path) -> None:
    with testing.graph(SCHEMA) as graph:
        graph.load(write(tmp_path / "a.ndjson", *network(50)), mode="merge")
        receipt = graph.load(write(tmp_path / "b.ndjson", person("p7", age=9), person("q")), mode="merge")
        assert not receipt.steps
        assert graph.nodes("Person").count() == 51


def test_a_write_during_the_load_is_checked_before_publishing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph: Any = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    other: Any = omnigraph.open(tmp_path / "g", durability="os")
    combine = staged_input.combine_pieces

    def combine_late(*arguments: Any) -> Any:
        other.insert("Person", {"name": "p3", "age": 5})
        monkeypatch.setattr(streamed_load, "combine_pieces", combine)
        return combine(*arguments)

    monkeypatch.setattr(streamed_load, "combine_pieces", combine_late)
    with pytest.raises(OmnigraphError, match="p3"):
        graph.load(write(tmp_path / "in.ndjson", *network(20)), mode="append")
    assert graph.refresh().nodes("Person").count() == 1


def test_a_cleanup_during_the_load_makes_it_write_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph: Any = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    other: Any = omnigraph.open(tmp_path / "g", durability="os")
    other.load([person("first")], mode="append")
    other.load([person("first", age=2)], mode="merge")
    combine = staged_input.combine_pieces
    stagings: list[int] = []

    def combine_late(*arguments: Any) -> Any:
        if not stagings:
            other.maintenance.cleanup(keep=1, grace=0, confirm=True)
        stagings.append(1)
        return combine(*arguments)

    monkeypatch.setattr(streamed_load, "combine_pieces", combine_late)
    graph.load(write(tmp_path / "in.ndjson", *network(20)), mode="append")
    assert len(stagings) == 2
    assert graph.refresh().nodes("Person").count() == 21
    assert graph.maintenance.check()


_PEAK = """
import re, sys, omnigraph
from pathlib import Path
def peak():  # getrusage would also count the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
from omnigraph.api import load_routing
graph = omnigraph.init(sys.argv[1], sys.argv[3], durability="os")
before = peak()
graph.load(sys.argv[2], mode="append")
print(peak() - before >> 10)
"""


@pytest.mark.full
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Rows of 4 kB: six times the input may take a little more memory, but not six times as much."""
    peaks = []
    for megabytes in (60, 360):
        path = tmp_path / f"{megabytes}.ndjson"
        with path.open("w") as file:
            for number in range(megabytes << 8):
                file.write(json.dumps({"type": "Note", "data": {"name": f"n{number}", "text": "x" * 4000}}) + "\n")
        arguments = [str(tmp_path / f"g{megabytes}"), str(path), "node Note { name: String @key  text: String }"]
        done = subprocess.run([sys.executable, "-c", _PEAK, *arguments], check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < 400
    assert peaks[1] < 2 * peaks[0]
