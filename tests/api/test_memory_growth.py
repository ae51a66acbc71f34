"""Memory of long-lived handles: what a writer, a reader that follows, and the change feed keep for each commit.

Counts Python objects by type and the bytes of Lance's caches instead of resident memory, which depends on the machine.
Small limits take the place of the default ones, so that every cache is full after a few commits.
"""

import gc
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path

import pytest

import omnigraph
from bench.memory import heap_bytes
from omnigraph.api.graph import Graph
from omnigraph.engine import query_caches
from omnigraph.history import commit_log, state
from omnigraph.storage import effects, session_limit
from omnigraph.storage.plain_version import PlainVersion

SCHEMA = "node Person { name: String @key  age: I64? }"
ADULTS = "match { $p: Person  $p.age >= 18 } return { count($p) as adults }"
PERSON = 'match { $p: Person { name: "p0" } } return { $p.age as age }'


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 4)
    monkeypatch.setattr(commit_log, "MAX_CHUNK_COMMITS", 4)
    monkeypatch.setattr(state, "_COMMIT_ROW_CACHE_SIZE", 8)
    monkeypatch.setattr(state, "_commit_row_cache", OrderedDict())
    monkeypatch.setattr(session_limit, "_MAX_SESSION_BYTES", 100_000)
    monkeypatch.setattr(query_caches, "VERSIONS_PER_FAMILY", 2)
    monkeypatch.setattr(effects, "_RECENT_LIMIT", 16)


def limit_caches(graph: Graph) -> Graph:
    """Return the graph with caches that are full after a few commits."""
    store = graph._handle.store
    store.dataset_cache.limit, store.dataset_cache.versions_per_session = 4, 12
    store.object_cache.max_entries = 6
    return graph


def lance_bytes(graph: Graph) -> int:
    """Return the bytes that Lance caches for a graph's tables and for its branch manifest."""
    table_bytes: int = graph._handle.store.lance_session.size_bytes()
    dataset = graph._handle.branch_state.last_known().cell.dataset
    # A read-only handle on a disk reads its manifest without Lance.
    return table_bytes if isinstance(dataset, PlainVersion) else table_bytes + int(dataset.session().size_bytes())


def count_objects() -> Counter[str]:
    """Return the number of objects of each type that the garbage collector tracks."""
    gc.collect()
    return Counter(f"{type(item).__module__}.{type(item).__qualname__}" for item in gc.get_objects())


def smallest_counts(step: Callable[[], object], steps: int, samples: int) -> Counter[str]:
    """Take steps, and return the smallest number of each kind of object, since full caches are emptied at intervals."""
    smallest: Counter[str] | None = None
    for number in range(1, steps + 1):
        step()
        if number % (steps // samples) == 0:
            counts = count_objects()
            smallest = counts if smallest is None else smallest & counts
    assert smallest is not None
    return smallest


def grown_types(step: Callable[[], object], *, steps: int, samples: int) -> dict[str, int]:
    """Return the types of which at least one object per step remains, after the same number of steps to warm up."""
    for _ in range(steps):
        step()
    count_objects()  # the first count creates objects itself
    before = smallest_counts(step, steps, samples)
    after = smallest_counts(step, steps, samples)
    return {name: after[name] - before[name] for name in after if after[name] - before[name] >= steps}


@pytest.fixture
def roles(tmp_path: Path, small_limits: None) -> Iterator[tuple[Callable[[], None], list[Graph]]]:
    """Give a step in which one handle commits, another queries and a third follows the feed, and the handles."""
    writer = limit_caches(omnigraph.init(str(tmp_path / "g"), SCHEMA, durability="os"))
    writer.insert("Person", {"name": "p0", "age": 20})
    reader = limit_caches(omnigraph.open(str(tmp_path / "g"), read_only=True))
    numbers = count(1)

    def commit() -> None:
        number = next(numbers)
        if number % 2:
            writer.insert("Person", {"name": f"p{number}", "age": number})
        else:
            writer.update("Person", where='name = "p0"', set={"age": number})

    blocks = reader.changes.follow("now", wait=lambda _: commit())

    def step() -> None:
        assert len(next(blocks).changes) == 1
        assert len(list(reader.query(ADULTS))) == len(list(reader.query(PERSON))) == 1

    yield step, [writer, reader]
    writer.close()
    reader.close()


def test_long_lived_handles_keep_nothing_of_past_commits(
    roles: tuple[Callable[[], None], list[Graph]],
) -> None:
    step, handles = roles
    assert grown_types(step, steps=24, samples=4) == {}
    for graph in handles:
        store = graph._handle.store
        assert len(store.dataset_cache._datasets) <= 4
        assert len(store.object_cache._entries) <= 6
        assert lance_bytes(graph) < 400_000
    assert len(state._commit_row_cache) <= 8


def test_a_writer_keeps_no_commits_of_sealed_chunks(tmp_path: Path, small_limits: None) -> None:
    """Tail compaction looks up checksums of files that were written before the newest chunk was sealed."""
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA, durability="os")
    for number in range(100):
        graph.insert("Person", {"name": f"p{number}", "age": number})
    cached_names = list(graph._handle.store.object_cache._entries)
    assert [name for name in cached_names if name.startswith("_commits/")] == []
    assert len(graph.log()) == 101


@pytest.mark.full
def test_heap_does_not_grow_with_commits(roles: tuple[Callable[[], None], list[Graph]]) -> None:
    step, _ = roles
    if math.isnan(heap_bytes()):
        pytest.skip("the C library does not report its heap")

    def smallest_heap(steps: int) -> float:
        sizes = []
        for number in range(steps):
            step()
            if number % 10 == 0:
                gc.collect()
                sizes.append(heap_bytes())
        return min(sizes)

    # One-off growth, such as that of a hash table, falls into one window. A leak falls into all of them.
    smallest_heap(200)
    sizes = [smallest_heap(400) for _ in range(4)]
    assert min(after - before for before, after in pairwise(sizes)) < 400 * 500
