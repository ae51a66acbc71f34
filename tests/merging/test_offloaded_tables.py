"""Tables compared and written by another engine: the same merge as in one process.

Its tasks run in this process here, so that many situations can be tried; on Spark itself they run
in `tests/spark/test_merge.py`.
"""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.storage.find_rows import read_rows
from tests.merging.conftest import KEYS, Both, edge, person, stored
from tests.merging.in_process_spark_merge import Here, merged_by
from tests.merging.test_action_pairs import _prepared
from tests.merging.test_merged_rows import SCHEMA as ROWS_SCHEMA
from tests.merging.test_merged_rows import _forge
from tests.model.program_runner import hits, run
from tests.model.random_programs import Author
from tests.rig.depth import repeats

WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"granularity": "entity"},
    {"strategy": "ours"},
    {"strategy": "ours", "granularity": "entity"},
    {"strategy": "theirs", "collapse_edges": True},
)


def answers(found: Any) -> tuple[Any, ...]:
    """All that a merge says."""
    told = (found.outcome, found.conflicts, found.stats, found.parallel_edges, found.lost_edges, found.discarded)
    return (*told, found.to_arrow().to_pylist(), found.delta.to_arrow().to_pylist())


def row_ids(graph: Any) -> dict[str, dict[str, int]]:
    """The row id of every entity."""
    shown = graph.refresh().snapshot
    found = {key: read_rows(shown.table(key), ["id"], with_row_ids=True) for key in KEYS}
    return {
        key: dict(zip(rows["id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True)) for key, rows in found.items()
    }


def alike(both: Both, source: str, target: str, **how: Any) -> Any:
    """Try a merge on both engines: they say the same."""
    near = both.graph.merge(source, target, dry_run=True, engine="local", **how)
    with merged_by(Here()):
        far = both.graph.merge(source, target, dry_run=True, **how)
    assert answers(far) == answers(near)
    assert far.merged.plan.offloaded_tables, "no table was compared elsewhere"
    return far


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Two branches that did every pair of actions to some entity."""
    both = Both(tmp_path_factory.mktemp("far") / "graph")
    _prepared(both)
    return both


@pytest.mark.parametrize("way", [0, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 2)), 3])
def test_every_pair_of_actions_merges_as_in_one_process(pair: Both, way: int) -> None:
    how = WAYS[way]
    for source, target in (("dev", "main"), ("main", "dev")):
        if not alike(pair, source, target, **how):
            continue
        near, far = (f"{target}-{word}-{way}" for word in ("near", "far"))
        for name in (near, far):
            pair.fork(name, target)
        pair.graph.merge(source, near, engine="local", **how)
        with merged_by(Here()):
            pair.graph.merge(source, far, **how)
            assert pair.graph.merge(source, far, **how).outcome == "already_up_to_date"
        assert stored(pair.on(far)) == stored(pair.on(near))
        kept = row_ids(pair.on(target))
        for key, rows in row_ids(pair.on(far)).items():
            shared = rows.keys() & kept[key].keys()
            assert {one: rows[one] for one in shared} == {one: kept[key][one] for one in shared}
            assert len(set(rows.values())) == len(rows)


def test_merge_programs_run_as_in_one_process() -> None:
    hits.clear()
    with merged_by(Here()):
        for seed in range(12):
            run(Author(seed).program(10), whole=False)
    assert hits["merge"] > 10


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_many_merge_programs_run_as_in_one_process() -> None:
    with merged_by(Here()):
        for seed in range(2000, 2000 + repeats(80)):
            run(Author(seed).program(5 + seed % 21), whole=seed % 8 == 0)


def test_conflicts_of_rules_name_the_same_entities(both: Both) -> None:
    """Orphans both ways, unique values, numbers of edges; also of nodes that only one side had."""
    people = {one: person(one, mail=f"{one}@x") for one in "abcdef"}
    both.put("main", {"node:Person": people, "edge:Boss": {"b0": {"src": "a", "dst": "b"}}})
    both.put("main", {"edge:Knows": {f"k{n}": edge("a", one) for n, one in enumerate("bcd")}})
    both.fork("dev")
    both.drop("main", "node:Person", "c")
    both.put("main", {"edge:Knows": {"m": edge("b", "d")}})
    both.put("main", {"node:Person": {"x": person("x", mail="one")}})
    both.put("main", {"edge:Boss": {"b1": {"src": "e", "dst": "a"}}})
    both.drop("dev", "node:Person", "d")
    both.put("dev", {"edge:Knows": {"n": edge("c", "b"), "twin": edge("b", "a")}})
    both.put("main", {"edge:Knows": {"twin of it": edge("b", "a")}})
    both.put("dev", {"node:Person": {"y": person("y", mail="one")}})
    both.put("dev", {"edge:Boss": {"b2": {"src": "e", "dst": "b"}}})
    for source, target in (("dev", "main"), ("main", "dev")):
        kinds = {one.kind for one in alike(both, source, target).conflicts}
        assert kinds >= {"orphan_edge", "unique_violation", "cardinality_violation"}
        for side in ("ours", "theirs"):
            alike(both, source, target, strategy=side, collapse_edges=side == "theirs")
    assert alike(both, "dev", "main", strategy="ours").parallel_edges


VALUES = "node V { k: String @key  x: F64?  v: Vector(3)?  b: Blob?  t: [String]?  d: DateTime? }"


def _value(key: str, x: str, **more: Any) -> dict[str, Any]:
    data = {"k": key, "x": float(x), "v": [0.5, -0.0, 1.0], "b": "base64:AAE=", "t": ["", "a"]}
    return {"type": "V", "data": data | {"d": 5} | more}


def test_values_are_equal_if_their_bytes_are(tmp_path: Path) -> None:
    graph: Any = omnigraph.init(tmp_path / "g", VALUES, durability="os")
    graph.load([_value(f"n{at}", "0.0") for at in range(8)], mode="append")
    graph.branches.create("dev")
    dev = graph.checkout("dev")
    dev.load([_value("n0", "-0.0"), _value("n1", "0.0", v=[0.5, 0.0, 1.0])], mode="merge")
    dev.load([_value("n2", "0.0", b="base64:AAA="), _value("n3", "0.0", t=[])], mode="merge")
    dev.load([_value("n4", "0.0", d=None), _value("new", "1e300")], mode="merge")
    graph.load([_value("n0", "-0.0"), _value("n1", "1.0"), _value("n7", "2.0")], mode="merge")
    whole = {"granularity": "entity"}
    near = graph.merge("dev", dry_run=True, engine="local", **whole)
    graph.branches.create("near")
    graph.merge("dev", "near", strategy="theirs", engine="local", **whole)
    with merged_by(Here()):
        far = graph.merge("dev", dry_run=True, **whole)
        assert far.conflicts == near.conflicts
        assert [one.entity_id for one in far.conflicts] == ["n1"]
        assert graph.merge("dev", strategy="theirs", **whole).outcome == "merged"
    lines = [sorted(one.export()) for one in (graph.refresh(), graph.checkout("near"))]
    assert lines[0] == lines[1]


def test_rows_that_were_only_moved_are_no_changes(tmp_path: Path) -> None:
    graph: Any = omnigraph.init(tmp_path / "g", "node N { k: String @key  n: I32? }")
    for at in range(6):
        graph.load([{"type": "N", "data": {"k": f"{at}", "n": at}}], mode="append")
    graph.branches.create("dev")
    dev = graph.checkout("dev")
    dev.load([{"type": "N", "data": {"k": "3", "n": 33}}], mode="merge")
    dev.maintenance.optimize()
    graph.load([{"type": "N", "data": {"k": "5", "n": 55}}], mode="merge")
    graph.maintenance.optimize()
    with merged_by(Here()):
        found = graph.refresh().merge("dev")
    assert (found.stats["updates"], found.stats["inserts"]) == (1, 0)
    rows = graph.refresh().query("query q() { match { $n: N } return { $n.k, $n.n } }").to_dicts()
    assert {one["n.k"]: one["n.n"] for one in rows} == {
        "0": 0, "1": 1, "2": 2, "3": 33, "4": 4, "5": 55,
    }  # fmt: skip


def test_session_resolves_conflicts_found_by_another_engine(pair: Both) -> None:
    pair.fork("session")
    with merged_by(Here()):
        session = pair.graph.branches.merge_session("dev", "session")
        assert len(session.conflicts) > 50
        session.resolve_all("theirs", type="Note").resolve_all("ours")
        done = session.commit(message="by hand")
    assert done.outcome == "merged"
    assert done.stats["resolved"] == len(session.conflicts)


def test_edges_removed_by_different_sides_below_the_minimum_are_a_conflict(tmp_path: Path) -> None:
    graph: Any = omnigraph.init(
        tmp_path / "g", "node P { k: String @key }\nedge Has: P -> P @card(1..)", durability="os"
    )
    nodes = [{"type": "P", "data": {"k": one}} for one in "ab"]
    edges = [{"edge": "Has", "from": one, "to": "b", "data": {"id": f"{one}{n}"}}
             for one in "ab" for n in (1, 2)]  # fmt: skip
    graph.load([*nodes, *edges], mode="append")
    graph.branches.create("dev")
    graph.delete("Has", where="id = 'a1'")
    graph.checkout("dev").delete("Has", where="id = 'a2'")
    for side, stays in (("ours", "a2"), ("theirs", "a1")):
        graph.branches.create(side)
        with merged_by(Here()):
            found = graph.merge("dev", side, dry_run=True)
            assert [one.kind for one in found.conflicts] == ["cardinality_violation"]
            assert graph.merge("dev", side, strategy=side).outcome == "merged"
        rows = read_rows(graph.checkout(side).snapshot.table("edge:Has"), ["id"])["id"].to_pylist()
        assert sorted(rows) == [stays, "b1", "b2"]


def test_unvalidated_value_is_rejected(tmp_path: Path) -> None:
    graph: Any = omnigraph.init(tmp_path / "g", ROWS_SCHEMA, durability="os")
    graph.insert("Item", {"code": "a", "size": "s"})
    _forge(graph.branches.create("dev"), "node:Item", id="z", code="z", size="huge")
    graph.insert("Item", {"code": "b", "size": "m"})
    near = graph.merge("dev", dry_run=True, engine="local")
    with merged_by(Here()):
        far = graph.merge("dev", dry_run=True)
        assert graph.merge("dev", strategy="ours").outcome == "merged"
    assert far.conflicts == near.conflicts
    assert [one.kind for one in far.conflicts] == ["value_constraint_violation"]
    rows = read_rows(graph.refresh().snapshot.table("node:Item"), ["id"])["id"].to_pylist()
    assert sorted(rows) == ["a", "b"]


def test_branches_with_different_schemas_are_merged_in_this_process(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", "node Item { name: String @key  size: I32? }", durability="os")
    graph.insert("Item", {"name": "a", "size": 1}, {"name": "b"})
    dev = graph.branches.create("dev")
    dev.schema.apply("node Item { name: String @key  size: I64?  tag: String? }")
    dev.update("Item", where="name = $n", set={"size": 1 << 40, "tag": "t"}, n="b")
    graph.update("Item", where="name = $n", set={"size": 2}, n="a")
    near = graph.merge("dev", dry_run=True, engine="local")
    with merged_by(Here()):
        assert answers(graph.merge("dev", dry_run=True)) == answers(near)
        assert graph.merge("dev").outcome == "merged"
    rows = graph.query("match { $i: Item } return { $i.name, $i.size, $i.tag } order { $i.name }").to_records()
    assert [tuple(row) for row in rows] == [("a", 2, None), ("b", 1 << 40, "t")]
