"""Measure conflicts, retries and updates per second while several processes update different nodes of one type.

The arguments are the number of processes (8 by default) and the number of updates in each process (200 by default).
Callers must not see any conflict, because no two processes update the same node.
"""

import sys
import tempfile
from pathlib import Path

import omnigraph
from tests.processes.update_tasks import UpdateReport, update_own_keys
from tests.processes.worker_processes import Hand, all_at_once

SCHEMA = "node Person { name: String @key  age: I32?  note: String? }"
KEYS = 5  # the number of nodes that each process updates in turn


def measure(root: str, writers: int, updates: int) -> list[UpdateReport]:
    """Let all processes update their own nodes at the same time."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", [{"name": f"w{writer}-{key}"} for writer in range(writers) for key in range(KEYS)])
    hands = [Hand() for _ in range(writers)]
    try:
        args = [(root, writer, KEYS, updates, f"{root}.gate/{writers}") for writer in range(writers)]
        return all_at_once(hands, update_own_keys, args, patience=3600.0)
    finally:
        for hand in hands:
            hand.dismiss()


def main(writers: int, updates: int) -> None:
    """Print the results of each process, and the totals."""
    with tempfile.TemporaryDirectory() as scratch:
        reports = measure(str(Path(scratch) / "g"), writers, updates)
    print(f"{'process':>7} {'updates':>7} {'retries':>8} {'most':>5} {'seconds':>8}  conflicts")
    for number, report in enumerate(reports):
        print(
            f"{number:>7} {report.landed:>7} {report.retries:>8} {report.most_retries:>5} {report.seconds:>8.1f}"
            f"  {report.conflicts or 'none'}"
        )
    landed, seconds = sum(report.landed for report in reports), max(report.seconds for report in reports)
    conflicts = sum(sum(report.conflicts.values()) for report in reports)
    print(f"{landed} updates succeeded, callers saw {conflicts} conflicts, {landed / seconds:.1f} updates per second")


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    main(*(arguments or [8]), *([200] if len(arguments) < 2 else []))
