"""Measure a graph of single inserts as it grows, without maintenance and after maintenance.

At several ages, prints the size on disk, the number of fragments and the durable effects per write. Also prints the
times of a scan and of reads from a fresh handle, and their ratios to the same operations on a table that was written by
a single load, because only ratios are meaningful on a busy machine. Then prints the number of requests that reads and
writes send to an S3 server, to which the graph is copied at each age. The argument is the number of commits (1,000 by
default).
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey
from tests.cost.measurements import METHODS, spoken
from tests.rig.independent_writers import apart
from tests.rig.proxy import Proxy, requests_of
from tests.rig.s3_server import S3Server
from tests.rig.seaweed import seaweed
from tests.rig.upload import bring

SCHEMA = "node Person { name: String @key  age: I64? }"
ALL = "match { $p: Person } return { $p.name as name, $p.age as age }"
ONE = 'match { $p: Person { name: "p0" } } return { $p.age as age }'
AGES = (0, 100, 1_000, 10_000)
SOME = 8  # operations of each kind; only some of the writes compact the tail


@dataclass(frozen=True, slots=True)
class Place:
    """The folder in which graphs are created, and the server to which they are copied."""

    folder: str
    server: S3Server
    proxy: Proxy


def medians(*actions: Callable[[], Any], times: int = 25) -> list[float]:
    """Return the median milliseconds of each action. The actions alternate, so that they run under the same load."""
    took: list[list[float]] = [[] for _ in actions]
    for _ in range(times):
        for one, held in zip(actions, took, strict=True):
            start = time.perf_counter()
            one()
            held.append(time.perf_counter() - start)
    return [statistics.median(held) * 1000 for held in took]


def opened(uri: str, text: str) -> Callable[[], Any]:
    """Return an action that opens a new handle and runs a query."""
    return lambda: list(omnigraph.open(uri, read_only=True).query(text))


def scanned(graph: Graph) -> Callable[[], Any]:
    """Return an action that opens and reads the whole table directly, without the engine and its caches."""
    return lambda: graph.table("Person").to_table()


def row(title: str, graph: Graph, fresh: Graph, writes: str) -> None:
    """Print one line that compares the graph with a graph that was written by a single load."""
    folder = Path(graph.uri)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    version = graph.snapshot.tables[TableKey("node:Person")].lance_version
    manifest = next(folder.rglob(f"_versions/*{version}.manifest"), None)
    held = manifest.stat().st_size if manifest is not None else 0
    fragments = len(graph.table("Person").get_fragments())
    asked = (scanned, lambda one: opened(one.uri, ONE), lambda one: opened(one.uri, ALL))
    pairs = [medians(make(graph), make(fresh)) for make in asked]
    told = "".join(f"{one:9.1f}{one / other:6.2f}x" for one, other in pairs)
    print(f"{title:<16}{size / 1e6:9.2f}{held:8,}{fragments:6}  {writes:<28}{told}", flush=True)


def grown(graph: Graph, start: int, end: int) -> str:
    """Insert rows one at a time. Return the median and maximum number of effects per write, and the median time."""
    counts, took = [], []
    for n in range(start, end):
        begun = time.perf_counter()
        with graph._handle.store.effects.recording() as seen:
            graph.insert("Person", {"name": f"p{n}", "age": n})
        took.append(time.perf_counter() - begun)
        counts.append(len(seen))
    if not counts:
        return ""
    each = statistics.median(took[-100:]) * 1000
    return f"{statistics.median(counts):.0f}, max {max(counts)}, {each:.1f} ms"


def written_at_once(folder: str, count: int) -> Graph:
    """Create the graph for the comparison with a single load, and build its indexes."""
    fresh = omnigraph.init(f"{folder}/fresh{count}", SCHEMA, durability="os")
    if count:
        fresh.load({"Person": [{"name": f"p{n}", "age": n} for n in range(count)]}, mode="append")
        fresh.maintenance.optimize()
    return fresh


def requests(place: Place, graph: Graph) -> Iterator[str]:
    """Yield the S3 requests of a cold lookup, a warm write and a cold write at this age of the graph."""
    uri = f"s3://{place.server.bucket}/graph-{clock_and_ids.new_nonce()}"
    bring(place.server, Path(graph.uri), uri)

    def lookup(_: int) -> None:
        line = apart(uri)
        list(Graph(Handle(line.store, line)).query(ONE))

    def cold(n: int) -> None:
        line = apart(uri)
        Graph(Handle(line.store, line)).insert("Person", {"name": f"cold{n}", "age": n})

    line = apart(uri)
    held = Graph(Handle(line.store, line))
    held.insert("Person", {"name": "first", "age": 0})
    kinds: dict[str, Callable[[int], Any]] = {
        "warm write": lambda n: held.insert("Person", {"name": f"warm{n}", "age": n}),
        "cold write": cold,
        "cold lookup": lookup,
    }
    for title, action in kinds.items():
        made = [_asked(place.proxy, action, n) for n in range(SOME)]
        low = min(made, key=lambda one: one.total())
        high = max(made, key=lambda one: one.total())
        yield f"{title:<16}{spoken(low, METHODS):<30}{spoken(high, METHODS)}"


def _asked(proxy: Proxy, action: Callable[[int], Any], n: int) -> Counter[str]:
    with requests_of(proxy) as made:
        action(n)
    return made.counts


def look(place: Place, title: str, graph: Graph, fresh: Graph, writes: str = "") -> list[str]:
    """Print the line for an age of the graph, and return the lines about its S3 requests."""
    row(title, graph, fresh, writes)
    return [f"{title:<16}{one}" for one in requests(place, graph)]


def main(count: int) -> None:
    """Let a graph grow, and measure it at several ages."""
    with _place() as place:
        graph = omnigraph.init(f"{place.folder}/graph", SCHEMA, durability="os")
        head = ("effects and time per write", "scan", "cold lookup", "cold read of all")
        print(f"{'commits':<16}{'MB':>9}{'version':>8}{'frags':>6}  {head[0]:<28}", end="")
        print("".join(f"{one:>16}" for one in head[1:]), flush=True)
        before, bills = 0, list[str]()
        for age in [one for one in AGES if one < count] + [count]:
            writes = grown(graph, before, age)
            bills += look(place, f"{age:,}", graph, written_at_once(place.folder, age), writes)
            before = age
        fresh = omnigraph.open(f"{place.folder}/fresh{count}")
        graph.maintenance.optimize()
        bills += look(place, "after optimize", graph, fresh)
        graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
        bills += look(place, "after cleanup", graph, fresh)
        print(f"\n{'commits':<16}{'S3 requests':<16}{'minimum':<30}maximum of {SOME}")
        print("\n".join(bills))


@contextmanager
def _place() -> Iterator[Place]:
    folder = tempfile.mkdtemp()
    try:
        Path(folder, "server").mkdir()
        with seaweed(Path(folder, "server")) as server:
            proxy = Proxy(server.port)
            os.environ.update(server.behind(proxy.port).environment)
            try:
                yield Place(folder, server, proxy)
            finally:
                proxy.stop()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
