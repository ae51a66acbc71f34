"""Commands that use Spark, in separate processes: only their result is printed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.writes.conftest import SCHEMA

LINES = """{"type": "User", "data": {"login": "ann", "age": 30}}
{"type": "User", "data": {"login": "bob"}}
{"edge": "Follows", "from": "ann", "to": "bob"}
"""


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "omnigraph", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_load_and_export_commands_run_on_spark(tmp_path: Path) -> None:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "in.ndjson").write_text(LINES)
    (tmp_path / "bad.ndjson").write_text(LINES.replace("30", "151"))
    graph = tmp_path / "g"
    assert run("init", "--schema", tmp_path / "s.pg", graph).returncode == 0
    load = ("load", graph, "--mode", "append", "--engine", "spark", "--json", "--quiet")
    bad = run(*load, "--data", tmp_path / "bad.ndjson", "--rejects", tmp_path / "rejects")
    assert (bad.returncode, bad.stderr) == (1, "")
    assert len(json.loads(bad.stdout)["problems"]) == 1
    assert len((tmp_path / "rejects" / "rejects.ndjson").read_text().splitlines()) == 1
    done = run(*load, "--data", tmp_path / "in.ndjson")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["total_entities"] == 3
    out = tmp_path / "out"
    sent = run("export", graph, "--format", "parquet", "--out", out, "--json", "--quiet")
    assert (sent.returncode, sent.stderr) == (0, "")
    assert json.loads(sent.stdout)["entities"] == 3
    assert [one.name for one in (out / "nodes" / "User").iterdir()] == ["part-00000.parquet"]
