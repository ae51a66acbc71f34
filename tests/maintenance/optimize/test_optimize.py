"""Optimize compacts tables and covers indexes; beside writers it yields and retries."""

from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError, ReadOnlyError, StorageError, UsageError
from omnigraph.storage import compact, tail_compaction
from omnigraph.storage.effects import Fault
from omnigraph.storage.find_rows import read_rows
from omnigraph.storage.table import open_table
from omnigraph.testing import graph as new_graph
from omnigraph.values.table_key import TableKey
from tests.evolve.test_concurrent_writers import before_effect, elsewhere
from tests.maintenance.optimize.test_tail_compaction import sizes, stored, uncovered

SCHEMA = """
node P { k: String @key  n: I64? @index }
node Q { k: String @key  v: Vector(2)? @index }
node Doc { k: String @key  b: Blob? }
edge E: P -> P
"""


@pytest.fixture(autouse=True)
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes leave their tails to optimize."""
    monkeypatch.setattr(tail_compaction, "MIN_FRAGMENTS", 1 << 20)


def filled(graph: Graph, count: int = 6) -> dict[str, tuple[int, Any]]:
    for n in range(count):
        graph.insert("P", {"k": f"k{n}", "n": n})
    return stored(graph)


def _place(graph: Graph, key: str) -> tuple[str, int]:
    entry = graph.snapshot.tables[TableKey(key)]
    return entry.location, entry.lance_version


def rows_of(done: Any) -> dict[str, Any]:
    return {one.type_key: one for one in done.datasets}


def test_a_table_becomes_one_fragment_in_one_commit_that_changes_nothing() -> None:
    with new_graph(SCHEMA) as graph:
        before, head = filled(graph), graph.snapshot.commit_id
        reader = graph.at(head)
        done = graph.maintenance.optimize()
        assert (sizes(graph), uncovered(graph)) == ([6], 0)
        assert stored(graph) == before == stored(reader)
        assert not list(graph.diff(head, graph.snapshot.commit_id))
        [commit] = done.commits
        assert (commit.actor, commit.operation) == ("omnigraph:maintenance", "optimize")
        row = rows_of(done)["node:P"].to_json()
        assert row.pop("bytes_before") > row.pop("bytes_after") > 0
        assert row == {
            "type_key": "node:P",
            "fragments_removed": 6,
            "fragments_added": 1,
            "committed": True,
            "skipped": None,
            "manifest_version": None,
            "lance_head_version": None,
            "pending_indexes": [],
            "error": None,
            "remaining_bytes": 0,
        }
        with graph._handle.store.effects.recording() as did:
            again = graph.maintenance.optimize()
        assert (bool(again), did) == (False, []), "nothing is even begun"
        assert not any(one.committed for one in again.datasets)


def test_several_tables_are_one_commit_and_types_can_be_chosen() -> None:
    with new_graph(SCHEMA) as graph:
        filled(graph)
        for n in range(4):
            graph.connect_nodes("E", [(f"k{n}", "k0")])
        only = graph.maintenance.optimize(types=["E"])
        assert [one.type_key for one in only.datasets] == ["edge:E"]
        assert (sizes(graph, "E"), len(sizes(graph))) == ([4], 6)
        filled_again = [graph.insert("Q", {"k": f"q{n}"}) for n in range(3)]
        assert filled_again
        done = graph.maintenance.optimize()
        assert len(done.commits) == 1
        assert {key for key, one in rows_of(done).items() if one.committed} == {"node:P", "node:Q"}
        pending = rows_of(done)["node:Q"].to_json()["pending_indexes"]
        assert [(one["type_key"], one["property"]) for one in pending] in ([], [("node:Q", "v")])


def test_optimize_of_a_compact_table_only_covers_indexes() -> None:
    with new_graph(SCHEMA, {"P": [{"k": f"k{n}", "n": n} for n in range(50)]}) as graph:
        row = rows_of(graph.maintenance.optimize())["node:P"]
        assert (row.committed, row.fragments_removed, row.fragments_added) == (True, 0, 0)
        assert uncovered(graph) == 0


def test_rows_after_the_index_are_covered_and_nothing_else_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "TARGET_ROWS", 10)  # what has so many rows is large enough
    with new_graph(SCHEMA, {"P": [{"k": f"k{n}", "n": n} for n in range(20)]}) as graph:
        graph.maintenance.ensure_indices()
        graph.load({"P": [{"k": f"m{n}", "n": n} for n in range(20)]}, mode="append")
        assert uncovered(graph) == 20
        row = rows_of(graph.maintenance.optimize())["node:P"]
        assert (row.committed, row.fragments_removed, row.fragments_added) == (True, 0, 0)
        assert (sizes(graph), uncovered(graph)) == ([20, 20], 0)


def test_blobs_survive() -> None:
    values = {"none": None, "empty": b"", "small": b"x" * 10, "large": b"y" * 3_000_000}
    with new_graph(SCHEMA) as graph:
        for key, value in values.items():
            graph.insert("Doc", {"k": key, "b": value})
        graph.maintenance.optimize()
        assert sizes(graph, "Doc") == [4]
        table = open_table(graph._handle.store, *_place(graph, "node:Doc"))
        found = read_rows(table, ["k", "b"]).to_pylist()
        assert {one["k"]: one["b"] for one in found} == values


def test_deleted_rows_are_compacted_away() -> None:
    with new_graph(SCHEMA, {"P": [{"k": f"k{n}", "n": n} for n in range(20)]}) as graph:
        graph.delete("P", where="n < 10")
        graph.maintenance.optimize()
        [one] = graph.table("P").get_fragments()
        assert (one.physical_rows, one.metadata.deletion_file) == (10, None)


def test_few_deleted_rows_are_not_compacted() -> None:
    with new_graph(SCHEMA, {"P": [{"k": f"k{n}", "n": n} for n in range(40)]}) as graph:
        graph.maintenance.ensure_indices()
        graph.delete("P", where="n < 2")
        assert not graph.maintenance.optimize()
        assert len(stored(graph)) == 38


def test_handle_opened_before_optimize_can_update() -> None:
    with new_graph(SCHEMA) as graph:
        filled(graph)
        elsewhere(graph).maintenance.optimize()
        graph.update("P", where="k = $k", set={"n": 99}, k="k3")
        assert stored(graph)["k3"][1] == 99


@pytest.mark.parametrize("number", [1, 4, 7, 8])
def test_optimize_never_undoes_writes(number: int) -> None:
    with new_graph(SCHEMA) as graph:
        filled(graph)
        other = elsewhere(graph)

        def meanwhile() -> None:
            other.update("P", where="k = $k", set={"n": 99}, k="k3")
            other.delete("P", where="k = $k", k="k1")
            other.insert("P", {"k": "new", "n": 7})

        with before_effect(graph, number, meanwhile):
            graph.maintenance.optimize()
        graph.refresh()
        expected = {"k0": 0, "k2": 2, "k3": 99, "k4": 4, "k5": 5, "new": 7}
        assert {key: n for key, (_, n) in stored(graph).items()} == expected
        graph.maintenance.optimize()
        assert {key: n for key, (_, n) in stored(graph).items()} == expected
        assert (sizes(graph), uncovered(graph)) == ([6], 0)


def test_second_concurrent_optimize_has_nothing_to_do() -> None:
    with new_graph(SCHEMA) as graph:
        filled(graph)
        with before_effect(graph, 7, elsewhere(graph).maintenance.optimize):
            assert not graph.maintenance.optimize()
        assert sizes(graph.refresh()) == [6]


def test_optimize_lands_beside_a_constant_writer() -> None:
    with new_graph(SCHEMA) as graph:
        filled(graph)
        other, count = elsewhere(graph), [0]
        effects = graph._handle.store.effects
        real = effects.run

        def run(kind: Any, target: str, action: Any) -> Any:
            if kind == "state" and count[0] < 4:
                count[0] += 1
                other.refresh()
                other.update("P", where="k = $k", set={"n": 100 + count[0]}, k="k5")
            return real(kind, target, action)

        effects.run = run  # type: ignore[method-assign]
        try:
            done = graph.maintenance.optimize()
        finally:
            del effects.run
        assert done
        assert stored(graph.refresh())["k5"][1] == 104
        assert rows_of(done)["node:P"].committed


def test_invalid_options_are_rejected() -> None:
    with new_graph(SCHEMA) as graph:
        with pytest.raises(InputError, match="unknown type 'Nobody'"):
            graph.maintenance.optimize(types=["Nobody"])
        with pytest.raises(UsageError, match="expected one of auto, spark, local"):
            graph.maintenance.optimize(engine="dask")  # type: ignore[arg-type]
        with pytest.raises(ReadOnlyError):
            omnigraph.open(graph.uri, read_only=True).maintenance.optimize()
        assert not graph.maintenance.optimize(), "an empty graph needs nothing"


@pytest.mark.parametrize("verb", ["optimize", "ensure_indices"])
def test_store_failure_is_reported(verb: str) -> None:
    with new_graph(SCHEMA) as graph:
        filled(graph, 2)
        head = graph.snapshot.commit_id
        with (
            graph._handle.store.effects.failing(Fault(1, "before")),
            pytest.raises(StorageError, match="injected fault") as told,
        ):
            getattr(graph.maintenance, verb)()
        assert told.value.effect == "none"
        assert graph.refresh().snapshot.commit_id == head
