"""Measure the cost of merges, which must depend on the number of changes and not on the size of the target.

Varies the number of changed rows, the number of rows in the target and the number of tables. Prints the requests to an
S3 server, the cost of creating a branch, the times on a disk, and the memory of a merge into a type with vectors. A
target with ten times as many rows may need at most 1.2 times as many requests and 1.5 times as much time. Changed rows
are adjacent. With `--spread`, they are distributed over the whole table, each in its own page. The time of Lance's
table commits is printed separately, because a commit that preserves row ids reads the ids of many rows. The default
sizes are small. `--whole` takes hours and about 20 GB of disk space.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.publish import next_state
from tests.cost.measurements import METHODS, spoken
from tests.rig.proxy import Proxy, requests_of
from tests.rig.seaweed import seaweed

ROUNDS = 5
BATCH = 1_000_000
REQUESTS, TIME = 1.2, 1.5  # the maximum ratios for a target with ten times as many rows
MEMORY = 1 << 30
_DIMENSIONS = 768


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of changed rows, target rows, tables, and rows with vectors that are measured."""

    deltas: Sequence[int] = (10, 1_000)
    targets: Sequence[int] = (100_000, 1_000_000)
    tables: Sequence[int] = (2, 20)
    vectors: int = 20_000
    spread: bool = False


WHOLE = Sizes((10, 1_000, 100_000), (100_000, 1_000_000, 10_000_000), (2, 20, 100), 1_000_000)


