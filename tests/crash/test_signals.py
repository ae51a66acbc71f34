"""Signals during writes: no lock, no temporary file, and a usable graph."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.api import opening as graphs
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants, unfinished
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import TABLES, append, init_small, line_at, read_branch, write


def interrupted(root: Path, number: int, after: int) -> tuple[int, list[str]]:
    """Send a signal to a writing process; gives its exit code and the writes it acknowledged."""
    command = [sys.executable, "-m", "tests.crash.writer", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(after)]
        writer.send_signal(number)
        told += writer.stdout.read().split()
        return writer.wait(PATIENCE), told


def check(root: Path, told: list[str]) -> None:
    """Everything that was acknowledged is there, at most one write more, and the graph goes on."""
    with overdue():
        graph = graphs.open(root, durability="os")
    line = line_at(root)
    for key in TABLES:
        rows = [row for row, _ in read_branch(line)[key]]
        assert set(told) <= set(rows)
        assert len(rows) <= len(told) + 1
    assert write(line, append({"next": 1})) is not None
    assert graph.refresh().table("Person").count_rows() >= len(told) + 1
    check_invariants(root)


@pytest.mark.parametrize(
    ("number", "codes"), [(signal.SIGTERM, {143}), (signal.SIGINT, {130, 1, -signal.SIGINT})], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_leaves_no_lock_and_no_temporary_file(tmp_path: Path, number: int, codes: set[int]) -> None:
    root = tmp_path / "graph"
    init_small(root)
    code, told = interrupted(root, number, 4)
    assert code in codes
    assert unfinished(root) == []
    check(root, told)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_at_random_times_leave_a_usable_graph(tmp_path: Path, number: int) -> None:
    for after in range(1, 11):
        root = tmp_path / f"graph-{after}"
        init_small(root)
        _, told = interrupted(root, number, after)
        if number != signal.SIGKILL:
            assert unfinished(root) == []
        check(root, told)
