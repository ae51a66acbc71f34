"""A check reports pipes and other special files in a root, and never opens them."""

import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.maintenance.check import check_graph
from omnigraph.storage.effects import Effects
from omnigraph.storage.store import open_store
from tests.cli.conftest import Program
from tests.cli.conftest import omnigraph as shell  # noqa: F401 - a fixture

PATTERNS = ("__manifest/data/*", "__manifest/_versions/*", "nodes/*/data/*", "_schemas/*", "_refs/branches/*/*")
pytestmark = pytest.mark.timeout(60)  # opening a pipe that nobody writes to would block forever


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    created = omnigraph.init(tmp_path / "g", "node P { k: String @key }", durability="os")
    for key in ("a", "b"):
        created.insert("P", {"k": key})
    created.branches.create("dev")
    return created


def oldest_file(graph: Graph, pattern: str) -> Path:
    return min(Path(graph.uri).glob(pattern), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_check_reports_a_file_replaced_by_a_pipe(graph: Graph, pattern: str, quick: bool) -> None:
    path = oldest_file(graph, pattern)
    path.unlink()
    os.mkfifo(path)
    report = graph.maintenance.check(quick=quick)
    (finding,) = report.findings
    assert not report
    assert (finding.kind, finding.name) == ("file", path.relative_to(graph.uri).as_posix())
    assert "not a regular file" in finding.reason


def test_check_reports_every_pipe_that_prevents_opening_the_graph(graph: Graph) -> None:
    paths = list(Path(graph.uri).glob("__manifest/data/*"))
    for path in paths:
        path.unlink()
        os.mkfifo(path)
    report = check_graph(open_store(graph.uri, effects=Effects(read_only=True)))
    assert {finding.name for finding in report.findings} == {path.relative_to(graph.uri).as_posix() for path in paths}


def test_check_reports_a_link_to_a_pipe(graph: Graph, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = oldest_file(graph, "nodes/*/data/*")
    path.unlink()
    path.symlink_to(tmp_path / "pipe")
    assert [finding.name for finding in graph.maintenance.check().findings] == [path.relative_to(graph.uri).as_posix()]


def test_check_ignores_pipes_outside_the_directories_of_the_graph(graph: Graph) -> None:
    os.mkfifo(Path(graph.uri) / "notes")
    assert graph.maintenance.check().findings == ()


def test_check_command_lists_the_pipe(graph: Graph, shell: Program) -> None:  # noqa: F811 - the fixture
    path = oldest_file(graph, "__manifest/data/*")
    path.unlink()
    os.mkfifo(path)
    result = shell("check", graph.uri)
    assert result.code == 1
    assert path.name in result.out