class Target:
    """A graph with a given number of rows and tables, and pairs of branches that have diverged."""

    def __init__(self, root: str, rows: int, tables: int, *, spread: bool) -> None:
        self.rows, self.tables, self.spread, self.made = rows, tables, spread, 0
        schema = "".join(_type(n) for n in range(tables))
        self.graph = omnigraph.init(root, schema, durability="os")
        each = rows // tables
        for start in range(0, each, BATCH):
            part = range(start, min(each, start + BATCH))
            self.graph.load({f"T{n}": people(part, 0) for n in range(tables)}, mode="append")
        self.graph.maintenance.ensure_indices()

    def apart(self, delta: int) -> tuple[str, str]:
        """Create a branch with `delta` changes and a target branch with its own changes. Return both names."""
        self.made += 1
        source, target = f"s{self.made}", f"t{self.made}"
        theirs, ours = (self.graph.branches.create(name) for name in (source, target))
        used = min(self.tables, delta)
        theirs.load({f"T{n}": self._changed(delta // used) for n in range(used)}, mode="merge")
        last = range(self.rows // self.tables - 1, self.rows // self.tables)
        ours.load({f"T{n}": people(last, 7) for n in range(used)}, mode="merge")
        return source, target

    def _changed(self, count: int) -> pa.Table:
        """Return rows for one table, half new and half changed. Changed rows are adjacent unless `spread` is set."""
        each, half = self.rows // self.tables, max(1, count // 2)
        if self.spread:
            old = np.unique(np.linspace(0, each - 2, half).astype(int))
        else:
            old = np.arange(each // 2, min(each - 1, each // 2 + half))
        new = range(each, each + count - len(old))
        return pa.concat_tables([people(old, 1), people(new, 1)])


def _target(root: str, rows: int, tables: int, sizes: Sizes) -> Target:
    return Target(root, rows, tables, spread=sizes.spread)


def _type(n: int) -> str:
    return f"node T{n} {{ name: String  n: I64?  text: String?  @key(name) }}\n"


def people(which: Iterable[int], value: int) -> pa.Table:
    """Return the rows of a table with the given numbers."""
    numbers = np.fromiter(which, np.int64)
    names = pa.array([f"p{one:09d}" for one in numbers], pa.string())
    texts = pa.array([f"text of {one}" for one in numbers], pa.string())
    return pa.table({"name": names, "n": pa.array(numbers + value), "text": texts})


Took = tuple[float, float]  # the milliseconds of a merge, and the part in which Lance commits tables


def timed(targets: Sequence[Target], delta: int) -> list[Took]:
    """Return the best time of a merge on each target. The targets alternate for several rounds."""
    best: list[Took] = [(float("inf"), 0.0)] * len(targets)
    for _ in range(ROUNDS):
        for at, one in enumerate(targets):
            source, target = one.apart(delta)
            with commits_of_lance() as spent:
                start = time.perf_counter()
                one.graph.merge(source, target)
                took = time.perf_counter() - start
            best[at] = min(best[at], (took * 1000, sum(spent) * 1000))
    return best


@contextmanager
def commits_of_lance() -> Iterator[list[float]]:
    """Collect the duration of each table commit in the block, in seconds."""
    spent: list[float] = []
    whole = next_state.commit_table  # type: ignore[attr-defined]

    def commit_table(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return whole(*args)
        finally:
            spent.append(time.perf_counter() - start)

    next_state.commit_table = commit_table  # type: ignore[attr-defined,assignment]
    try:
        yield spent
    finally:
        next_state.commit_table = whole  # type: ignore[attr-defined]


def counted(proxy: Proxy, one: Target, delta: int) -> str:
    """Return the requests of a merge by method. An earlier merge fills all caches."""
    one.graph.merge(*one.apart(delta))
    source, target = one.apart(delta)
    with requests_of(proxy) as made:
        one.graph.merge(source, target)
    return spoken(made.counts, METHODS)


def total(said: str) -> int:
    """Return the total number of requests in a line.

    >>> total("1 LIST, 6 PUT")
    7
    """
    return sum(int(part.split()[0]) for part in said.split(", "))


def requests(sizes: Sizes) -> Iterator[str]:
    """Yield the requests to an S3 server, and compare the targets."""
    with tempfile.TemporaryDirectory() as scratch, seaweed(Path(scratch)) as server:
        proxy = Proxy(server.port)
        os.environ.update(server.behind(proxy.port).environment)
        for tables in sizes.tables:
            top = f"s3://{server.bucket}/merge-{tables}"
            targets = [_target(f"{top}-{rows}", rows, tables, sizes) for rows in sizes.targets]
            for delta in sizes.deltas:
                lines = [counted(proxy, one, delta) for one in targets]
                yield from _compared(tables, delta, sizes.targets, lines)
            yield from (branch_cost(proxy, one) for one in targets)
        proxy.stop()


def _compared(tables: int, delta: int, targets: Sequence[int], lines: Sequence[str]) -> Iterator[str]:
    before = None
    for rows, line in zip(targets, lines, strict=True):
        count = total(line)
        ratio = "" if before is None else _verdict(count / before, REQUESTS)
        yield f"{tables:>4} tables {delta:>7} changes {rows:>9} rows  {line:<48}{ratio}"
        before = count


def branch_cost(proxy: Proxy, one: Target) -> str:
    """Return the requests that create a branch. Their number must not depend on the number of rows."""
    with requests_of(proxy) as made:
        one.graph.branches.create("counted")
    said = spoken(made.counts, METHODS)
    return f"{one.tables:>4} tables  create a branch {one.rows:>9} rows  {said}"


def times(sizes: Sizes) -> Iterator[str]:
    """Yield the times on a disk, and compare the targets."""
    for tables in sizes.tables:
        with tempfile.TemporaryDirectory() as place:
            targets = [_target(f"{place}/{rows}", rows, tables, sizes) for rows in sizes.targets]
            for delta in sizes.deltas:
                before = None
                for rows, took in zip(sizes.targets, timed(targets, delta), strict=True):
                    what = f"{tables:>4} tables {delta:>7} changes {rows:>9} rows"
                    yield f"{what}  {_told(took, before)}"
                    before = took


def _told(took: Took, before: Took | None) -> str:
    line = f"{took[0]:8.1f} ms, including {took[1]:8.1f} ms for Lance commits"
    if before is None:
        return line
    rest = (took[0] - took[1]) / (before[0] - before[1])
    return f"{line}  {_verdict(took[0] / before[0], TIME)}, without Lance commits {rest:.2f}x"


def _verdict(ratio: float, line: float) -> str:
    return f"{ratio:.2f}x{'' if ratio <= line else f'  ABOVE THE LIMIT OF {line}x'}"


def vectors(rows: int) -> Iterator[str]:
    """Yield the peak memory of merging 1,000 changed rows into a type with long vectors."""
    with tempfile.TemporaryDirectory() as place:
        for step in ("build", "merge"):
            asked = [sys.executable, "-m", "bench.merge", "--child", step, place, str(rows)]
            done = subprocess.run(asked, check=True, capture_output=True, text=True)
        peak = int(done.stdout)
        above = "" if peak < MEMORY else "  ABOVE THE LIMIT OF 1 GB"
        yield f"1,000 changes to {rows:,} rows with {_DIMENSIONS} dimensions: {peak >> 20} MB of memory{above}"


def child(step: str, place: str, rows: int) -> None:
    """Run one step of the memory measurement in this process. The merge prints its peak memory in bytes."""
    if step == "build":
        _build(place, rows)
        return
    omnigraph.open(place, durability="os").merge("side")
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def _build(place: str, rows: int) -> None:
    schema = f"node Doc {{ name: String  v: Vector({_DIMENSIONS})  @key(name) }}\n"
    graph = omnigraph.init(place, schema, durability="os")
    for start in range(0, rows, 20_000):
        graph.load({"Doc": documents(range(start, min(rows, start + 20_000)), 0)}, mode="append")
    graph.maintenance.ensure_indices()
    side = graph.branches.create("side")
    side.load({"Doc": documents(range(0, rows, max(1, rows // 1000))[:1000], 1)}, mode="merge")
    graph.load({"Doc": documents(range(rows - 1, rows), 2)}, mode="merge")


def documents(which: Sequence[int], value: int) -> pa.Table:
    """Return rows that have one vector each."""
    dice = np.random.default_rng(value)
    flat = pa.array(dice.random(len(which) * _DIMENSIONS, np.float32))
    vector = pa.FixedSizeListArray.from_arrays(flat, _DIMENSIONS)
    return pa.table({"name": [f"d{one:09d}" for one in which], "v": vector})


def main() -> None:
    """Measure everything, and print each line immediately."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--whole", action="store_true")
    asked.add_argument("--spread", action="store_true", help="distribute the changed rows over the whole tables")
    asked.add_argument("--only", choices=("requests", "times", "vectors"))
    asked.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.child:
        child(given.child[0], given.child[1], int(given.child[2]))
        return
    sizes = replace(WHOLE if given.whole else Sizes(), spread=given.spread)
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "requests": lambda: requests(sizes),
        "times": lambda: times(sizes),
        "vectors": lambda: vectors(sizes.vectors),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            for line in part():
                print(line, flush=True)


if __name__ == "__main__":
    main()
