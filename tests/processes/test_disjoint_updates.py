"""Processes that update different nodes of one type never see a conflict."""

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from tests.processes.conftest import Crew
from tests.processes.update_tasks import UpdateReport, race_for_own_keys, update_own_keys
from tests.processes.worker_processes import all_at_once
from tests.rig.invariants import check_invariants
from tests.rig.timeouts import PATIENCE

SCHEMA = "node Person { name: String @key  age: I32?  note: String? }"
KEYS = 5  # nodes of each writer, updated in turn


def _update_in_parallel(
    crew: Crew, root: str, writers: int, updates: int, task: Callable[..., UpdateReport] = update_own_keys
) -> None:
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", [{"name": f"w{writer}-{key}"} for writer in range(writers) for key in range(KEYS)])
    args = [(root, writer, KEYS, updates, f"{root}.gate/{writers}") for writer in range(writers)]
    reports: list[UpdateReport] = all_at_once(crew(writers), task, args, PATIENCE * 5)
    print(f"{writers} x {updates}: {reports}")
    assert [(report.landed, report.conflicts) for report in reports] == [(updates, {})] * writers
    ages = {row["p.name"]: row["p.age"] for row in graph.query("match { $p: Person } return { $p.name, $p.age }")}
    last_values = {number % KEYS: number for number in range(updates)}
    assert ages == {f"w{writer}-{key}": last_values[key] for writer in range(writers) for key in range(KEYS)}
    check_invariants(root)


def test_two_processes_update_different_nodes_without_conflicts(crew: Crew, tmp_path: Path) -> None:
    _update_in_parallel(crew, str(tmp_path / "g"), 2, 20)


def test_two_racing_processes_update_different_nodes_without_conflicts(crew: Crew, tmp_path: Path) -> None:
    _update_in_parallel(crew, str(tmp_path / "g"), 2, 8, race_for_own_keys)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_eight_processes_update_different_nodes_without_conflicts(crew: Crew, tmp_path: Path) -> None:
    _update_in_parallel(crew, str(tmp_path / "g"), 8, 200)
