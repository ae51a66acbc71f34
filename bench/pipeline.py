"""Compare loads and exports on Spark with plain Spark and, if they are installed, with Ladybug and DuckDB.

`python -m bench.pipeline --papers 1000000` uses a million papers with ten citations each. The default is smaller. All
cases share one Spark session and alternate. Prints the median of each case and the duration of each stage.
"""

import argparse
import os
import shutil
import statistics
import tempfile
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from omnigraph.ingest.input_parts import find_input_files
from omnigraph.ingest.input_pieces import read_piece_blocks
from omnigraph.ingest.ndjson import read_blocks
from omnigraph.ingest.position_runs import pack_positions
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.ingest.record_intake import Intake
from omnigraph.spark.endpoint_lookup import EndpointLookup, NodeIdSource, find_lost_endpoints, remove_scratch_folders
from omnigraph.spark.export import export_on_spark
from omnigraph.spark.load import BulkLoad, LoadAttempt, load_on_spark
from omnigraph.spark.session import spark_session
from omnigraph.spark.stage import LoadJob
from omnigraph.spark.staged_fragments import StagedFragment
from omnigraph.storage.fragments import describe_fragments
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey

SCHEMA = """
node Paper { doi: String @key  title: String  year: I32  @range(year, 1900..2100) }
edge Cites: Paper -> Paper { weight: F64? }
"""
CITED = 10
LINES = (
    "type string, edge string, `from` string, `to` string, "
    "data struct<doi: string, title: string, year: int, weight: double>"
)


