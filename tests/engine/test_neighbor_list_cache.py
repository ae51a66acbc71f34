"""Neighbor lists cached on disk: shared, bounded and verified."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from omnigraph.engine.adjacency import neighbors, topology_cache
from omnigraph.engine.adjacency.array_files import ArrayFileCache
from omnigraph.engine.adjacency.neighbor_lists import NeighborLists
from omnigraph.engine.adjacency.neighbors import load_topology
from omnigraph.engine.adjacency.topology import Topology, build_topology
from omnigraph.engine.adjacency.topology_cache import drop_root
from omnigraph.engine.query_caches import MemoryCache, QueryCaches, open_caches, shared_caches
from omnigraph.values.table_key import TableKey
from tests.engine.unchecked_graph import SmallGraph, small_graph

PERSON, KNOWS = TableKey("node:Person"), TableKey("edge:Knows")


@pytest.fixture(autouse=True)
def _small_lists_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (neighbors, topology_cache):
        monkeypatch.setattr(module, "MIN_CACHED_EDGES", 0)


@pytest.fixture
def graph(tmp_path: Path) -> SmallGraph:
    made = small_graph(tmp_path / "g")
    made.nodes(PERSON, ["a", "b", "c"])
    made.edges(KNOWS, [("a", "b"), ("a", "b"), ("b", "c")])
    return made


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """How often lists were made anew."""
    made: list[object] = []

    def counted(*args: object, **how: object) -> Topology:
        made.append(args)
        return build_topology(*args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(neighbors, "build_topology", counted)
    return made


def lists(graph: SmallGraph, caches: QueryCaches, *, bags: bool = False) -> list[int]:
    found = load_topology(graph.context(caches), "Knows", bags=bags)
    return [int(one) for one in found.by_source.values]


def only_file(place: Path) -> Path:
    (found,) = place.glob("*.arrays")
    return found


def test_cached_lists_are_shared_between_processes(graph: SmallGraph, place: Path, builds: list[object]) -> None:
    assert lists(graph, open_caches(place)) == [1, 2]
    assert lists(graph, open_caches(place)) == [1, 2]
    assert len(builds) == 1
    assert lists(graph, open_caches(place), bags=True) == [1, 1, 2]
    assert len(builds) == 2


def test_caches_of_a_removed_root_are_dropped(graph: SmallGraph, place: Path, builds: list[object]) -> None:
    caches = open_caches(place)
    lists(graph, caches)
    drop_root(caches, graph.context(caches).snapshot.store)
    assert caches.memory.recent_keys() == []
    assert list(place.glob("*.arrays")) == []
    lists(graph, caches)
    assert len(builds) == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "zeros", "other", "head"])
def test_damaged_cache_file_is_rebuilt(graph: SmallGraph, place: Path, builds: list[object], damage: str) -> None:
    lists(graph, open_caches(place))
    path = only_file(place)
    data = bytearray(path.read_bytes())
    match damage:
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "empty":
            path.write_bytes(b"")
        case "flipped":
            data[4096] ^= 1
            path.write_bytes(data)
        case "zeros":
            path.write_bytes(bytes(len(data)))
        case "other":
            path.write_bytes(b"not ours at all" * 1000)
        case "head":
            path.write_bytes(data.replace(b'"size"', b'"sice"'))
    assert lists(graph, open_caches(place)) == [1, 2]
    assert len(builds) == 2
    assert lists(graph, open_caches(place)) == [1, 2]
    assert len(builds) == 2


def test_small_change_patches_the_cached_file(graph: SmallGraph, place: Path, builds: list[object]) -> None:
    lists(graph, open_caches(place))
    graph.edges(KNOWS, [("c", "a")])
    assert lists(graph, open_caches(place)) == [1, 2, 0]
    assert len(builds) == 1


def test_unwritable_cache_directory_is_skipped(graph: SmallGraph, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    caches = open_caches(blocked / "cache")
    assert lists(graph, caches) == [1, 2]
    assert caches.disk is not None
    assert not caches.disk.save("x", {}, {"a": np.arange(3)})


def test_least_recently_used_file_is_evicted_first(place: Path) -> None:
    disk = ArrayFileCache(place, budget=3 * 5000)
    for at, name in enumerate(("a", "b", "c")):
        disk.save(name, {}, {"x": np.arange(10)})
        os.utime(place / f"{name}.arrays", (at + 1, at + 1))
    assert disk.load("a") is not None
    disk.save("d", {}, {"x": np.arange(10)})
    assert sorted(path.stem for path in place.iterdir()) == ["a", "c", "d"]
    disk.save("huge", {}, {"x": np.zeros(100_000)})
    assert disk.load("huge") is None


def test_files_of_killed_processes_are_removed(place: Path) -> None:
    disk = ArrayFileCache(place, budget=1 << 20)
    place.mkdir()
    (place / "x.abc.unfinished").write_bytes(b"half")
    os.utime(place / "x.abc.unfinished", (1, 1))
    disk.save("a", {}, {"x": np.arange(10)})
    assert [path.name for path in place.iterdir()] == ["a.arrays"]


def test_environment_variable_sets_the_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "mine"))
    disk = shared_caches().disk
    assert disk is not None
    assert disk.directory == tmp_path / "mine"
    assert shared_caches() is shared_caches()
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", "")
    assert shared_caches().disk is None
    monkeypatch.delenv("OMNIGRAPH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "outer"))
    disk = shared_caches().disk
    assert disk is not None
    assert disk.directory == tmp_path / "outer" / "omnigraph"


def test_concurrent_threads_build_a_value_once() -> None:
    memory, made, ready = MemoryCache(1000), [], threading.Barrier(8)

    def make() -> int:
        made.append(1)
        return 7

    def ask() -> None:
        ready.wait()
        assert memory.get_or_build("k", make, lambda _: 1) == 7

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert made == [1]
    assert memory.used_bytes == 1


def test_failed_builds_are_not_cached() -> None:
    memory = MemoryCache(10)
    assert memory.get_or_build("k", lambda: None, lambda _: 1) is None
    with pytest.raises(ValueError, match="no"):
        memory.get_or_build("k", _fail, lambda _: 1)
    assert memory.get_or_build("k", lambda: 3, lambda _: 1) == 3
    memory.put("large", 1, 11)
    assert (memory.get("large"), memory.get("k")) == (None, 3)


def _fail() -> int:
    raise ValueError("no")


def test_lists_hold_numbers_beyond_32_bits() -> None:
    wide = NeighborLists(np.array([0, 1]), np.array([1 << 40]))
    assert wide.expand(np.array([0, 0]))[1].tolist() == [1 << 40, 1 << 40]
