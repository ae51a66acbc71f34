"""Optimize beside a schema apply that moves, drops or replaces its tables."""

from collections.abc import Callable

import pytest

from omnigraph.api.graph import Graph
from omnigraph.maintenance.optimize_report import OptimizeReport
from omnigraph.storage import tail_compaction
from omnigraph.testing import graph as new_graph
from tests.evolve.test_concurrent_writers import before_effect, elsewhere

SCHEMA = """
node P { k: String @key  n: I64? @index  m: I64? }
node Q { k: String @key  v: I64? @index }
"""
MOVED = SCHEMA.replace("  m: I64?", "")
DROPPED = SCHEMA.replace("node Q { k: String @key  v: I64? @index }", "")
QUICK = (1, 7, 11, 14)


def effects(last: int) -> list[object]:
    """The effects of an optimize of these two tables, and of the commit that follows it."""
    every = range(1, last + 1)
    return [one if one in QUICK else pytest.param(one, marks=pytest.mark.full) for one in every]


EFFECTS = effects(15)
# From the twelfth on it holds the queue of writers of this process, which a cleanup needs too.
UNQUEUED = effects(11)


@pytest.fixture(autouse=True)
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave small fragments for optimize to compact."""
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 1 << 20)


def fill(graph: Graph) -> None:
    for n in range(3):
        graph.load({"P": [{"k": f"k{n}", "n": n, "m": n}], "Q": [{"k": f"k{n}"}]}, mode="append")


def optimize_beside(number: int, meanwhile: Callable[[Graph], object]) -> tuple[OptimizeReport, Graph]:
    """Run optimize; another handle acts before its effect of that number."""
    with new_graph(SCHEMA) as graph:
        fill(graph)
        other = elsewhere(graph)
        with before_effect(graph, number, lambda: meanwhile(other)):
            done = graph.maintenance.optimize()
        graph.refresh()
        assert len(graph.nodes("P").result()) == 3
        return done, graph


def drop_column(graph: Graph) -> None:
    graph.schema.apply(MOVED, allow_data_loss=True)


def drop_type(graph: Graph) -> None:
    graph.schema.apply(DROPPED, allow_data_loss=True)


def drop_and_clean(graph: Graph) -> None:
    """Remove every version that optimize may still be reading, as a cleanup without grace does."""
    drop_type(graph)
    graph.maintenance.cleanup(keep=1, grace=0, purge_dropped=True, confirm=True)


@pytest.mark.parametrize("number", EFFECTS)
def test_table_moved_by_a_concurrent_apply_is_reported(number: int) -> None:
    done, _ = optimize_beside(number, drop_column)
    assert {one.type_key for one in done.datasets} == {"node:P", "node:Q"}
    assert not done.damaged


@pytest.mark.parametrize("number", EFFECTS)
def test_concurrently_dropped_type_is_skipped(number: int) -> None:
    done, _ = optimize_beside(number, drop_type)
    assert not done.damaged


@pytest.mark.parametrize("number", UNQUEUED)
def test_versions_removed_by_a_concurrent_cleanup_are_not_damage(number: int) -> None:
    done, _ = optimize_beside(number, drop_and_clean)
    assert not done.damaged
