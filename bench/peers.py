"""Ours beside Ladybug and DuckDB: the same graph, the same questions, cold and warm.

`python -m bench.peers --scale 1` compares a million people and ten million edges; without a scale
it is small enough to compare every answer as well. Each engine runs in a process of its own. Cold
is the first time in a fresh process, with the disk cache of the system warm.
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
_SECONDS = 2.0  # how long a question is repeated
COMPARED_SCALE = 0.1  # up to this scale answers are compared


def questions(engine: Any, given: Inputs) -> dict[str, Callable[[int], Any]]:
    """Every question by its name; the number of the run chooses among people."""
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
    """Two different people."""
    return people[at % len(people)], people[(at + 1) % len(people)]


def measure(ask: Callable[[int], Any], seconds: float) -> dict[str, Any]:
    """The first time, then the median of many, within a few seconds."""
    began = perf_counter()
    answer = ask(0)
    cold = perf_counter() - began
    times: list[float] = []
    while len(times) < _LEAST_RUNS or (len(times) < _MOST_RUNS and sum(times) < seconds):
        began = perf_counter()
        ask(len(times))
        times.append(perf_counter() - began)
    # The second half: what a process learns while it is used belongs to warm.
    warm = times[len(times) // 2 :]
    return {
        "cold": cold * 1000,
        "warm": statistics.median(warm) * 1000,
        "best": min(warm) * 1000,
        "runs": len(times),
        "answer": plain(answer),
    }


def plain(rows: Any) -> list[list[Any]]:
    """An answer that can be compared: rounded, and in one order."""
    found = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]
    return sorted(found, key=str)


def run_engine(name: str, place: Path, given: Inputs, seconds: float, *, questions_only: bool) -> dict[str, Any]:
    """All questions to one engine, in this process."""
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
    """The same program in a fresh process, for one engine."""
    command = [sys.executable, "-m", "bench.peers", "--place", str(place), "--scale", str(scale)]
    done = subprocess.run([*command, "--engine", name, *what], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def compare(reports: dict[str, dict[str, Any]]) -> list[str]:
    """Questions to which two engines give different answers."""
    ours, different = reports["omnigraph"]["questions"], []
    for name, report in reports.items():
        for title, one in report["questions"].items():
            if title != "count of 2-paths" and one["answer"] != ours[title]["answer"]:
                different.append(f"{title}: {name} and omnigraph differ")
    return different


def _cell(one: dict[str, Any]) -> str:
    return f"{one['cold']:.1f} / {one['warm']:.2f}"


def table(reports: dict[str, dict[str, Any]]) -> str:
    """Cold and warm medians side by side, in milliseconds."""
    heads = [f"{name} {one['version']}" for name, one in reports.items()]
    lines = ["| ms: cold / warm median | " + " | ".join(heads) + " |"]
    lines.append("|---" * (len(heads) + 1) + "|")
    for title in reports["omnigraph"]["questions"]:
        cells = [_cell(one["questions"][title]) for one in reports.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    peaks = [f"{one['peak_mb']:.0f}" for one in reports.values()]
    lines.append("| peak memory, MB | " + " | ".join(peaks) + " |")
    ours = reports["omnigraph"]
    lines.append(f"\nNeighbor lists made in {ours['build_lists_s']:.2f} s.")
    lines.append(f"`graph.query` adds {ours['overhead_ms']:.2f} ms to the bare engine.")
    for title, one in ours["threads"].items():
        rates = f"{one['one']:.0f} queries/s by one thread, {one['many']:.0f} by {THREADS}"
        lines.append(f"{title}: {rates}: {one['ratio']:.2f}x, {one['cores']:.2f} cores busy")
        lines.append(f"{title}: {one['cpu_one_us']:.0f} µs of processor time, {one['cpu_many_us']:.0f} with {THREADS}")
    for title, one in ours["pool"].items():
        rates = f"{one['one']:.0f} queries/s by one process, {one['many']:.0f} by a pool of {PROCESSES}"
        lines.append(f"{title}: {rates}: {one['ratio']:.2f}x")
    return "\n".join(lines)


def build_missing(place: Path, scale: float) -> None:
    """Make the data of every engine that has none yet, each in its own process."""
    for name in ENGINES:
        done = place / f"{name}.built"
        if not done.exists():
            began = perf_counter()
            child(name, place, scale, "--build")
            done.touch()
            print(f"{name:10} built in {perf_counter() - began:.1f} s", file=sys.stderr)


def run_engines(place: Path, scale: float, *options: str) -> dict[str, dict[str, Any]]:
    """Build what is missing and put all questions to every engine, each in its own process."""
    build_missing(place, scale)
    return {name: json.loads(child(name, place, scale, *options)) for name in ENGINES}


def compare_all(place: Path, scale: float) -> int:
    """Run every engine, print the table and the JSON; 1 when answers differ."""
    reports = run_engines(place, scale)
    different = compare(reports) if scale <= COMPARED_SCALE else []
    print(table(reports))
    for report in reports.values():
        for one in report["questions"].values():
            one.pop("answer")
    print(json.dumps({"scale": scale, "engines": reports, "different": different}))
    return 1 if different else 0


def main() -> int:
    """Read the command line and compare, or be the child that runs one engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=SMALL)
    parser.add_argument("--place", type=Path, help="where data is kept between runs")
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
