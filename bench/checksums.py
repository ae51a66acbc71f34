"""Measure the cost of checksums by alternating writes and loads with and without checksums in one process.

`python -m bench.checksums [ROWS]` prints the median time of each kind of write with and without checksums, and the
ratio of the two. Without checksums, no file, branch state or control object gets one.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.storage.checksums import FileChecksum

SCHEMA = "node Person { name: String @key  age: I32?  city: String? }"
ROUNDS, LOADS = 300, 5
_TAKEN_AWAY: dict[str, Any] = {
    "omnigraph.storage.written_files.checksum_file": lambda _: FileChecksum(0, 0),
    "omnigraph.publish.next_state.record_checksums": lambda *_: {},
    "omnigraph.history.state._checksum_rows": lambda *_: "",
    "omnigraph.storage.checksums._compute_own_checksum": lambda *_: "",
}


@contextmanager
def without_checksums() -> Iterator[None]:
    """Disable all checksums in the block."""
    patches = [mock.patch(name, function) for name, function in _TAKEN_AWAY.items()]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def time_call(call: Callable[[], object]) -> float:
    """Return the duration of a call in seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def people(first: int, count: int) -> pa.Table:
    """Return rows of the type Person."""
    names = [f"person {number}" for number in range(first, first + count)]
    ages = pa.array([number % 90 for number in range(count)], pa.int32())
    return pa.table({"name": names, "age": ages, "city": [f"city {n % 500}" for n in range(count)]})


def _filled(place: Path) -> Graph:
    graph = omnigraph.init(place, SCHEMA)
    graph.load({"Person": people(0, 1000)}, mode="append")
    return graph


def compare(title: str, rounds: int, work: Callable[[Graph, int], object], place: Path) -> None:
    """Alternate work on a graph with checksums and a graph without, and print the medians."""
    graphs = [_filled(place / f"{title} with")]
    with without_checksums():
        graphs.append(_filled(place / f"{title} without"))
    seconds: list[list[float]] = [[], []]
    for number in range(rounds):
        for way in (0, 1) if number % 2 else (1, 0):  # the disk is busier for the second call, so alternate the order
            with without_checksums() if way else nullcontext():
                seconds[way].append(time_call(partial(work, graphs[way], number)))
    with_them, without = (1000 * statistics.median(one) for one in seconds)
    print(f"{title:22} {with_them:9.2f} ms {without:9.2f} ms   {with_them / without:5.3f}x")


def main() -> None:
    """Measure each kind of write, and print the table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    print(f"{'':22} {'with':>12} {'without':>12}   ratio")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        compare("insert", ROUNDS, lambda g, n: g.insert("Person", {"name": f"new {n}"}), place)
        compare(
            "update", ROUNDS,
            lambda g, n: g.update("Person", where=f'name = "person {n}"', set={"age": 7}), place,
        )  # fmt: skip
        compare("delete", ROUNDS, lambda g, n: g.delete("Person", where=f'name = "person {n}"'), place)
        tables = [people(10_000 + number * rows, rows) for number in range(LOADS)]
        compare(
            f"load of {rows:,} rows", LOADS,
            lambda g, n: g.load({"Person": tables[n]}, mode="append"), place,
        )  # fmt: skip


if __name__ == "__main__":
    main()
