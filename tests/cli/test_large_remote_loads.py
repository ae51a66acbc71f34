"""`omnigraph load` sends files that are larger than the server's limit for a load in parts."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import omnigraph as og
from omnigraph import Graph
from tests.cli.conftest import Program
from tests.rig.http_server import serving
from tests.server.conftest import make_graph

EDGES = [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % 30}"} for n in range(30)]
PEOPLE = [{"type": "Person", "data": {"name": f"p{n}", "bio": "x" * 50}} for n in range(30)]
LINES = b"".join(json.dumps(record).encode() + b"\n" for record in EDGES + PEOPLE)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A graph on a server that accepts only small loads."""
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, make_graph(folder / "graph"), "--unauthenticated", "--max-load-bytes", "2000") as server:
        yield f"http://{server.address}/graphs/default"


@pytest.fixture
def branch(url: str, request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A branch of the test."""
    with og.open(url) as graph:
        yield graph.branches.create(request.node.name.replace("[", "-").replace("]", ""))


@pytest.mark.parametrize("form", ["plain", "gzip", "several", "stdin"])
def test_large_files_are_loaded_at_once(omnigraph: Program, branch: Graph, url: str, tmp_path: Path, form: str) -> None:
    (tmp_path / "all.ndjson").write_bytes(LINES)
    (tmp_path / "all.ndjson.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "one.ndjson").write_bytes(LINES[:300].rpartition(b"\n")[0])
    (tmp_path / "two.ndjson").write_bytes(LINES[len(LINES[:300].rpartition(b"\n")[0]) + 1 :])
    names = {
        "plain": ["all.ndjson"],
        "gzip": ["all.ndjson.gz"],
        "several": ["one.ndjson", "two.ndjson"],
        "stdin": ["-"],
    }
    data = [word for name in names[form] for word in ("--data", name)]
    options = ["--mode", "append", "--branch", branch.branch_name, "--idempotency-key", form, "--json"]
    outcome = omnigraph("load", url, *data, *options, stdin=LINES)
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert document["commit"]["graph_commit_id"] == branch.head.id
    assert (branch.nodes("Person").count(), branch.edges("Knows").count()) == (32, 31)
    again = omnigraph("load", url, *data, *options, stdin=LINES)
    assert again.code == 0, again.err
    assert json.loads(again.out)["commit"]["graph_commit_id"] == branch.head.id
    assert branch.nodes("Person").count() == 32


def test_a_large_parquet_file_is_loaded(omnigraph: Program, branch: Graph, url: str, tmp_path: Path) -> None:
    people = pa.table({"name": [f"q{n}" for n in range(300)], "bio": [f"{n} is no prime" for n in range(300)]})
    pyarrow.parquet.write_table(people, tmp_path / "Person.parquet")
    options = ["--mode", "append", "--branch", branch.branch_name]
    outcome = omnigraph("load", url, "--data", "Person.parquet", *options)
    assert outcome.code == 0, outcome.err
    assert branch.nodes("Person").count() == 302


def test_a_bad_line_of_a_large_file_is_reported_with_its_number(
    omnigraph: Program, branch: Graph, url: str, tmp_path: Path
) -> None:
    (tmp_path / "all.ndjson").write_bytes(LINES + b'{"type": "Person", "data": {"name": 5}}\n')
    outcome = omnigraph("load", url, "--data", "all.ndjson", "--mode", "append", "--branch", branch.branch_name)
    assert outcome.code == 1
    assert "61" in outcome.err
    assert branch.nodes("Person").count() == 2
    assert [name for name in branch.branches if name.startswith("load-")] == []
