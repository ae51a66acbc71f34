"""Warnings of the engine reach the clients of a server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import AmbiguousRevision
from omnigraph.maintenance import health_thresholds
from tests.rig.http_server import HttpServer
from tests.rig.thread_server import ThreadServer
from tests.rig.timeouts import PATIENCE


def test_every_response_carries_the_warnings_of_its_request(server: HttpServer) -> None:
    reply = server.post("/graphs/default/tags", {"name": "2026-12-01"})
    assert json.loads(reply.headers["omnigraph-warnings"]) == [
        {
            "code": "AmbiguousRevision",
            "message": "tag name '2026-12-01' is also a time; as a revision, it means the tag",
        }
    ]
    query = {"query": "match { $p: Person } return { $p.name }", "snapshot": "2026-12-01"}
    for media_type in ("application/json", "text/csv", "application/vnd.apache.arrow.stream", "application/x-ndjson"):
        answer = server.post("/graphs/default/query", query, headers={"Accept": media_type})
        assert [warning["code"] for warning in json.loads(answer.headers["omnigraph-warnings"])] == [
            "AmbiguousRevision"
        ]
    assert "omnigraph-warnings" not in server.query("match { $p: Person } return { $p.name }").headers


def test_python_and_commands_show_the_warnings(url: str, tmp_path: Path) -> None:
    with omnigraph.open(url) as graph, pytest.warns(AmbiguousRevision, match="branch name '2026-11-01' is also a time"):
        graph.branches.create("2026-11-01")
    command = [sys.executable, "-m", "omnigraph", "tag", "create", "2026-10-01", "--store", url]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    expected = "warning: tag name '2026-10-01' is also a time; as a revision, it means the tag"
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (0, expected)


def test_exceeded_limits_are_listed_without_the_location(
    graph_server: ThreadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_thresholds, "FRAGMENTS", 0)
    monkeypatch.setattr(health_thresholds, "COMMITS", 0)
    omnigraph.init(tmp_path / "g", "node Person { name: String @key }", durability="os").close()
    with omnigraph.open(graph_server.serve(tmp_path / "g")) as graph:
        for name in ("ann", "bob"):
            graph.insert("Person", {"name": name})
        texts = [str(warning) for warning in graph.warnings]
        assert len(texts) == len(set(texts)) > 0
        assert all(f" {graph.uri}" in text for text in texts), texts
    graph_server.forget(graph.uri)
