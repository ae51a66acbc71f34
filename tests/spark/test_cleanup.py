"""A Spark cleanup removes the files of a local cleanup, also after a failed task."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api import engine_choice
from omnigraph.api.graph import Graph
from omnigraph.errors import ServerError
from omnigraph.history.delete_queue import list_runs
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.retention.file_survey import take_survey
from omnigraph.spark import executor as on_spark
from omnigraph.values import clock_and_ids
from tests.rig.invariants import check_invariants, files
from tests.rig.plugin import S3

SCHEMA = "node P { k: String @key  n: I64?  b: Blob? }\nedge E: P -> P"
KEEP: dict[str, Any] = {"keep": 2, "grace": 0, "confirm": True}


def aged(place: Path) -> Graph:
    """A graph with branches, a tag, deleted rows and a branch that is gone."""
    graph = omnigraph.init(place, SCHEMA, durability="os")
    for n in range(6):
        graph.insert("P", {"k": f"k{n}", "n": n, "b": b"x" * (n * 100_000)})
        graph.connect_nodes("E", [(f"k{n}", "k0")])
        if n == 2:
            graph.tag("early")
            for name in ("side", "gone"):
                graph.branches.create(name)
                graph.checkout(name).insert("P", {"k": name})
    graph.delete("P", where="n = 3")
    graph.update("P", where="n = 4", set={"n": 40})
    graph.branches.delete("gone", force=True)
    return graph


def content(graph: Graph) -> list[Any]:
    shown = (graph.refresh(), graph.at("early"), omnigraph.open(graph.uri, branch="side"))
    return [sorted(map(str, one.export())) for one in shown]


def twins(folder: Path) -> tuple[Graph, Graph]:
    first = aged(folder / "a")
    shutil.copytree(folder / "a", folder / "b")
    return first, omnigraph.open(folder / "b")


def names(graph: Graph) -> set[str]:
    """Every file, except for what each run calls in its own way."""
    found = files(graph._handle.store)
    return {one for one in found if "/_versions/" not in one or "/_versions/d" in one}


def test_both_engines_remove_and_report_the_same_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = twins(tmp_path)
    before = content(here)
    monkeypatch.setattr(on_spark, "_FILES_PER_JOB", 20)
    monkeypatch.setattr(on_spark, "_VERSIONS_PER_JOB", 5)
    told = [one.maintenance.cleanup(keep=2, grace=0, **how) for one, how in _engines(here, there, spark)]
    assert told[0] == told[1], "but for the engine"
    local, done = (one.maintenance.cleanup(**KEEP, **how) for one, how in _engines(here, there, spark))
    assert (local.engine, done.engine) == ("local", "spark")
    assert local == done
    assert done.old_versions_removed > 5
    assert {one for one in names(here) if one.startswith(("nodes", "edges"))} == {
        one for one in names(there) if one.startswith(("nodes", "edges"))
    }
    assert content(here) == content(there) == before
    assert there.maintenance.check().findings == ()
    check_invariants(there.uri)


def _engines(here: Graph, there: Graph, spark: Any) -> list[tuple[Graph, dict[str, Any]]]:
    return [(here, {"engine": "local"}), (there, {"engine": "spark", "spark": spark})]


def test_executors_see_every_file_that_the_driver_sees(spark: Any, tmp_path: Path) -> None:
    store = aged(tmp_path / "g")._handle.store
    (Path(store.root.path) / "nodes" / "stray").write_bytes(b"?")
    now = clock_and_ids.now()
    assert take_survey(store, now, on_spark.SparkExecutor(spark)) == take_survey(store, now, LocalExecutor())


@pytest.mark.parametrize("how", ["raise", pytest.param("kill", marks=pytest.mark.full)])
def test_failed_task_is_completed_by_the_next_cleanup(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    here, there = twins(tmp_path)
    before = content(here)
    monkeypatch.setattr(on_spark, "_FILES_PER_JOB", 4)
    with monkeypatch.context() as patch:
        failing(patch, how)
        with pytest.raises(ServerError, match="Spark job") as caught:
            there.maintenance.cleanup(**KEEP, engine="spark", spark=spark)
    assert caught.value.effect == "none"
    assert len(list_runs(there._handle.store)) == 1, "what had to go is still written down"
    assert content(there) == before
    check_invariants(there.uri)
    there.maintenance.cleanup(**KEEP, engine="spark", spark=spark)
    here.maintenance.cleanup(**KEEP, engine="local")
    assert list_runs(there._handle.store) == []
    assert {one for one in names(here) if one.startswith(("nodes", "edges"))} == {
        one for one in names(there) if one.startswith(("nodes", "edges"))
    }
    assert content(there) == before
    check_invariants(there.uri)


def failing(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Let the job that removes data files fail after the second of them."""
    real = on_spark._remove_group

    def broken(place: Any, some: Any) -> Any:
        import os
        import signal

        if not any("/data/" in one for one in some):
            return real(place, some)
        real(place, some[:2])
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError("the machine is gone")

    monkeypatch.setattr(on_spark, "_remove_group", broken)


@pytest.mark.full
def test_file_that_cannot_be_removed_is_reported(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = aged(tmp_path / "g")
    real = on_spark._remove_group

    def stubborn(place: Any, some: Any) -> Any:
        done = real(place, some[1:]) if "/data/" in some[0] else real(place, some)
        return [*done, (some[0], "not today")] if "/data/" in some[0] else done

    with monkeypatch.context() as patch:
        patch.setattr(on_spark, "_remove_group", stubborn)
        done = graph.maintenance.cleanup(**KEEP, engine="spark", spark=spark)
    assert done.failed
    assert "not today" in str(done.failed[0].error)
    again = graph.maintenance.cleanup(**KEEP, engine="spark", spark=spark)
    assert not again.failed
    assert not graph.maintenance.cleanup(**KEEP).bytes_removed or list_runs(graph._handle.store) == []


def test_auto_uses_spark_only_for_many_files(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = aged(tmp_path / "g")
    assert graph.maintenance.cleanup(keep=1, grace=0, spark=spark).engine == "local"
    monkeypatch.setattr(engine_choice, "CLEANUP_MIN_FILES", 10)
    assert graph.maintenance.cleanup(keep=1, grace=0, spark=spark).engine == "spark"


@pytest.mark.full
def test_maintenance_on_s3_runs_on_spark(spark: Any, s3: S3) -> None:
    graph = omnigraph.init(s3.url, SCHEMA)
    for n in range(3):
        graph.load({"P": [{"k": f"k{n}", "n": n, "b": b"x" * 100}]}, mode="append")
    before = sorted(map(str, graph.export()))
    done = graph.maintenance.optimize(engine="spark", spark=spark)
    assert [one.fragments_removed for one in done.datasets if one.committed] == [3]
    report = graph.maintenance.cleanup(**KEEP, engine="spark", spark=spark)
    assert report.engine == "spark"
    assert not report.failed
    assert report.old_versions_removed
    assert sorted(map(str, omnigraph.open(s3.url).export())) == before
