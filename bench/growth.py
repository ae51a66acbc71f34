"""What a graph of single inserts costs as it grows, without any upkeep and after it.

Prints bytes, fragments, requests of a write, and the times of a lookup and a scan beside those of a
table that was written at once: only such ratios mean something on a busy machine. Takes the number
of commits as its argument (1,000 by default).
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.graph import Graph

SCHEMA = "node Person { name: String @key  age: I64? }"
ALL = "match { $p: Person } return { $p.name as name, $p.age as age }"
ONE = 'match { $p: Person { name: "p0" } } return { $p.age as age }'
AGES = (1, 100, 1_000, 10_000)


def medians(*actions: Callable[[], Any], times: int = 25) -> list[float]:
    """Milliseconds of each, taken in turns, so that all meet the same machine."""
    took: list[list[float]] = [[] for _ in actions]
    for _ in range(times):
        for one, held in zip(actions, took, strict=True):
            start = time.perf_counter()
            one()
            held.append(time.perf_counter() - start)
    return [statistics.median(held) * 1000 for held in took]


def opened(uri: str, text: str) -> Callable[[], Any]:
    """A query in a handle that was just opened."""
    return lambda: list(omnigraph.open(uri, read_only=True).query(text))


def scanned(graph: Graph) -> Callable[[], Any]:
    """The whole table, opened and read below the engine and its caches."""
    return lambda: graph.table("Person").to_table()


def row(title: str, graph: Graph, fresh: Graph, effects: str) -> None:
    """One line: the graph, and how it compares with one that was written at once."""
    folder = Path(graph.uri)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    version = graph.snapshot.tables["node:Person"].lance_version
    manifest = next(folder.rglob(f"_versions/d{version}.manifest")).stat().st_size
    fragments = len(graph.table("Person").get_fragments())
    asked = (scanned, lambda one: opened(one.uri, ONE), lambda one: opened(one.uri, ALL))
    pairs = [medians(make(graph), make(fresh)) for make in asked]
    told = "".join(f"{one:9.1f}{one / other:6.2f}x" for one, other in pairs)
    print(
        f"{title:<26}{size / 1e6:9.2f}{manifest:10,}{fragments:6}  {effects:<22}{told}", flush=True
    )


def grown(graph: Graph, start: int, end: int) -> str:
    """Insert one at a time; how many effects the median and the worst write had."""
    counts = []
    for n in range(start, end):
        with graph._store.effects.recorded() as seen:
            graph.insert("Person", {"name": f"p{n}", "age": n})
        counts.append(len(seen))
    return f"{statistics.median(counts):.0f}, worst {max(counts)}"


def written_at_once(folder: str, count: int) -> Graph:
    """The graph to compare with: one load, and its indexes."""
    fresh = omnigraph.init(f"{folder}/fresh{count}", SCHEMA, durability="os")
    fresh.load({"Person": [{"name": f"p{n}", "age": n} for n in range(count)]}, mode="append")
    fresh.optimize()
    return fresh


def main(count: int) -> None:
    """Grow one graph, and look at it at several ages."""
    folder = tempfile.mkdtemp()
    try:
        graph = omnigraph.init(f"{folder}/graph", SCHEMA, durability="os")
        head = (
            "MB",
            "version B",
            "frags",
            "effects of a write",
            "scan",
            "lookup, cold",
            "all, cold",
        )
        print(f"{'commits':<26}{head[0]:>9}{head[1]:>10}{head[2]:>6}  {head[3]:<22}", end="")
        print("".join(f"{one:>16}" for one in head[4:]))
        before = 0
        for age in [one for one in AGES if one < count] + [count]:
            effects = grown(graph, before, age)
            row(f"{age:,}", graph, written_at_once(folder, age), effects)
            before = age
        fresh = omnigraph.open(f"{folder}/fresh{count}")
        graph.optimize()
        row("after optimize", graph, fresh, "")
        graph.cleanup(keep=1, older_than=0, grace=0, confirm=True)
        row("after cleanup", graph, fresh, "")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
