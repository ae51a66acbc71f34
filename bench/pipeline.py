"""Loads and exports on Spark, as multiples of a plain Spark read and Parquet write of the same.

`python -m bench.pipeline --papers 1000000` has ten citations per paper; the default is small.
All runs share one session and take turns; medians are shown, and the seconds of each stage.
"""

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from omnigraph.pipeline.export import export_on_spark
from omnigraph.pipeline.load import Bulk, load_on_spark
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.sources import find_inputs

SCHEMA = """
node Paper { doi: String @key  title: String  year: I32  @range(year, 1900..2100) }
edge Cites: Paper -> Paper { weight: F64? }
"""
CITED = 10


def generate(folder: Path, count: int) -> None:
    """Papers and citations as Parquet and as NDJSON."""
    rng = np.random.default_rng(7)
    names = pa.array([f"10.1000/{at:09}" for at in range(count)])
    papers = pa.table(
        {
            "doi": names,
            "title": [f"On the matter of {at}" for at in range(count)],
            "year": pa.array(rng.integers(1950, 2025, count), pa.int32()),
        }
    )
    ends = rng.integers(0, count, (2, CITED * count))
    cites = pa.table(
        {
            "src": names.take(pa.array(ends[0])),
            "dst": names.take(pa.array(ends[1])),
            "weight": rng.random(CITED * count),
        }
    )
    folder.mkdir(parents=True)
    pq.write_table(papers, folder / "Paper.parquet", row_group_size=1 << 18)
    pq.write_table(cites, folder / "Cites.parquet", row_group_size=1 << 18)
    with (folder / "all.ndjson").open("wb") as out:
        for table, shape in ((papers, _node), (cites, _edge)):
            for batch in table.to_batches(1 << 16):
                out.writelines(orjson.dumps(shape(row)) + b"\n" for row in batch.to_pylist())


def _node(row: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Paper", "data": row}


def _edge(row: dict[str, Any]) -> dict[str, Any]:
    ends = {"from": row.pop("src"), "to": row.pop("dst")}
    return {"edge": "Cites", **ends, "data": row}


class Bench:
    """What is measured, on one session, in one folder."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.turn = spark, folder, 0
        self.stages: dict[str, dict[str, float]] = {}
        self.graph: Any = None

    def plain_parquet(self) -> None:
        """Spark reads Parquet and writes Parquet."""
        for name in ("Paper", "Cites"):
            rows = self.spark.read.parquet(str(self.folder / f"{name}.parquet"))
            rows.write.mode("overwrite").parquet(str(self.folder / "out" / name))

    def plain_json(self) -> None:
        """Spark reads the NDJSON and writes Parquet."""
        rows = self.spark.read.json(str(self.folder / "all.ndjson"))
        rows.write.mode("overwrite").parquet(str(self.folder / "out" / "json"))

    def load_parquet(self) -> None:
        """The whole checked load from Parquet."""
        files = {name: str(self.folder / f"{name}.parquet") for name in ("Paper", "Cites")}
        self._load("load parquet", files)

    def load_ndjson(self) -> None:
        """The whole checked load from NDJSON."""
        self._load("load ndjson", str(self.folder / "all.ndjson"))

    def export(self) -> None:
        """The graph of the last load as Parquet."""
        target = self.folder / "export"
        shutil.rmtree(target, ignore_errors=True)
        export_on_spark(self.spark, self.graph.snapshot, target, "parquet")

    def _load(self, name: str, data: Any) -> None:
        self.turn += 1
        place = self.folder / f"graph-{self.turn}"
        graph = omnigraph.init(place, SCHEMA, durability="os")
        marks: list[tuple[str, float]] = []
        bulk = Bulk(
            "append", find_inputs(data), told=lambda stage: marks.append((stage, perf_counter()))
        )
        done = load_on_spark(self.spark, graph._line, bulk)
        if done.commit is None:
            raise SystemExit(f"{name} was refused: {done.problems[:3]}")
        ends = [*(at for _, at in marks[1:]), perf_counter()]
        spent = zip(marks, ends, strict=True)
        self.stages[name] = {stage: end - at for (stage, at), end in spent}
        if self.graph is not None:
            shutil.rmtree(self.graph.uri)
        self.graph = graph.refresh()


def measure(bench: Bench, rounds: int) -> dict[str, list[float]]:
    """Every case once to warm up, then in turn; the seconds of each run."""
    cases = (bench.plain_parquet, bench.plain_json, bench.load_parquet, bench.load_ndjson)
    seconds: dict[str, list[float]] = {}
    for at in range(rounds + 1):
        for case in (*cases, bench.export):
            start = perf_counter()
            case()
            if at:
                seconds.setdefault(case.__name__, []).append(perf_counter() - start)
    return seconds


def main() -> None:
    """Measure and show."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--papers", type=int, default=20_000)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--memory", default="2g")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "data")
        generate(folder, given.papers)
        settings = {"spark.driver.memory": given.memory, "spark.local.dir": scratch}
        spark = spark_session(master="local[2]", settings=settings)
        bench = Bench(spark, folder)
        seconds = measure(bench, given.rounds)
        spark.stop()
    print(f"{given.papers} papers, {given.papers * CITED} citations, medians of {given.rounds}")
    for name, runs in seconds.items():
        against = "plain_json" if name.endswith("json") else "plain_parquet"
        middle, base = statistics.median(runs), statistics.median(seconds[against])
        print(f"{name:15} {middle:8.2f} s  {middle / base:5.2f} x {against}")
    for name, spent in bench.stages.items():
        print(f"{name}: " + ", ".join(f"{stage} {took:.2f} s" for stage, took in spent.items()))


if __name__ == "__main__":
    main()