def generate(folder: Path, count: int) -> None:
    """Write papers and citations as Parquet and as NDJSON."""
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
    """The measured cases, which share a Spark session and a folder. Each case returns its clock."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.turn = spark, folder, 0
        self.stages: dict[str, dict[str, float]] = {}
        self.graph: Any = None
        self.files = {name: str(folder / f"{name}.parquet") for name in ("Paper", "Cites")}
        self.lines = str(folder / "all.ndjson")

    def plain_parquet(self) -> "Clock":
        """Read and write Parquet with plain Spark."""
        with Clock() as clock:
            for name, path in self.files.items():
                self._write(self.spark.read.parquet(path), name)
        return clock

    def plain_json(self) -> "Clock":
        """Read NDJSON with an explicit schema and write Parquet, with plain Spark."""
        with Clock() as clock:
            self._write(self.spark.read.schema(LINES).json(self.lines), "json")
        return clock

    def read_json(self) -> "Clock":
        """Only read the NDJSON, with plain Spark."""
        with Clock() as clock:
            rows = self.spark.read.schema(LINES).json(self.lines)
            rows.write.format("noop").mode("overwrite").save()
        return clock

    def parse_ndjson(self) -> "Clock":
        """Only parse the NDJSON into tables by type, as a load does."""
        graph = self._graph()
        job, run = (
            job_of(graph, "append"),
            LoadAttempt(self.spark, graph._handle.branch_state, BulkLoad("append"), ()),
        )
        run.bulk_load = replace(run.bulk_load, input_files=find_input_files(self.lines))
        pieces = run.cut_pieces()
        units = self.spark.range(0, len(pieces), 1, len(pieces))
        with Clock() as clock:
            units.mapInArrow(parsing(job, pieces), "rows bigint").groupBy().sum().collect()
        shutil.rmtree(graph.uri)
        return clock

    def stage_parquet(self) -> "Clock":
        """Run the staging part of a load: read the Parquet, convert and check each row, and write fragments."""
        graph = self._graph()
        run = LoadAttempt(self.spark, graph._handle.branch_state, BulkLoad("append", find_input_files(self.files)), ())
        with Clock() as clock:
            out = run.run_tasks(job_of(graph, "append"), run.cut_pieces())
            out.where("kind = 'count'").count()
            out.unpersist(blocking=True)
        shutil.rmtree(graph.uri)
        return clock

    def load_parquet(self) -> "Clock":
        """Run a complete load from Parquet."""
        return self._load("load parquet", self.files)

    def load_ndjson(self) -> "Clock":
        """Run a complete load from NDJSON."""
        return self._load("load ndjson", self.lines)

    def export(self) -> "Clock":
        """Export the most recently loaded graph as Parquet."""
        target = self.folder / "export"
        shutil.rmtree(target, ignore_errors=True)
        with Clock() as clock:
            export_on_spark(self.spark, self.graph.snapshot, target, "parquet")
        return clock

    def anti_join(self) -> "Clock":
        """Find missing endpoints with a sort-merge anti-join in Spark."""
        papers = self.spark.read.parquet(self.files["Paper"]).selectExpr("doi as id")
        cites = self.spark.read.parquet(self.files["Cites"])
        ends = cites.selectExpr("src as id").unionAll(cites.selectExpr("dst as id")).distinct()
        with Clock() as clock:
            lost = ends.join(papers.hint("merge"), "id", "left_anti").limit(20).toArrow()
        if lost.num_rows:
            raise SystemExit("found a missing endpoint")
        return clock

    def look_up(self) -> "Clock":
        """Find missing endpoints with the id index that a load uses."""
        graph = self.graph
        paper, cites, pinned = TableKey("node:Paper"), TableKey("edge:Cites"), job_of(graph, "append").pinned_graph
        nodes = {paper: NodeIdSource(paper, (), graph.snapshot.tables[paper].row_count, looks_up_stored=False)}
        ends = EndpointLookup(new_ulid(), pinned, nodes, {cites: [("src", paper), ("dst", paper)]})
        edges = [
            StagedFragment(cites, facts, pack_positions(np.arange(rows)), rows, ids_generated=True)
            for facts, rows in describe_fragments(graph.snapshot.table("edge:Cites"))
        ]
        with Clock() as clock:
            lost, _ = find_lost_endpoints(self.spark, ends, (), edges, None)
            remove_scratch_folders(self.spark, ends.load_id)
        if lost:
            raise SystemExit("found a missing endpoint")
        return clock

    def duckdb(self) -> "Clock":
        """Copy the Parquet files into DuckDB tables, checking only the key."""
        import duckdb

        place = self.folder / "peer.duckdb"
        place.unlink(missing_ok=True)
        with Clock() as clock, duckdb.connect(str(place)) as peer:
            peer.execute("CREATE TABLE paper (doi TEXT PRIMARY KEY, title TEXT, year INT)")
            peer.execute("INSERT INTO paper FROM read_parquet(?)", [self.files["Paper"]])
            peer.execute("CREATE TABLE cites (src TEXT, dst TEXT, weight DOUBLE)")
            peer.execute("INSERT INTO cites FROM read_parquet(?)", [self.files["Cites"]])
            peer.execute("CHECKPOINT")
        return clock

    def ladybug(self) -> "Clock":
        """Copy the Parquet files into Ladybug tables."""
        import ladybug

        place = self.folder / "peer.ladybug"
        for old in self.folder.glob("peer.ladybug*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        papers, cites = (self.files[name] for name in ("Paper", "Cites"))
        with Clock() as clock:
            peer = ladybug.Database(str(place))
            told = ladybug.Connection(peer)
            told.execute("CREATE NODE TABLE P(doi STRING PRIMARY KEY, title STRING, year INT32)")
            told.execute("CREATE REL TABLE C(FROM P TO P, weight DOUBLE)")
            told.execute(f"COPY P FROM (LOAD FROM '{papers}' RETURN doi, title, year)")
            told.execute(f"COPY C FROM (LOAD FROM '{cites}' RETURN src, dst, weight)")
            told.close()
            peer.close()
        return clock

    def warm(self) -> None:
        """Start Python workers that have imported the package, because Spark stops idle workers."""

        def run(batches: Any) -> Any:
            import omnigraph.spark.stage  # noqa: F401 - only the import matters

            yield from batches

        self.spark.range(0, 4, 1, 4).mapInArrow(run, "id bigint").count()

    def _write(self, rows: Any, name: str) -> None:
        rows.write.mode("overwrite").parquet(str(self.folder / "out" / name))

    def _graph(self) -> Any:
        self.turn += 1
        return omnigraph.init(self.folder / f"graph-{self.turn}", SCHEMA, durability="os")

    def _load(self, name: str, data: Any) -> "Clock":
        graph = self._graph()
        with Clock() as clock:
            done = load_on_spark(self.spark, graph._handle.branch_state, BulkLoad("append", find_input_files(data)))
        if done.commit is None:
            raise SystemExit(f"{name} was rejected: {done.problems[:3]}")
        self.stages[name] = dict(done.summary.seconds)
        if self.graph is not None:
            shutil.rmtree(self.graph.uri)
        self.graph = graph.refresh()
        return clock


class Clock:
    """Measures the elapsed time of a block, and the CPU time of this process and its descendants."""

    def __enter__(self) -> "Clock":
        self.start, self.busy = perf_counter(), computed()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu = perf_counter() - self.start, computed() - self.busy


SEEN: dict[int, int] = {}  # CPU ticks by process id, including processes that have ended


def computed() -> float:
    """Return the CPU seconds of this process and of all descendants that have been observed."""
    SEEN.update({one: _computed(one) or SEEN.get(one, 0) for one in processes()})
    return sum(SEEN.values()) / os.sysconf("SC_CLK_TCK")


def processes() -> list[int]:
    """Return the ids of this process and all of its descendants."""
    children: dict[int, list[int]] = {}
    for one in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            facts = one.read_text().rpartition(")")[2].split()
            children.setdefault(int(facts[1]), []).append(int(one.parent.name))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, [])
    return found


def _computed(process: int) -> int:
    with suppress(OSError):
        facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, facts[11:13]))
    return 0


def parsing(job: LoadJob, pieces: Any) -> Any:
    """Return a task that parses lines into tables and counts the rows."""

    def run(batches: Any) -> Any:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                intake, rows = Intake(job.schema_ir, ProblemCollector(), job.limits), 0
                blocks = read_piece_blocks(pieces[number], job.limits.line_bytes)
                for _ in read_blocks(intake, blocks, allow_truncate=False, report_all=True):
                    rows += sum(one.drain()[0].num_rows for one in intake.buffers.values())
                yield pa.RecordBatch.from_pydict({"rows": [rows]})

    return run


def job_of(graph: Any, mode: Any) -> LoadJob:
    """Return the job description that the tasks of a load into a graph receive."""
    return LoadAttempt(None, graph._handle.branch_state, BulkLoad(mode), ()).make_job(graph.snapshot)  # type: ignore[arg-type]


# The compared cases, and the target for the time of the second case divided by the time of the first case, if any.
AIMS = (
    ("stage_parquet", "plain_parquet", 0.7),
    ("load_parquet", "plain_parquet", 0.4),
    ("load_parquet", "ladybug", 1.0),
    ("load_parquet", "duckdb", None),
    ("load_ndjson", "plain_json", None),
    ("parse_ndjson", "read_json", 1.0),
    ("look_up", "anti_join", 3.0),
    ("export", "plain_parquet", 0.7),
)


def measure(bench: Bench, rounds: int, names: list[str]) -> dict[str, list[Clock]]:
    """Run every case once to warm up, then measure all cases in several rounds. Return the clocks by case."""
    spent: dict[str, list[Clock]] = {name: [] for name in names}
    for at in range(rounds + 1):
        for name in names:
            bench.warm()
            took = getattr(bench, name)()
            if at:
                spent[name].append(took)
            told = f"{took.seconds:.2f} s, {took.cpu:.2f} CPU seconds"
            print(f"  round {at}: {name} {told}", flush=True)
    return spent


def show(spent: dict[str, list[Clock]], stages: dict[str, dict[str, float]]) -> None:
    """Print the medians, the comparisons with the targets, and the stages of the last loads.

    On a machine that also does other work, CPU times are more meaningful than elapsed times.
    """
    middle = {name: statistics.median(one.seconds for one in runs) for name, runs in spent.items()}
    busy = {name: statistics.median(one.cpu for one in runs) for name, runs in spent.items()}
    for name, took in middle.items():
        print(f"{name:15} {took:8.2f} s {busy[name]:8.2f} CPU seconds")
    for name, other, aim in AIMS:
        if name in middle and other in middle:
            ratio, other_ratio = middle[other] / middle[name], busy[other] / busy[name]
            wanted = "" if aim is None else f", target {aim:g}: {'met' if ratio >= aim else 'MISSED'}"
            told = f"{ratio:5.2f} times as fast as {other} ({other_ratio:.2f} times in CPU time)"
            print(f"{name:15} {told}{wanted}")
    for name, parts in stages.items():
        print(f"{name}: " + ", ".join(f"{stage} {took:.2f} s" for stage, took in parts.items()))


def main() -> None:
    """Measure all cases, and print the results."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--papers", type=int, default=20_000)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--memory", default="2g")
    asked.add_argument("--only", nargs="*", help="measure only these cases")
    given = asked.parse_args()
    every = ["plain_parquet", "plain_json", "read_json", "parse_ndjson", "stage_parquet",
             "load_ndjson", "load_parquet", "export", "anti_join", "look_up", *peers()]  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "data")
        generate(folder, given.papers)
        settings = {"spark.driver.memory": given.memory, "spark.local.dir": scratch}
        spark = spark_session(master="local[2]", settings=settings)
        bench = Bench(spark, folder)
        spent = measure(bench, given.rounds, given.only or every)
        spark.stop()
    print(f"{given.papers} papers, {given.papers * CITED} citations, medians of {given.rounds} rounds")
    show(spent, bench.stages)


def peers() -> list[str]:
    """Return the names of the other databases that are installed."""
    return [name for name in ("duckdb", "ladybug") if find_spec(name)]


if __name__ == "__main__":
    main()
