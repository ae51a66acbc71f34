"""Compare Omnigraph with the reference, Ladybug, DuckDB, plain Lance and plain Spark in one table of milliseconds.

Runs small parts of the other benchmarks: start-up, queries, writes, branches and loads. The column of the reference
contains recorded figures (`bench.reference`), and all other columns are measured. A cell is empty if a system does not
support the operation. `--scale 1` measures a million nodes and ten million edges. The default size takes a few minutes.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import orjson

import omnigraph
from bench import mutate, peers, pipeline, startup
from bench.merge import Target
from bench.reference import reference_milliseconds, reference_setting
from omnigraph.spark.session import spark_session

OURS, REFERENCE, LADYBUG, DUCKDB = "Omnigraph", "reference", "Ladybug", "DuckDB"
LANCE, SPARK = "plain Lance", "plain Spark"
COLUMNS = (OURS, REFERENCE, LADYBUG, DUCKDB, LANCE, SPARK)
DEFAULT_SCALE = 0.02  # 20,000 nodes, the size of the reference's recorded figures
NODES_AT_SCALE_1 = 1_000_000
COMMANDS = ("query", "insert", "branch list", "lint")
ENGINE_COLUMNS = {"omnigraph": OURS, "ladybug": LADYBUG, "duckdb": DUCKDB}
WRITE_TITLES = {
    "insert without a key": "insert of one node",
    "upsert with a key": "upsert of one node by its key",
    "update by key": "update of one node",
    "delete by key": "delete of one node",
}
CREATE_BRANCH, MERGE, LOAD = "create a branch", "merge of five changed rows", "load 120,000 rows of NDJSON"
OTHER_TITLES = frozenset({CREATE_BRANCH, MERGE, LOAD})
# The cases in `bench.pipeline` for each row, by column.
SPARK_LOADS = {
    "load of Parquet on Spark": {
        OURS: "load_parquet",
        SPARK: "plain_parquet",
        DUCKDB: "duckdb",
        LADYBUG: "ladybug",
    },
    "load of NDJSON on Spark": {OURS: "load_ndjson", SPARK: "plain_json"},
}
Row = tuple[str, Mapping[str, float]]  # the title, and the milliseconds by column


def measure_startup(scale: float) -> Iterator[Row]:
    """Measure commands in new processes. Their times do not depend on the scale."""
    with tempfile.TemporaryDirectory() as folder:
        commands = startup.commands(startup.build_graph(folder))
        medians = startup.measure_rounds({name: commands[name] for name in COMMANDS}, rounds=5)
    for name in COMMANDS:
        yield f"command line: {name}", {OURS: medians[name] * 1000}
    yield "command line: import lance", {LANCE: medians["import lance"] * 1000}


def measure_queries(scale: float) -> Iterator[Row]:
    """Measure warm queries in one process per engine. At small scales, the results must be equal."""
    with tempfile.TemporaryDirectory() as folder:
        reports = peers.run_engines(Path(folder), scale, "--seconds", "0.4", "--questions-only")
    differences = peers.compare(reports) if scale <= peers.COMPARED_SCALE else []
    if differences:
        raise SystemExit("; ".join(differences))
    for title in reports["omnigraph"]["questions"]:
        yield title, {ENGINE_COLUMNS[name]: report["questions"][title]["warm"] for name, report in reports.items()}


def measure_writes(scale: float) -> Iterator[Row]:
    """Measure single-row writes, and staging and committing the same table in plain Lance."""
    for title, times in mutate.measure_all(int(NODES_AT_SCALE_1 * scale), "os", rounds=15):
        yield WRITE_TITLES[title], {OURS: times.mutated, LANCE: times.staged}


def measure_branches(scale: float) -> Iterator[Row]:
    """Measure the creation of branches and merges on a warm graph."""
    with tempfile.TemporaryDirectory() as folder:
        target = Target(f"{folder}/g", int(NODES_AT_SCALE_1 * scale), 1, spread=False)
        names = iter(range(10))
        yield CREATE_BRANCH, {OURS: _median_milliseconds(lambda: target.graph.branches.create(f"b{next(names)}"))}
        pairs = iter([target.apart(5) for _ in range(6)])
        yield MERGE, {OURS: _median_milliseconds(lambda: target.graph.merge(*next(pairs)))}


def _median_milliseconds(action: Callable[[], object], rounds: int = 5) -> float:
    """Return the median time of a call in milliseconds, after one call to warm up."""
    action()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def measure_load(scale: float) -> Iterator[Row]:
    """Measure a local load of the same rows that the reference loaded."""
    schema = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person { since: I32? }"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "rows.ndjson")
        with data.open("wb") as lines:
            for number in range(20_000):
                lines.write(
                    orjson.dumps({"type": "Person", "data": {"name": f"p{number}", "age": number % 90}}) + b"\n"
                )
            for number in range(100_000):
                ends = {"from": f"p{number % 20_000}", "to": f"p{number * 7 % 20_000}"}
                lines.write(orjson.dumps({"edge": "Knows", **ends, "data": {"since": 1990 + number % 30}}) + b"\n")
        graphs = iter([omnigraph.init(f"{folder}/g{number}", schema, durability="os") for number in range(4)])
        load_milliseconds = _median_milliseconds(
            lambda: next(graphs).load(data, mode="append", engine="local"), rounds=3
        )
    yield LOAD, {OURS: load_milliseconds}


def measure_spark_loads(scale: float) -> Iterator[Row]:
    """Measure validated loads on Spark, and plain reads and writes of the same files."""
    papers = int(NODES_AT_SCALE_1 * scale)
    cases = [case for columns in SPARK_LOADS.values() for case in columns.values()]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "data")
        pipeline.generate(folder, papers)
        settings = {"spark.driver.memory": "2g", "spark.local.dir": scratch}
        spark = spark_session(master="local[2]", settings=settings)
        try:
            clocks = pipeline.measure(pipeline.Bench(spark, folder), 3, cases)
        finally:
            spark.stop()
    rows = papers * (1 + pipeline.CITED)
    for title, columns in SPARK_LOADS.items():
        yield (
            f"{title}, {rows:,} rows",
            {
                column: statistics.median(clock.seconds for clock in clocks[case]) * 1000
                for column, case in columns.items()
            },
        )


PARTS: dict[str, Callable[[float], Iterator[Row]]] = {
    "startup": measure_startup,
    "queries": measure_queries,
    "writes": measure_writes,
    "branches": measure_branches,
    "load": measure_load,
    "spark": measure_spark_loads,
}


def format_milliseconds(milliseconds: float) -> str:
    """Return a time with two or three significant digits.

    >>> format_milliseconds(0.0618), format_milliseconds(7.34), format_milliseconds(1234.5)
    ('0.06', '7.3', '1,234')
    """
    return f"{milliseconds:,.{2 if milliseconds < 1 else 1 if milliseconds < 100 else 0}f}"


def format_row(row: Row) -> str:
    """Return one line of the table, in which the lowest measured figure is bold."""
    title, milliseconds = row
    fastest = min(milliseconds.values()) if len(milliseconds) > 1 else None
    cells = {
        column: f"**{format_milliseconds(value)}**" if value == fastest else format_milliseconds(value)
        for column, value in milliseconds.items()
    }
    recorded = reference_milliseconds().get(title)
    cells |= {REFERENCE: recorded} if recorded else {}
    return f"| {title} | " + " | ".join(cells.get(column, "") for column in COLUMNS) + " |"


def print_table(rows: list[Row], scale: float) -> None:
    """Print the table, followed by how its figures were measured."""
    print(f"| milliseconds | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for row in rows:
        print(format_row(row))
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    print(f"\nMedians, measured on {datetime.now(UTC):%Y-%m-%d} on {machine}, scale {scale:g}.")
    print(f"Column `{REFERENCE}`: {reference_setting()}")


def main() -> None:
    """Measure the parts, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=DEFAULT_SCALE)
    parser.add_argument("--only", nargs="*", choices=[*PARTS], default=[*PARTS])
    arguments = parser.parse_args()
    rows: list[Row] = []
    for part in arguments.only:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        with redirect_stdout(sys.stderr):  # the other benchmarks print their progress
            rows += PARTS[part](arguments.scale)
    print_table(rows, arguments.scale)


if __name__ == "__main__":
    main()
