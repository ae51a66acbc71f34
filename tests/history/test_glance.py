"""Reads and writes look at the newest state without a listing, and miss nothing."""

import os
import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.storage import local_objects
from tests.history.apart import apart

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


def test_a_quiet_graph_is_not_listed_again(tmp_path: Path, listings: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    _rested(tmp_path / "g")
    graph.query(NAMES)
    listings.clear()
    for _ in range(5):
        graph.query(NAMES)
    assert listings == []


def test_what_just_changed_is_looked_at_until_it_rests(tmp_path: Path, listings: list[str], looks: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.insert("Person", {"name": "Ada"})
    listings.clear()
    looks.clear()
    graph.query(NAMES)
    graph.query(NAMES)
    assert listings == []
    assert len(looks) == 2 * 2  # what would be next, and what is there


def test_a_write_lists_no_versions_however_many_there_are(tmp_path: Path, listings: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.insert("Person", {"name": "first"})
    listings.clear()
    for number in range(5):
        graph.insert("Person", {"name": f"p{number}"})
    assert listings == []


def test_nor_does_the_first_read_or_write_of_a_handle(tmp_path: Path, listings: list[str]) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.insert("Person", {"name": "Ada"})
    listings.clear()
    line = apart(tmp_path / "g")
    assert Graph(Handle(line.store, line)).query(NAMES).num_rows == 1
    line = apart(tmp_path / "g")
    Graph(Handle(line.store, line)).insert("Person", {"name": "Bob"})
    assert listings == []


def test_the_write_of_another_line_is_seen_at_once(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    other = omnigraph.open(tmp_path / "g", durability="os")  # a line of its own, like a process
    for number in range(5):
        _rested(tmp_path / "g")
        graph.query(NAMES)
        graph.query(NAMES)
        other.insert("Person", {"name": f"p{number}"})
        assert graph.query(NAMES).num_rows == number + 1


def test_a_graph_made_again_in_its_place_is_told(tmp_path: Path) -> None:
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
