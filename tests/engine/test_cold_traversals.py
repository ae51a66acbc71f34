"""The first traversals after a load: looking up edges never costs much more than building the lists once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph import Graph, testing
from omnigraph.engine.adjacency import edge_probe, neighbors
from omnigraph.engine.adjacency.topology import build_topology
from omnigraph.engine.adjacency.topology_cache import MIN_CACHED_EDGES
from omnigraph.storage.scan import count_rows, scan

SCHEMA = "node Person { name: String @key }  edge Knows: Person -> Person"
EDGES = MIN_CACHED_EDGES + 1000
PEOPLE = EDGES // 10
# Building the lists reads, encodes and sorts all rows, which takes as long as scanning each of them this many times.
SCANS_PER_BUILD = 8
# A lookup in an index takes as long as scanning at least this many rows.
MIN_LOOKUP_ROWS = 100_000
HOP = "match { $p: Person { name: $start }  $p knows $q } return { count($q) as n }"
BOTH = "match { $p: Person { name: $start }  $p <knows> $q } return { count($q) as n }"
PATH = (
    "match { $p: Person { name: $start }  $q: Person { name: $end }  $w = any shortest $p knows{1,6} $q }"
    " return { length($w) as n }"
)


@dataclass
class Work:
    """The rows that lookups scanned, the number of lookups, and the number of times that lists were built."""

    scanned_rows: int = 0
    lookups: int = 0
    builds: list[Any] = field(default_factory=list)


@pytest.fixture(scope="module")
def loaded() -> Iterator[Graph]:
    """Provide a graph that has just been loaded, with the branch `indexed` on which all indexes are built."""
    names = pa.array([f"p{number}" for number in range(PEOPLE)])
    numbers = np.random.default_rng(7)
    src, dst = (names.take(pa.array(numbers.integers(0, PEOPLE, EDGES))) for _ in range(2))
    with testing.graph(SCHEMA) as graph:
        graph.load({"Person": pa.table({"name": names}), "Knows": pa.table({"src": src, "dst": dst})}, mode="append")
        graph.branches.create("indexed").maintenance.ensure_indices()
        yield graph


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Work:
    """Count the work of one test, which starts without cached lists."""
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path))
    counted = Work()

    def count_scan(table: Any, *arguments: Any, **options: Any) -> pa.Table:
        counted.scanned_rows += count_rows(table)
        counted.lookups += 1
        return scan(table, *arguments, **options)

    def count_build(*arguments: Any, **options: Any) -> Any:
        counted.builds.append(arguments)
        return build_topology(*arguments, **options)

    monkeypatch.setattr(edge_probe, "scan", count_scan)
    monkeypatch.setattr(neighbors, "build_topology", count_build)
    return counted


def ask(graph: Graph, query: str, times: int) -> None:
    """Ask the same question about different people."""
    for number in range(times):
        names = {"start": f"p{number}", "end": f"p{PEOPLE - 1 - number}"}
        graph.query(query, params={name: value for name, value in names.items() if f"${name}" in query})


@pytest.mark.parametrize("query", [HOP, BOTH, PATH])
def test_without_indexes_lookups_scan_no_more_rows_than_a_build_costs(loaded: Graph, work: Work, query: str) -> None:
    ask(loaded, query, times=30)
    assert work.lookups, "the first questions are cheaper than building the lists"
    assert work.scanned_rows <= SCANS_PER_BUILD * (EDGES + PEOPLE)
    assert len(work.builds) == 1


@pytest.mark.parametrize("query", [HOP, BOTH, PATH])
def test_with_indexes_lookups_cost_no_more_than_a_build(loaded: Graph, work: Work, query: str) -> None:
    ask(loaded.checkout("indexed"), query, times=30)
    assert work.lookups
    assert work.lookups // 2 * MIN_LOOKUP_ROWS <= SCANS_PER_BUILD * (EDGES + PEOPLE)
    assert len(work.builds) == 1


def test_indexes_allow_more_lookups(loaded: Graph, work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ask(loaded, HOP, times=30)
    without_indexes = work.lookups
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "other"))  # lists are not derived from the ones above
    ask(loaded.checkout("indexed"), HOP, times=30)
    assert work.lookups - without_indexes > without_indexes


def test_the_configured_number_of_lookups_replaces_the_estimate(
    loaded: Graph, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "5")
    ask(loaded, HOP, times=5)
    assert (work.lookups // 2, len(work.builds)) == (5, 0)
    ask(loaded, HOP, times=5)
    assert (work.lookups // 2, len(work.builds)) == (5, 1)


def test_one_large_frontier_builds_the_lists_at_once(loaded: Graph, work: Work) -> None:
    everyone = "match { $p: Person  $p knows $q } return { count($q) as n }"
    assert loaded.checkout("indexed").query(everyone).scalar() > 0
    assert (work.lookups, len(work.builds)) == (0, 1)
