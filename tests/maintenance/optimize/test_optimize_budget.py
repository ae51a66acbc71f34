"""An optimize run with a budget starts no further work once the budget is used, and the next run continues."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import InputError
from omnigraph.storage import compact, tail_compaction
from omnigraph.testing import graph as new_graph
from omnigraph.values.clock_and_ids import ManualClock, deterministic_ids
from omnigraph.values.table_key import TableKey
from tests.maintenance.optimize.test_tail_compaction import sizes, stored, uncovered

SCHEMA = "node P { k: String @key  n: I64? @index }\nnode Q { k: String @key }\nnode Small { k: String @key }"


@pytest.fixture(autouse=True)
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes leave their tails to optimize, and two rows fill a fragment."""
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 1 << 20)
    monkeypatch.setattr(compact, "TARGET_ROWS", 2)


def fill(graph: Graph) -> None:
    for n in range(6):
        graph.insert("P", {"k": f"p{n}", "n": n})
        graph.insert("Q", {"k": f"q{n}"})
    graph.insert("Small", {"k": "s"})
    graph.maintenance.optimize(types=["Small"])


@contextmanager
def during_each_effect(graph: Graph, kind: str, happen: Callable[[], object]) -> Iterator[None]:
    effects: Any = graph._handle.store.effects
    real = effects.run

    def run(effect: Any, target: str, action: Callable[[], Any]) -> Any:
        if effect == kind:
            happen()
        return real(effect, target, action)

    effects.run = run
    try:
        yield
    finally:
        del effects.run


def test_each_run_publishes_one_task_and_the_next_run_continues() -> None:
    with new_graph(SCHEMA) as graph:
        fill(graph)
        rows, remaining, runs = stored(graph), None, 0
        while remaining != {}:
            report = graph.maintenance.optimize(max_bytes=1)
            assert len(report.commits) == 1
            assert remaining is None or sum(report.remaining.values()) < sum(remaining.values())
            remaining, runs = report.remaining, runs + 1
            if runs == 1:
                assert (sorted(sizes(graph)), sizes(graph, "Q")) == ([1, 1, 1, 1, 2], [1] * 6)
                assert set(remaining) == {"node:P", "node:Q"}, "nothing remains in tables that need nothing"
                assert repr(report) == "<Optimized node:P of 3 tables, 2 remaining>"
                assert report.datasets[0].to_json()["remaining_bytes"] == remaining[TableKey("node:P")]
        assert (sizes(graph), sizes(graph, "Q"), uncovered(graph)) == ([2, 2, 2], [2, 2, 2], 0)
        assert (stored(graph), runs) == (rows, 8), "for each of two types, three tasks and the indexes"
        assert not graph.maintenance.optimize(max_bytes=1, max_seconds=1)


def test_no_table_is_started_after_the_time_is_used() -> None:
    with new_graph(SCHEMA) as graph:
        fill(graph)
        clock = ManualClock()
        with (
            deterministic_ids(clock),
            during_each_effect(graph, "stage", lambda: clock.advance(seconds=10)),
        ):
            report = graph.maintenance.optimize(max_seconds=15)
        assert (sorted(sizes(graph)), sizes(graph, "Q")) == ([1, 1, 2, 2], [1] * 6)
        assert set(report.remaining) == {"node:P", "node:Q"}


def test_a_sufficient_budget_changes_nothing() -> None:
    with new_graph(SCHEMA) as graph:
        fill(graph)
        report = graph.maintenance.optimize(max_bytes=1 << 30, max_seconds=1e9)
        assert (report.remaining, len(report.commits)) == ({}, 1)
        assert (sizes(graph), sizes(graph, "Q"), uncovered(graph)) == ([2, 2, 2], [2, 2, 2], 0)


def test_only_the_selected_types_remain() -> None:
    with new_graph(SCHEMA) as graph:
        fill(graph)
        assert set(graph.maintenance.optimize(types=["Q"], max_bytes=1).remaining) == {"node:Q"}


@pytest.mark.parametrize("limits", [{"max_bytes": 0}, {"max_seconds": -1}, {"max_seconds": "1"}, {"max_bytes": True}])
def test_limits_must_be_positive(limits: Any) -> None:
    with new_graph(SCHEMA) as graph, pytest.raises(InputError, match="must be a positive number"):
        graph.maintenance.optimize(**limits)
