"""Measure the memory of long-lived processes: a writer, a reader, and a change feed consumer.

Each role runs in its own process, and all of them use the same graph. The writer makes commits, which alternate between
inserts and updates. After each commit, the reader runs two queries, and the consumer reads the change. At checkpoints,
prints the resident memory, the C heap, Python's allocated blocks, Arrow's memory pool and Lance's caches. At the end,
prints the growth of memory per commit after the warm-up. The argument is the number of commits (4,000 by default).
`--trace` also prints the lines of Python code that hold the most memory.
"""

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.api.graph import Graph

SCHEMA = "node Person { name: String @key  age: I64? }"
COUNT_ADULTS = "match { $p: Person  $p.age >= 18 } return { count($p) as adults }"
LOOK_UP = 'match { $p: Person { name: "p0" } } return { $p.age as age }'
FIRST_ROWS = 100  # the number of rows that updates change
CHECKPOINTS = 40
WARM_UP_COMMITS = 2_500  # the number of commits after which every cache in a process is full
MEGABYTE = 1e6


class HeapFacts(ctypes.Structure):
    """The result of `mallinfo2` in the GNU C library."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "mapped_bytes")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "allocated_bytes", "free_bytes", "keepcost")),
    )


def heap_bytes() -> float:
    """Return the number of bytes that C and Rust code has allocated, or NaN if the C library cannot report it."""
    try:
        read_heap = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return float("nan")
    read_heap.restype = HeapFacts
    facts = read_heap()
    return float(facts.allocated_bytes + facts.mapped_bytes)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes, without the pages of mapped files."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Meter:
    """Prints a line at each checkpoint, and estimates the growth per commit from the lines after the warm-up."""

    title: str
    commits: int
    graph: Graph
    points: list[tuple[int, int, float]] = field(default_factory=list)

    def observe(self, commit_number: int) -> None:
        """Measure the memory and print a line if this commit is a checkpoint."""
        if commit_number % max(1, self.commits // CHECKPOINTS):
            return
        gc.collect()
        store = self.graph._handle.store
        resident, heap = resident_bytes(), heap_bytes()
        self.points.append((commit_number, resident, heap))
        print(
            f"{self.title:<10}{commit_number:>9,}{resident / MEGABYTE:>10.1f}{heap / MEGABYTE:>10.1f}"
            f"{sys.getallocatedblocks():>12,}{pa.total_allocated_bytes() / MEGABYTE:>8.2f}"
            f"{store.lance_session.size_bytes() / MEGABYTE:>8.2f}",
            file=sys.stderr,
        )

    def print_slope(self) -> None:
        """Print the growth in bytes per commit, both of resident memory and of the C heap."""
        warm_up = min(WARM_UP_COMMITS, self.commits // 2)
        later = np.array([point for point in self.points if point[0] >= warm_up], dtype=np.float64)
        resident_slope, heap_slope = (np.polyfit(later[:, 0], later[:, column], 1)[0] for column in (1, 2))
        print(
            f"{self.title:<10}after {warm_up:,} commits: {resident_slope:,.0f} bytes of resident memory per commit,"
            f" {heap_slope:,.0f} bytes of the C heap per commit",
            file=sys.stderr,
        )


def commit_once(graph: Graph, commit_number: int) -> None:
    """Make one commit, which inserts a row or updates one of the first rows."""
    new_age = {"age": 1_000 + commit_number}
    if commit_number % 2:
        graph.insert("Person", {"name": f"n{commit_number}", **new_age})
    else:
        graph.update("Person", where="name = $name", params={"name": f"p{commit_number % FIRST_ROWS}"}, set=new_age)


def create_graph(root: str) -> Graph:
    """Create the graph with the rows that updates change."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.load({"Person": [{"name": f"p{number}", "age": number} for number in range(FIRST_ROWS)]}, mode="append")
    return graph


class Follower:
    """A process that reads each commit of the writer. Its measurements go to standard error."""

    def __init__(self, role: str, root: str, commits: int, options: Sequence[str]) -> None:
        command = [sys.executable, "-m", "bench.memory", str(commits), "--role", role, "--root", root, *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wait_until_done()

    def start_reading(self) -> None:
        """Tell the process that there is a new commit."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def wait_until_done(self) -> None:
        """Wait until the process has opened the graph or read the commit."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        if not self._process.stdout.readline():
            raise RuntimeError("the other process ended early")

    def end(self) -> None:
        """Wait until the process has printed its results."""
        if self._process.wait():
            raise RuntimeError("the other process failed")


def run_writer(root: str, commits: int, options: Sequence[str]) -> Meter:
    """Make the commits in this process, let the other roles read each of them, and measure this process."""
    graph = create_graph(root)
    followers = [Follower(role, root, commits, options) for role in FOLLOWERS]
    meter = Meter("writer", commits, graph)
    for number in range(1, commits + 1):
        commit_once(graph, number)
        for follower in followers:
            follower.start_reading()
        for follower in followers:
            follower.wait_until_done()
        meter.observe(number)
    for follower in followers:
        follower.end()
    return meter


def report_done() -> None:
    """Tell the writer that this process has read its commit."""
    print(flush=True)


def run_reader(root: str, commits: int) -> Meter:
    """Run queries after each commit, and measure the memory."""
    graph = omnigraph.open(root, read_only=True)
    meter = Meter("reader", commits, graph)
    report_done()
    for number in range(1, commits + 1):
        sys.stdin.readline()
        list(graph.query(COUNT_ADULTS))
        list(graph.query(LOOK_UP))
        meter.observe(number)
        report_done()
    return meter


def run_feed(root: str, commits: int) -> Meter:
    """Consume the change feed, and measure the memory."""
    graph = omnigraph.open(root, read_only=True)
    meter = Meter("feed", commits, graph)

    def wait(_: float) -> None:
        report_done()
        sys.stdin.readline()

    blocks = graph.changes.follow("now", wait=wait)
    for number in range(1, commits + 1):
        if len(next(blocks).changes) != 1:
            raise RuntimeError("the feed skipped a change")
        meter.observe(number)
    report_done()
    return meter


FOLLOWERS: dict[str, Callable[[str, int], Meter]] = {"reader": run_reader, "feed": run_feed}


def main(arguments: Any) -> None:
    """Run all roles, or the role that the arguments specify in this process."""
    if arguments.trace:
        tracemalloc.start()
    if arguments.role:
        FOLLOWERS[arguments.role](arguments.root, arguments.commits).print_slope()
    else:
        columns = ("commits", 9), ("RSS, MB", 10), ("heap, MB", 10), ("blocks", 12), ("Arrow", 8), ("Lance", 8)
        print(f"{'':<10}" + "".join(f"{title:>{width}}" for title, width in columns), file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            run_writer(f"{folder}/graph", arguments.commits, ["--trace"] if arguments.trace else []).print_slope()
    if arguments.trace:
        for statistic in tracemalloc.take_snapshot().statistics("lineno")[:25]:
            size, count = statistic.size / 1000, statistic.count
            print(f"  {size:>10.1f} KB in {count:>8} blocks  {statistic.traceback}", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="?", type=int, default=4_000)
    parser.add_argument("--role", choices=[*FOLLOWERS])
    parser.add_argument("--root")
    parser.add_argument("--trace", action="store_true")
    main(parser.parse_args())
