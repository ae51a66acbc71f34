"""Measure the time and the peak memory of loads and exports of graphs of several sizes, on two cores.

`python -m bench.scale 1000000 10000000` loads graphs with a million and ten million edges from Parquet. Each graph has
one node per ten edges. 100000000 edges need about 20 GB of disk space. The memory is the total of all processes.
"""

import argparse
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from bench.pipeline import CITED, SCHEMA, Clock, processes
from omnigraph.ingest.input_parts import find_input_files
from omnigraph.spark.export import export_on_spark
from omnigraph.spark.load import BulkLoad, load_on_spark
from omnigraph.spark.session import spark_session

_CHUNK = 1_000_000
WARM_UP = 100_000  # the number of edges in the graph that is loaded first, while the JVM is still slow
LINE = 8e9  # the limit for the memory of all processes together, in bytes


def generate(folder: Path, edges: int) -> dict[str, str]:
    """Write papers and citations as Parquet in chunks."""
    count, rng = edges // CITED, np.random.default_rng(7)
    folder.mkdir(parents=True)
    files = {name: str(folder / f"{name}.parquet") for name in ("Paper", "Cites")}
    _write(files["Paper"], (_papers(rng, at, min(_CHUNK, count - at)) for at in _starts(count)))
    _write(files["Cites"], (_cites(rng, count, min(_CHUNK, edges - at)) for at in _starts(edges)))
    return files


def _starts(count: int) -> range:
    return range(0, count, _CHUNK)


def _names(numbers: Any) -> pa.Array:
    return pa.array(np.char.add("10.1000/", np.char.zfill(numbers.astype("U9"), 9)))


def _papers(rng: Any, start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    years = pa.array(rng.integers(1950, 2025, count), pa.int32())
    titles = pa.array(np.char.add("On the matter of ", numbers.astype("U9")))
    return pa.table({"doi": _names(numbers), "title": titles, "year": years})


def _cites(rng: Any, papers: int, count: int) -> pa.Table:
    ends = [_names(rng.integers(0, papers, count)) for _ in range(2)]
    return pa.table({"src": ends[0], "dst": ends[1], "weight": rng.random(count)})


def _write(path: str, tables: Any) -> None:
    writer = None
    for one in tables:
        if writer is None:
            writer = pq.ParquetWriter(path, one.schema)
        writer.write_table(one, row_group_size=1 << 18)
    if writer is not None:
        writer.close()


class Peak:
    """Samples the total memory of this process and its descendants, and records the maximum."""

    def __enter__(self) -> "Peak":
        self.bytes, self._over = 0, Event()
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self.bytes = max(self.bytes, sum(map(_held, processes())))


def _held(process: int) -> int:
    """Return the memory of a process in bytes. Shared pages are divided among the processes that share them."""
    with suppress(OSError, StopIteration, ValueError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        return int(next(one for one in text.splitlines() if one.startswith("Pss:")).split()[1]) << 10
    return 0


@dataclass(frozen=True, slots=True)
class Taken:
    """The elapsed time, the CPU time and the peak memory of a load or an export."""

    seconds: float
    cpu: float
    bytes: int


def measure(spark: Any, folder: Path, edges: int) -> dict[str, Taken]:
    """Load and export a graph once, and print and return the times and the peak memory."""
    files = generate(folder / "data", edges)
    graph = omnigraph.init(folder / "graph", SCHEMA, durability="os")
    with Peak() as loading, Clock() as load:
        done = load_on_spark(spark, graph._handle.branch_state, BulkLoad("append", find_input_files(files)))
    if done.commit is None:
        raise SystemExit(f"the load was rejected: {done.problems[:3]}")
    with Peak() as writing, Clock() as export:
        export_on_spark(spark, graph.refresh().snapshot, folder / "out", "parquet")
    seconds = done.summary.seconds
    steps = ", ".join(f"{name} {took:.1f} s ({took / sum(seconds.values()):.0%})" for name, took in seconds.items())
    for name, clock, peak in (("load", load, loading), ("export", export, writing)):
        rate = (edges + edges // CITED) / clock.seconds
        print(
            f"{edges:>11,} edges {name:7} {clock.seconds:8.1f} s {clock.cpu:8.1f} CPU seconds "
            f"{rate:>11,.0f} rows/s {peak.bytes / 1e9:6.2f} GB",
            flush=True,
        )
    print(f"{'':>11} steps: {steps}; {done.summary.bytes / 1e6:,.0f} MB", flush=True)
    return {
        "load": Taken(load.seconds, load.cpu, loading.bytes),
        "export": Taken(export.seconds, export.cpu, writing.bytes),
    }


def judge(edges: int, runs: list[dict[str, Taken]]) -> dict[str, Taken]:
    """Print and return the best times and the highest peak memory of all runs, and compare the memory to the limit."""
    results = {}
    for name in ("load", "export"):
        taken = [one[name] for one in runs]
        seconds, cpu = min(one.seconds for one in taken), min(one.cpu for one in taken)
        best = Taken(seconds, cpu, max(one.bytes for one in taken))
        results[name] = best
        verdict = f"below {LINE / 1e9:.0f} GB: {'yes' if best.bytes < LINE else 'NO'}"
        told = f"{best.seconds:8.1f} s, {best.cpu:8.1f} CPU seconds (best of {len(runs)})"
        print(f"{edges:>11,} edges {name:7} {told}, peak memory {best.bytes / 1e9:.2f} GB, {verdict}", flush=True)
    return results


def compare(edges: int, results: dict[str, Taken], smaller_edges: int, smaller: dict[str, Taken]) -> None:
    """Print how the times and the memory grew relative to a smaller graph."""
    for name, now in results.items():
        before = smaller[name]
        told = (
            f"{now.seconds / before.seconds:.1f}x the time, {now.cpu / before.cpu:.1f}x the CPU time, "
            f"{now.bytes / before.bytes:.1f}x the memory"
        )
        print(f"{edges:>11,} edges {name:7} {edges / smaller_edges:g}x the edges: {told}", flush=True)


def main() -> None:
    """Measure every requested size."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("edges", nargs="*", type=int, default=[1_000_000])
    asked.add_argument("--memory", default="4g")
    asked.add_argument("--best-of", type=int, default=1)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        settings = {"spark.driver.memory": given.memory, "spark.local.dir": scratch}
        spark = spark_session(master="local[2]", settings=settings)
        print("warm-up:", flush=True)
        measure(spark, Path(scratch, "warm-up"), WARM_UP)
        previous: tuple[int, dict[str, Taken]] | None = None
        for edges in given.edges:
            runs = []
            for _ in range(given.best_of):
                folder = Path(scratch, "work")
                runs.append(measure(spark, folder, edges))
                shutil.rmtree(folder)
            results = judge(edges, runs)
            if previous is not None:
                compare(edges, results, *previous)
            previous = (edges, results)
        spark.stop()


if __name__ == "__main__":
    main()
