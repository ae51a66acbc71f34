"""A paused stream occupies no slot among the heavy queries."""

import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine import query_limits


def test_paused_stream_releases_its_query_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = "node N { name: String @key  size: I64 }\nedge E: N -> N"
    graph = omnigraph.init(tmp_path / "graph", schema)
    names = [f"n{number}" for number in range(300)]
    graph.insert("N", *({"name": name, "size": at} for at, name in enumerate(names)))
    graph.connect_nodes("E", [(name, names[-1 - at]) for at, name in enumerate(names)])
    gate = threading.BoundedSemaphore(1)
    monkeypatch.setattr(query_limits, "_heavy_query_gate", gate)
    text = "match { $a: N  $a e $b } return { $a.name  $b.name  $b.size }"
    with graph.stream(text) as shown:
        assert next(iter(shown)).num_rows == 300
        assert gate.acquire(blocking=False)
