"""What a graph of single inserts costs as it grows, without any upkeep and after it.

Prints bytes, fragments, effects of a write, and the times of a scan and of reads from a fresh
handle beside those of a table that was written at once: only such ratios mean something on a busy
machine. Then what reads and writes ask of an S3 server, to which the graph is brought at each age.
Takes the number of commits as its argument (1,000 by default).
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
SOME = 8  # writes of a kind: some fold, some do not


@dataclass(frozen=True, slots=True)
class Place:
    """Where graphs are made, and the server to which they are brought."""

    folder: str
    server: S3Server
    proxy: Proxy


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


def row(title: str, graph: Graph, fresh: Graph, writes: str) -> None:
    """One line: the graph, and how it compares with one that was written at once."""
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
    """Insert one at a time; effects of the median and the worst write, and what one takes."""
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
    return f"{statistics.median(counts):.0f}, worst {max(counts)}, {each:.1f} ms"


def written_at_once(folder: str, count: int) -> Graph:
    """The graph to compare with: one load, and its indexes."""
    fresh = omnigraph.init(f"{folder}/fresh{count}", SCHEMA, durability="os")
    if count:
        fresh.load({"Person": [{"name": f"p{n}", "age": n} for n in range(count)]}, mode="append")
        fresh.maintenance.optimize()
    return fresh


def requests(place: Place, graph: Graph) -> Iterator[str]:
    """What is asked of S3 at this age: lookups, and inserts of a handle that is warm or cold."""
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
        "a write, warm": lambda n: held.insert("Person", {"name": f"warm{n}", "age": n}),
        "a write, cold": cold,
        "a lookup, cold": lookup,
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
    """Print the line of an age; gives what is asked of S3 at it."""
    row(title, graph, fresh, writes)
    return [f"{title:<16}{one}" for one in requests(place, graph)]


def main(count: int) -> None:
    """Grow one graph, and look at it at several ages."""
    with _place() as place:
        graph = omnigraph.init(f"{place.folder}/graph", SCHEMA, durability="os")
        head = ("effects and time of a write", "scan", "lookup, cold", "all, cold")
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
        print(f"\n{'commits':<16}{'requests of':<16}{'the least':<30}the most, of {SOME}")
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
