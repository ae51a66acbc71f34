"""Spark maintenance has the results and reports of local maintenance."""

import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api import engine_choice
from omnigraph.api.graph import Graph
from omnigraph.engine.search import fulltext_scan
from omnigraph.errors import ServerError, UsageError
from omnigraph.errors.input import InputError
from omnigraph.spark import executor as on_spark
from omnigraph.spark import session
from omnigraph.storage import compact, tail_compaction
from omnigraph.storage.column_index import index_coverage
from omnigraph.storage.table import open_table
from tests.evolve.test_concurrent_writers import before_effect, elsewhere
from tests.rig.invariants import check_invariants

SCHEMA = """
node P {
  k: String @key  n: I64? @index  w: String?  v: Vector(2)? @index
  @index(w, kind=ngram) @index(w, kind=fulltext)
}
node Doc { k: String @key  b: Blob? }
node Empty { k: String @key }
edge E: P -> P { x: I64? }
"""


@pytest.fixture(autouse=True)
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes leave their tails to optimize, and few rows are enough for an index of words."""
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 1 << 20)
    monkeypatch.setattr(fulltext_scan, "MIN_INDEXED_ROWS", 1)
    monkeypatch.setattr(fulltext_scan, "_MIN_ROWS_PER_CANDIDATE", 1)


def grown(place: Path, seed: int) -> Graph:
    """A graph with a life behind it: many small writes, deletes, updates, indexes half-way."""
    chance = random.Random(seed)
    graph = omnigraph.init(place, SCHEMA, durability="os")
    for n in range(4):
        keys = range(5 * n, 5 * n + 5)
        rows = [{"k": f"k{k}", "n": chance.randrange(9), "w": f"word{k % 3}"} for k in keys]
        rows = [one | {"v": [chance.random(), 1.0]} for one in rows]
        graph.load({"P": rows}, mode="append")
        graph.connect_nodes("E", [(f"k{5 * n}", f"k{chance.randrange(5 * n, 5 * n + 5)}")])
        graph.insert("Doc", {"k": f"d{n}", "b": bytes([n]) * 10})
        if n == seed % 3:
            graph.maintenance.ensure_indices()
    graph.update("P", where="n < 3", set={"n": -1})
    graph.delete("P", where="k = 'k1'")
    return graph


def content(graph: Graph) -> dict[str, Any]:
    tables = {
        name: sorted(map(str, graph.table(name).to_table(with_row_id=True).to_pylist())) for name in ("P", "E", "Empty")
    }
    asked = [
        "match { $p: P  $p.n = -1 } return { $p.k as k } order { $p.k }",
        'match { $p: P  $p.w contains "word1" } return { $p.k as k } order { $p.k }',
        'match { $p: P  search($p.w, "word1") } return { $p.k as k } order { $p.k }',
        "match { $p: P } return { $p.k as k } order { nearest($p.v, [1.0, 0.5]) } limit 3",
        "match { $p: P  $p e $q } return { $p.k as a, $q.k as b } order { $p.k, $q.k }",
    ]
    answers = [[dict(one) for one in graph.query(text)] for text in asked]
    return tables | {"answers": answers, "docs": sorted(map(str, graph.export(types=["Doc"])))}


def facts(done: Any) -> list[dict[str, Any]]:
    return [one.to_json() for one in done.datasets]


def twins(folder: Path, seed: int) -> tuple[Graph, Graph]:
    """The same graph twice."""
    first = grown(folder / f"a{seed}", seed)
    shutil.copytree(folder / f"a{seed}", folder / f"b{seed}")
    return first, omnigraph.open(folder / f"b{seed}")


def coverage(graph: Graph) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, entry in graph.snapshot.tables.items():
        table = open_table(graph._handle.store, entry.location, entry.lance_version)
        found[key] = index_coverage(table)
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 2, 5))])
def test_both_engines_produce_the_same_tables(spark: Any, tmp_path: Path, seed: int) -> None:
    here, there = twins(tmp_path, seed)
    before = content(here)
    local, done = (here.maintenance.optimize(engine="local"), there.maintenance.optimize(engine="spark", spark=spark))
    assert (local.engine, done.engine) == ("local", "spark")
    assert facts(local) == facts(done)
    assert any(one["fragments_removed"] for one in facts(done))
    assert content(here) == content(there) == before
    assert coverage(here) == coverage(there)
    assert next(one.operation for one in there.log()) == "optimize"
    assert not there.maintenance.optimize(engine="spark", spark=spark), "the second time there is nothing to do"
    assert there.maintenance.check().findings == ()
    check_invariants(there.uri)


@pytest.mark.full
def test_both_engines_build_the_same_indexes(spark: Any, tmp_path: Path) -> None:
    here, there = twins(tmp_path, 0)
    local = here.maintenance.ensure_indices(engine="local")
    done = there.maintenance.ensure_indices(engine="spark", spark=spark)
    assert local.indexes == done.indexes
    assert done.indexes.keys() == {"edge:E", "node:Doc", "node:P"}
    assert coverage(here) == coverage(there)
    assert content(here) == content(there)
    assert not there.maintenance.ensure_indices(engine="spark", spark=spark)


@pytest.mark.full
def test_large_indexes_are_built_in_parts(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grown(tmp_path / "g", 7)
    before = content(graph)
    monkeypatch.setattr(compact, "TARGET_ROWS", 6)
    hands = on_spark.SparkExecutor(spark, index_part_rows=6)
    monkeypatch.setattr("omnigraph.api.maintenance_runs.choose_optimize_executor", lambda *_: hands)
    graph.maintenance.optimize()
    indexes = {one.field_names[0]: one for one in graph.table("P").describe_indices()}
    parts = {name: len(one.segments) for name, one in indexes.items()}
    assert parts["id"] > 1
    assert parts["w"] == 1, "what follows its fragments is one, so that they can be put together"
    assert content(graph) == before
    assert not graph.maintenance.optimize()


def failing(monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> None:
    """Let the job on edges fail after it has written, whatever others do."""
    real: Callable[..., Any] = getattr(on_spark, name)

    def broken(place: Any, job: Any) -> Any:
        found = real(place, job)
        if "edges/" in job[0] and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if "edges/" in job[0]:
            raise OSError("the machine is gone")
        return found

    monkeypatch.setattr(on_spark, name, broken)


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name in ("_compact_fragments", "_build_segment") for how in ("raise", "kill")]
)
@pytest.mark.full
def test_failed_task_leaves_no_visible_change(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    graph = grown(tmp_path / "g", 3)
    before, head = content(graph), graph.snapshot.commit_id
    with monkeypatch.context() as patch:
        failing(patch, name, how)
        with pytest.raises(ServerError, match="Spark job") as told:
            graph.maintenance.optimize(engine="spark", spark=spark)
    assert told.value.effect == "none"
    assert ("the machine is gone" in str(told.value)) == (how == "raise")
    assert graph.refresh().snapshot.commit_id == head
    assert content(graph) == before
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    done = graph.maintenance.optimize(engine="spark", spark=spark)
    assert {one.type_key for one in done.datasets if one.committed} >= {"node:P", "edge:E"}
    assert content(graph) == before
    check_invariants(graph.uri)


@pytest.mark.full
def test_concurrent_writer_wins_over_optimize(spark: Any, tmp_path: Path) -> None:
    graph = grown(tmp_path / "g", 4)
    other = elsewhere(graph)
    with before_effect(graph, 4, lambda: other.update("P", where="k = 'k3'", set={"n": 77})):
        graph.maintenance.optimize(engine="spark", spark=spark)
    found = graph.refresh().query("match { $p: P  $p.n = 77 } return { $p.k as k }")
    assert [one["k"] for one in found] == ["k3"]
    graph.maintenance.optimize(engine="spark", spark=spark)
    check_invariants(graph.uri)


def test_invalid_options_are_rejected(spark: Any, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with pytest.raises(UsageError, match="auto, spark, local"):
        graph.maintenance.optimize(engine="dask")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown type 'Nobody'"):
        graph.maintenance.optimize(types=["Nobody"], engine="spark", spark=spark)
    assert not graph.maintenance.optimize(engine="spark", spark=spark), "an empty graph needs nothing"


def test_auto_uses_spark_only_for_large_work(monkeypatch: pytest.MonkeyPatch) -> None:
    given = object()
    assert engine_choice.choose_session("auto", given, lambda: False) is None
    assert engine_choice.choose_session("auto", given, lambda: True) is given
    assert engine_choice.choose_session("local", given, lambda: True) is None
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    assert engine_choice.choose_session("auto", None, lambda: True) is None, "without Spark it goes on"


def test_both_engines_find_the_same_damaged_files(spark: Any, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { name: String @key }", durability="os")
    for number in range(5):
        graph.insert("P", {"name": f"name number {number}"})
    sound = graph.maintenance.check(engine="spark", spark=spark)
    assert sound
    assert sound.read == graph.maintenance.check().read
    for path in sorted(Path(graph.uri, "nodes").rglob("data/*.lance"))[:2]:
        body = bytearray(path.read_bytes())
        body[20] ^= 1
        path.write_bytes(bytes(body))
    here, there = (
        graph.maintenance.check(sample=1.0),
        graph.maintenance.check(sample=1.0, engine="spark", spark=spark),
    )
    assert len(here.findings) >= 2
    assert [str(one) for one in there.findings] == [str(one) for one in here.findings]
