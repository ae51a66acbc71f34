"""Compare local loads with loads on Spark by format and size, and measure the constants that `--engine auto` uses.

For each format, prints the core seconds per megabyte on both engines, the peak memory of the local process, and the
size above which Spark is faster on this machine. Also prints how long a Spark session takes to start. Core seconds are
the CPU seconds of all processes, which depend less on other work on the machine than elapsed time does. `python -m
bench.engines --papers 20000 400000` compares two sizes. The constants in the code come from the larger size.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq

import omnigraph
from bench.pipeline import SCHEMA, Clock, generate
from omnigraph.api import load_engine_model as model

FORMATS = ("ndjson", "parquet", "csv")
TYPES = ("Paper", "Cites")


@dataclass(frozen=True, slots=True)
class Measured:
    """A load: the size of its input in bytes, CPU seconds, elapsed seconds, and peak memory in bytes if known."""

    bytes: int
    cpu: float
    seconds: float
    memory: int = 0


def inputs(folder: Path, file_format: str) -> Any:
    """Return the input files in a format: one NDJSON file, or one file per type."""
    if file_format == "ndjson":
        return str(folder / "all.ndjson")
    return {name: str(folder / f"{name}.{file_format}") for name in TYPES}


def input_bytes(data: Any) -> int:
    """Return the size of an input in bytes."""
    return sum(Path(path).stat().st_size for path in ([data] if isinstance(data, str) else data.values()))


def prepare(folder: Path, papers: int) -> None:
    """Write papers and citations in all formats."""
    generate(folder, papers)
    for name in TYPES:
        pcsv.write_csv(pq.read_table(folder / f"{name}.parquet"), folder / f"{name}.csv")


def load_here(graph: str, data: Any) -> None:
    """Load in this process, which has no other work, and print the times and the peak memory."""
    import resource

    target = omnigraph.init(graph, SCHEMA, durability="os")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Clock() as clock:
        target.load(data, mode="append", engine="local")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"cpu": clock.cpu, "seconds": clock.seconds, "memory": peak << 10}))


def measure_local(folder: Path, data: Any) -> Measured:
    """Measure a local load in a new process."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        asked = [sys.executable, "-m", "bench.engines", "--child", f"{place}/graph", json.dumps(data)]
        done = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    return Measured(input_bytes(data), done["cpu"], done["seconds"], done["memory"])


def measure_spark(spark: Any, folder: Path, data: Any) -> Measured:
    """Measure the second of two loads in a running session. The first load warms up the session."""
    for _ in range(2):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            graph = omnigraph.init(f"{place}/graph", SCHEMA, durability="os")
            with Clock() as clock:
                graph.load(data, mode="append", engine="spark", spark=spark)
    return Measured(input_bytes(data), clock.cpu, clock.seconds)


def crossover(local_seconds: float, spark_seconds: float, cores: int, fixed_seconds: float) -> float | None:
    """Return the megabytes above which Spark is faster on the same number of cores, or None if it never is.

    >>> crossover(0.02, 0.01, 2, 1.5), crossover(0.01, 0.02, 2, 1.5)
    (300.0, None)
    """
    gain = local_seconds / min(cores, model.MAX_LOCAL_CORES) - spark_seconds / cores
    return round(fixed_seconds / gain, 3) if gain > 0 else None


def describe_crossover(megabytes: float | None) -> str:
    """Return the size as text."""
    return "never on this machine" if megabytes is None else f"above {megabytes:,.0f} MB"


def show(file_format: str, local: Measured, spark: Measured, start: float) -> None:
    """Print one line of measurements and one line of conclusions."""
    megabytes = local.bytes / 1e6
    local_rate, spark_rate = local.cpu / megabytes, spark.cpu / megabytes
    cores = model.available_cores()
    print(
        f"{file_format:8} {megabytes:8.1f} MB  local: {local.seconds:6.1f} s, {local_rate:.4f} core s/MB, "
        f"{local.memory / 1e6:5.0f} MB of memory  Spark: {spark.seconds:6.1f} s, {spark_rate:.4f} core s/MB"
    )
    warm = crossover(local_rate, spark_rate, cores, model.SPARK_JOB_SECONDS)
    cold = crossover(local_rate, spark_rate, cores, model.SPARK_JOB_SECONDS + start)
    print(
        f"{'':8} Spark is faster on {cores} cores: with a running session {describe_crossover(warm)}, "
        f"without one {describe_crossover(cold)}; `auto` assumes {model.LOCAL_SECONDS[file_format]} core s/MB locally "
        f"and {model.SPARK_SECONDS[file_format]} core s/MB on Spark",
        flush=True,
    )


def main() -> None:
    """Measure all formats and sizes."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--papers", type=int, nargs="*", default=[20_000])
    asked.add_argument("--formats", nargs="*", default=list(FORMATS), choices=FORMATS)
    asked.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.child:
        load_here(given.child[0], json.loads(given.child[1]))
        return
    from omnigraph.spark.session import spark_session

    with tempfile.TemporaryDirectory() as scratch:
        begun = perf_counter()
        spark = spark_session(settings={"spark.driver.memory": "2g", "spark.local.dir": scratch})
        spark.range(1).mapInArrow(lambda batches: batches, "id bigint").count()
        start = perf_counter() - begun
        print(f"a Spark session starts in {start:.1f} s (`auto` assumes {model.SPARK_START_SECONDS} s)", flush=True)
        for papers in given.papers:
            folder = Path(scratch, f"data-{papers}")
            prepare(folder, papers)
            for file_format in given.formats:
                data = inputs(folder, file_format)
                show(file_format, measure_local(folder, data), measure_spark(spark, folder, data), start)
        spark.stop()


if __name__ == "__main__":
    main()
