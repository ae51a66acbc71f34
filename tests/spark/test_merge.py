"""Spark merges produce the same graphs, conflicts and outcomes as local merges.

More situations are tried in `tests/merging/test_offloaded_tables.py`, with the same tasks and without Spark.
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.main import run as cli
from omnigraph.errors import ConfigError, UsageError
from omnigraph.spark import merge as large
from omnigraph.spark.merge import SparkMerge
from tests.merging.conftest import Both, edge, person, stored
from tests.merging.in_process_spark_merge import merged_by
from tests.merging.test_action_pairs import _prepared
from tests.merging.test_offloaded_tables import WAYS, answers, row_ids
from tests.model.program_runner import hits, run
from tests.model.random_programs import Author
from tests.rig.depth import repeats

SCHEMA = "node N { k: String @key  n: I32? }\nnode M { k: String @key }"


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """A graph beside its model, both empty."""
    return Both(tmp_path / "graph")


def both_ways(both: Both, spark: Any, source: str, target: str, **how: Any) -> Any:
    """Merge on both engines, into a copy of the target each."""
    on_spark: dict[str, Any] = {"engine": "spark", "spark": spark}
    near = both.graph.merge(source, target, dry_run=True, engine="local", **how)
    far = both.graph.merge(source, target, dry_run=True, **on_spark, **how)
    assert answers(far) == answers(near)
    assert far.merged.plan.offloaded_tables, "no table was compared on Spark"
    if far:
        for name, engine in (("near", {"engine": "local"}), ("far", on_spark)):
            both.fork(name, target)
            both.graph.merge(source, name, **engine, **how)
        assert stored(both.on("far")) == stored(both.on("near"))
        before, after = row_ids(both.on(target)), row_ids(both.on("far"))
        for key, rows in after.items():
            kept = rows.keys() & before[key].keys()
            assert {one: rows[one] for one in kept} == {one: before[key][one] for one in kept}
    return far


def test_merge_has_the_same_outcome_on_both_engines(spark: Any, both: Both) -> None:
    people = {f"p{at}": person(f"p{at}", at) for at in range(6)}
    both.put("main", {"node:Person": people, "edge:Knows": {"k": edge("p0", "p1")}})
    both.fork("dev")
    both.put("dev", {"node:Person": {"p0": person("p0", 7), "new": person("new", 1)}})
    both.put("dev", {"edge:Knows": {"n": edge("new", "p3"), "twin": edge("p1", "p2")}})
    both.drop("dev", "node:Person", "p5")
    both.put("main", {"node:Person": {"p0": person("p0", 8), "p2": person("p2", 2, "q")}})
    both.put("main", {"edge:Knows": {"other": edge("p1", "p2")}})
    found = both_ways(both, spark, "dev", "main", strategy="theirs")
    assert found.stats["resolved"] == 1
    assert found.parallel_edges == (("edge:Knows", "other", "twin"),)
    assert (found.stats["inserts"], found.stats["deletes"]) == (3, 1)


@pytest.mark.full
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_every_pair_of_actions_merges_as_in_one_process(spark: Any, both: Both, way: int) -> None:
    _prepared(both)
    both_ways(both, spark, "dev", "main", **WAYS[way])


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_merge_programs_run_as_in_one_process(spark: Any) -> None:
    hits.clear()
    with merged_by(SparkMerge(spark, forced=True)):
        for seed in range(3000, 3000 + repeats(12)):
            run(Author(seed).program(8 + seed % 8), whole=False)
    assert hits["merge"] > repeats(12)


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    """Two branches, of which both have changed two types."""
    made: Any = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.load([_node(at, at) for at in range(30)], mode="append")
    made.branches.create("dev")
    made.checkout("dev").load([_node(at, -at) for at in range(1, 21)], mode="merge")
    made.checkout("dev").load([{"type": "M", "data": {"k": "m"}}], mode="append")
    made.load([_node(25, 0), {"type": "M", "data": {"k": "o"}}], mode="merge")
    return made


def _node(at: int, n: int) -> dict[str, Any]:
    return {"type": "N", "data": {"k": f"{at}", "n": n}}


def test_auto_uses_spark_only_for_large_tables(
    graph: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def session(*_: Any) -> None:
        asked.append("a session")

    monkeypatch.setattr(large, "spark_session_or_none", session)
    assert not graph.merge("dev", dry_run=True).merged.plan.offloaded_tables
    assert not asked
    monkeypatch.setenv(large.THRESHOLD_VARIABLE, "40")
    with caplog.at_level(logging.INFO, "omnigraph"):
        done = graph.merge("dev", dry_run=True)
    assert (asked, done.outcome, done.merged.plan.offloaded_tables) == (["a session"], "merged", {})
    assert "running a large merge in this process" in caplog.text
    monkeypatch.setenv(large.THRESHOLD_VARIABLE, "1000")
    graph.merge("dev", dry_run=True)
    assert asked == ["a session"]
    monkeypatch.setenv(large.THRESHOLD_VARIABLE, "many")
    with pytest.raises(ConfigError, match="must be a number of rows"):
        graph.merge("dev", dry_run=True)
    with pytest.raises(UsageError, match="expected one of auto, spark, local"):
        graph.merge("dev", dry_run=True, engine="clouds")


def test_moved_rows_do_not_count_as_merge_size(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.refresh().maintenance.optimize()
    monkeypatch.setattr("omnigraph.history.diff._MAX_DIRECT_ROWS", 0)
    monkeypatch.setattr(large, "_MIN_TABLE_ROWS", 0)
    monkeypatch.setenv(large.THRESHOLD_VARIABLE, "50")
    looked: list[str] = []
    monkeypatch.setattr(large, "spark_session_or_none", lambda *_: looked.append("a session"))
    assert graph.refresh().merge("dev", dry_run=True).outcome == "merged"
    assert looked == []


def test_auto_merges_small_tables_locally(spark: Any, graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(large.THRESHOLD_VARIABLE, "40")
    monkeypatch.setattr(large, "_MIN_TABLE_ROWS", 10)
    done = graph.merge("dev", spark=spark)
    assert set(done.merged.plan.offloaded_tables) == {"node:N"}
    assert done.stats["types"] == {
        "M": {"insert": 1, "update": 0, "delete": 0},
        "N": {"insert": 0, "update": 20, "delete": 0},
    }


def test_merge_command_runs_on_spark(spark: Any, graph: Any, capsys: pytest.CaptureFixture[str]) -> None:
    graph.load([_node(3, 99)], mode="merge")
    words = ["branch", "merge", "dev", "--uri", graph.uri, "--engine", "spark"]
    cli([*words, "--dry-run"])
    told = capsys.readouterr()
    assert "--engine spark --strategy" in told.out + told.err
    assert "node N '3': divergent_update" in told.out + told.err
    assert cli([*words, "--strategy", "theirs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stats"]["updates"] == 20
