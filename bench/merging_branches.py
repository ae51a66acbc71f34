"""Measure processes that each write to their own branch and merge it into main in a loop.

Prints the number of merges, lost races and attempts, and the times, for each process. The arguments are the number of
processes (16 by default) and the duration in seconds (120 by default). Every merge must succeed, and the longest wait
for a merge shows whether a process starves.
"""

import sys
import tempfile
from pathlib import Path

import omnigraph
from tests.processes.merge_tasks import SCHEMA, MergeLoopReport, merge_for_seconds
from tests.processes.worker_processes import Hand, all_at_once


def measure(root: str, mergers: int, seconds: float) -> list[MergeLoopReport]:
    """Let all processes merge at the same time, then compare main with the reports of the processes."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    names = [f"m{number}" for number in range(mergers)]
    graph.insert("Person", *({"name": name, "n": -1} for name in names))
    for name in names:
        graph.branches.create(name)
    hands = [Hand() for _ in names]
    try:
        arguments = [(root, name, seconds, f"{root}.gate/{mergers}") for name in names]
        reports: list[MergeLoopReport] = all_at_once(hands, merge_for_seconds, arguments, patience=seconds + 3600.0)
    finally:
        for hand in hands:
            hand.dismiss()
    expected = {name: report.landed - 1 for name, report in zip(names, reports, strict=True)}
    expected |= {
        f"{name}-{number}": number
        for name, report in zip(names, reports, strict=True)
        for number in range(report.landed)
    }
    rows = graph.refresh().query("match { $p: Person } return { $p.name as name, $p.n as n }").to_records()
    if dict(rows) != expected:
        raise SystemExit("the content of main differs from the merges that the processes reported")
    return reports


def main(mergers: int, seconds: float) -> None:
    """Print the results of each process, and the totals."""
    with tempfile.TemporaryDirectory() as scratch:
        reports = measure(str(Path(scratch) / "g"), mergers, seconds)
    print(f"{'process':>7} {'merges':>7} {'lost':>6} {'most attempts':>14} {'mean s':>7} {'longest s':>10}")
    for number, report in enumerate(reports):
        lost, mean = sum(report.losses.values()), report.total_seconds / max(report.landed, 1)
        print(
            f"{number:>7} {report.landed:>7} {lost:>6} {report.most_attempts:>14} {mean:>7.2f}"
            f" {report.longest_seconds:>10.2f}"
        )
    landed, longest = sum(report.landed for report in reports), max(report.longest_seconds for report in reports)
    print(f"{landed} merges succeeded, and main contains all of them; the longest wait for a merge was {longest:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16, float(sys.argv[2]) if len(sys.argv) > 2 else 120.0)
