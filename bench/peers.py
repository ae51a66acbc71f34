"""Compare Omnigraph with Ladybug and DuckDB, using the same queries on the same graph, cold and warm.

`python -m bench.peers --scale 1` uses a graph with a million people and ten million edges. The default scale is small,
so that the results of the engines can also be compared. Each engine runs in its own process. A cold time is the time of
the first run in a new process, with a warm disk cache of the operating system.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.peers_data import Inputs, generate
from bench.peers_engines import ENGINES
from bench.threads import PROCESSES, THREADS, overhead, pooled, throughput

SMALL = 0.01
_LEAST_RUNS, _MOST_RUNS = 3, 600
_SECONDS = 2.0  # how long each query is repeated
COMPARED_SCALE = 0.1  # the maximum scale at which results are compared


def questions(engine: Any, given: Inputs) -> dict[str, Callable[[int], Any]]:
    """Return every query by its title. The number of the run selects the people in the query."""
    people = given.people
    return {
        "point lookup": lambda at: engine.point(people[at % len(people)]),
        "one hop": lambda at: engine.one_hop(people[at % len(people)]),
        "two hops": lambda at: engine.two_hops(people[at % len(people)]),
        "one to three hops": lambda at: engine.three_hops(people[at % len(people)]),
        "shortest path": lambda at: engine.shortest_path(*_pair(people, at)),
        "cheapest path": lambda at: engine.cheapest_path(*_pair(people, at)),
        "hub, one hop": lambda _: engine.one_hop(given.hub),
        "hub, two hops": lambda _: engine.two_hops(given.hub),
        "hub, one to three hops": lambda _: engine.three_hops(given.hub),
        "friends of friends": lambda _: engine.friends_of_friends(given.starts),
        "group by": lambda _: engine.group_by(),
        "count of 2-paths": lambda _: engine.two_paths(),
        "triangles": lambda _: engine.triangles(given.below),
    }


def _pair(people: list[str], at: int) -> tuple[str, str]:
    """Return two different people."""
    return people[at % len(people)], people[(at + 1) % len(people)]


def measure(ask: Callable[[int], Any], seconds: float) -> dict[str, Any]:
    """Return the time of the first run, and statistics about the runs in the following seconds."""
    began = perf_counter()
    answer = ask(0)
    cold = perf_counter() - began
    times: list[float] = []
    while len(times) < _LEAST_RUNS or (len(times) < _MOST_RUNS and sum(times) < seconds):
        began = perf_counter()
        ask(len(times))
        times.append(perf_counter() - began)
    # Only the second half counts as warm, because caches are still being filled in the first half.
    warm = times[len(times) // 2 :]
    return {
        "cold": cold * 1000,
        "warm": statistics.median(warm) * 1000,
        "best": min(warm) * 1000,
        "runs": len(times),
        "answer": plain(answer),
    }


def plain(rows: Any) -> list[list[Any]]:
    """Return a result that can be compared, with rounded numbers and sorted rows."""
    found = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]
    return sorted(found, key=str)


def run_engine(name: str, place: Path, given: Inputs, seconds: float, *, questions_only: bool) -> dict[str, Any]:
    """Run all queries on one engine in this process, and return the report."""
    began = perf_counter()
    engine = ENGINES[name](place)
    report: dict[str, Any] = {"version": ENGINES[name].version(), "open": perf_counter() - began}
    report["questions"] = {}
    for title, ask in questions(engine, given).items():
        report["questions"][title] = measure(ask, seconds)
        print(f"{name:10} {title:24} {_cell(report['questions'][title])}", file=sys.stderr)
    report["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if name == "omnigraph" and not questions_only:
        report["build_lists_s"] = engine.topology()
        report["threads"] = throughput(engine, given)
        report["pool"] = pooled(engine, given)
        report["overhead_ms"] = overhead(engine, given)
    return report


def child(name: str, place: Path, scale: float, *what: str) -> str:
    """Run this program for one engine in a new process, and return its output."""
    command = [sys.executable, "-m", "bench.peers", "--place", str(place), "--scale", str(scale)]
    done = subprocess.run([*command, "--engine", name, *what], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def compare(reports: dict[str, dict[str, Any]]) -> list[str]:
    """Return a message for each query whose result differs between Omnigraph and another engine."""
    ours, different = reports["omnigraph"]["questions"], []
    for name, report in reports.items():
        for title, one in report["questions"].items():
            if title != "count of 2-paths" and one["answer"] != ours[title]["answer"]:
                different.append(f"{title}: {name} and omnigraph return different results")
    return different


def _cell(one: dict[str, Any]) -> str:
    return f"{one['cold']:.1f} / {one['warm']:.2f}"


def table(reports: dict[str, dict[str, Any]]) -> str:
    """Return a table with cold times and warm medians in milliseconds, and further figures."""
    heads = [f"{name} {one['version']}" for name, one in reports.items()]
    lines = ["| milliseconds: cold / warm median | " + " | ".join(heads) + " |"]
    lines.append("|---" * (len(heads) + 1) + "|")
    for title in reports["omnigraph"]["questions"]:
        cells = [_cell(one["questions"][title]) for one in reports.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    peaks = [f"{one['peak_mb']:.0f}" for one in reports.values()]
    lines.append("| peak memory, MB | " + " | ".join(peaks) + " |")
    ours = reports["omnigraph"]
    lines.append(f"\nBuilding the neighbor lists took {ours['build_lists_s']:.2f} s.")
    lines.append(f"`graph.query` adds {ours['overhead_ms']:.2f} ms to the time of the engine.")
    for title, one in ours["threads"].items():
        rates = f"{one['one']:.0f} queries/s with one thread, {one['many']:.0f} with {THREADS} threads"
        lines.append(f"{title}: {rates} ({one['ratio']:.2f}x, {one['cores']:.2f} cores busy)")
        cpu = f"{one['cpu_one_us']:.0f} µs of CPU time per query with one thread"
        lines.append(f"{title}: {cpu}, {one['cpu_many_us']:.0f} µs with {THREADS} threads")
    for title, one in ours["pool"].items():
        rates = f"{one['one']:.0f} queries/s with one process, {one['many']:.0f} with a pool of {PROCESSES} processes"
        lines.append(f"{title}: {rates} ({one['ratio']:.2f}x)")
    return "\n".join(lines)


def build_missing(place: Path, scale: float) -> None:
    """Build the data of each engine that has none yet, in a separate process."""
    for name in ENGINES:
        done = place / f"{name}.built"
        if not done.exists():
            began = perf_counter()
            child(name, place, scale, "--build")
            done.touch()
            print(f"{name:10} built in {perf_counter() - began:.1f} s", file=sys.stderr)


def run_engines(place: Path, scale: float, *options: str) -> dict[str, dict[str, Any]]:
    """Build missing data, then run all queries on every engine, each in its own process."""
    build_missing(place, scale)
    return {name: json.loads(child(name, place, scale, *options)) for name in ENGINES}


def compare_all(place: Path, scale: float) -> int:
    """Run every engine, and print the table and the JSON. Return 1 if results differ, otherwise 0."""
    reports = run_engines(place, scale)
    different = compare(reports) if scale <= COMPARED_SCALE else []
    print(table(reports))
    for report in reports.values():
        for one in report["questions"].values():
            one.pop("answer")
    print(json.dumps({"scale": scale, "engines": reports, "different": different}))
    return 1 if different else 0


def main() -> int:
    """Compare all engines, or run one engine if this is a child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=SMALL)
    parser.add_argument("--place", type=Path, help="directory in which data is kept between runs")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help=argparse.SUPPRESS)
    parser.add_argument("--questions-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--engine", choices=[*ENGINES], help=argparse.SUPPRESS)
    parser.add_argument("--build", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.place is None:
        with tempfile.TemporaryDirectory() as made:
            generate(given.scale, Path(made))
            return compare_all(Path(made), given.scale)
    inputs_at = given.place / "inputs.json"
    if not inputs_at.exists():
        inputs_at.parent.mkdir(parents=True, exist_ok=True)
        inputs_at.write_text(json.dumps(asdict(generate(given.scale, given.place))))
    inputs = Inputs(**json.loads(inputs_at.read_text()))
    if given.engine is None:
        return compare_all(given.place, given.scale)
    if given.build:
        ENGINES[given.engine].build(given.place)
    else:
        report = run_engine(given.engine, given.place, inputs, given.seconds, questions_only=given.questions_only)
        print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
