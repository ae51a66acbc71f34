"""Reads and writes find the newest state without a listing."""

import os
import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.storage import local_objects
from tests.rig.independent_writers import apart

SCHEMA = "node Person { name: String @key }"
NAMES = "match { $p: Person } return { $p.name }"


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The prefixes that are listed, as it happens."""
    seen: list[str] = []
    first = local_objects.LocalBackend.list_first

    def counted(self: local_objects.LocalBackend, prefix: str, count: int) -> object:
        seen.append(prefix)
        return first(self, prefix, count)

    monkeypatch.setattr(local_objects.LocalBackend, "list_first", counted)
    return seen


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are looked at one by one."""
    seen: list[str] = []
    glance = local_objects.LocalBackend.stat_if_local

    def counted(self: local_objects.LocalBackend, name: str) -> object:
        seen.append(name)
        return glance(self, name)

    monkeypatch.setattr(local_objects.LocalBackend, "stat_if_local", counted)
    return seen


def _rested(root: Path) -> None:
    """The directory of versions as if nobody had touched it for a while."""
    place = root / "__manifest" / "_versions"
    os.utime(place, ns=(place.stat().st_atime_ns, place.stat().st_mtime_ns - 10_000_000_000))


def test_reads_of_an_unchanged_graph_list_nothing(tmp_path: Path, listings: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    _rested(tmp_path / "g")
    graph.query(NAMES)
    listings.clear()
    for _ in range(5):
        graph.query(NAMES)
    assert listings == []


def test_recently_changed_head_is_checked_by_name(tmp_path: Path, listings: list[str], looks: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.insert("Person", {"name": "Ada"})
    listings.clear()
    looks.clear()
    graph.query(NAMES)
    graph.query(NAMES)
    assert listings == []
    assert len(looks) == 2 * 2  # what would be next, and what is there


def test_repeated_writes_list_no_versions(tmp_path: Path, listings: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.insert("Person", {"name": "first"})
    listings.clear()
    for number in range(5):
        graph.insert("Person", {"name": f"p{number}"})
    assert listings == []


def test_first_read_and_write_of_a_handle_list_no_versions(tmp_path: Path, listings: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.insert("Person", {"name": "Ada"})
    listings.clear()
    line = apart(tmp_path / "g")
    assert Graph(Handle(line.store, line)).query(NAMES).num_rows == 1
    line = apart(tmp_path / "g")
    Graph(Handle(line.store, line)).insert("Person", {"name": "Bob"})
    assert listings == []


def test_write_of_another_process_is_seen_at_once(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    other = omnigraph.open(tmp_path / "g", durability="os")  # a line of its own, like a process
    for number in range(5):
        _rested(tmp_path / "g")
        graph.query(NAMES)
        graph.query(NAMES)
        other.insert("Person", {"name": f"p{number}"})
        assert graph.query(NAMES).num_rows == number + 1


def test_replaced_root_raises_read_set_conflict(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    _rested(tmp_path / "g")
    graph.query(NAMES)
    graph.query(NAMES)
    shutil.move(tmp_path / "g", tmp_path / "old")
    omnigraph.init(tmp_path / "h", SCHEMA)
    shutil.move(tmp_path / "h", tmp_path / "g")
    _rested(tmp_path / "g")
    with pytest.raises(omnigraph.errors.ReadSetConflict):
        graph.query(NAMES)
