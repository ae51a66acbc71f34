"""Exports to pipes, devices and links write through them and never replace them."""

import os
import stat
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError

SCHEMA = "node Person { name: String @key }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("output") / "g", SCHEMA, durability="os")
    graph.insert("Person", {"name": "ada"})
    return graph


def test_export_writes_into_a_pipe(graph: Graph, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    assert graph.export(pipe) == 1
    reader.join()
    assert b'"ada"' in received[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_baseline_writes_into_a_pipe_without_a_lock_file(graph: Graph, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    baseline = graph.changes.baseline(path=pipe)
    reader.join()
    assert b'"ada"' in received[0]
    assert baseline.cursor is not None
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["pipe"]


def test_export_replaces_the_target_of_a_link(graph: Graph, tmp_path: Path) -> None:
    target, link = tmp_path / "target.ndjson", tmp_path / "link.ndjson"
    target.write_text("old")
    link.symlink_to(target)
    assert graph.export(link) == 1
    assert link.is_symlink()
    assert b'"ada"' in target.read_bytes()


def test_export_to_a_device_leaves_the_device(graph: Graph) -> None:
    assert graph.export("/dev/null") == 1
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_export_to_an_open_descriptor(graph: Graph, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+b") as file:
        assert graph.export(f"/dev/fd/{file.fileno()}") == 1
        file.seek(0)
        assert b'"ada"' in file.read()


def test_export_to_a_number_is_rejected_instead_of_written_to_a_descriptor(graph: Graph) -> None:
    with pytest.raises(InputError, match="must be a string or a path, got integer 5"):
        graph.export(5)  # type: ignore[call-overload]
