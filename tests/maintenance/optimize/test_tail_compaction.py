"""Tail compaction keeps tables of small writes compact without changing their content."""

import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.api.graph import Graph
from omnigraph.storage import tail_compaction
from omnigraph.storage.tail_compaction import due_fragment_count
from omnigraph.testing import graph as new_graph
from tests.evolve.test_concurrent_writers import before_effect, elsewhere

SCHEMA = "node P { k: String @key  n: I64? }\nedge E: P -> P { w: I64? }"
BRIEF = {"MIN_FRAGMENTS": 4, "MIN_INDEXED_ROWS": 8, "MAX_FRAGMENT_ROWS": 64}


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold and index so early that a short test sees all of it."""
    for name, value in BRIEF.items():
        monkeypatch.setattr(tail_compaction, name, value)


def sizes(graph: Graph, name: str = "P") -> list[int]:
    return [one.count_rows() for one in graph.table(name).get_fragments()]


def stored(graph: Graph, name: str = "P") -> dict[str, tuple[int, Any]]:
    """Row id and value of each row."""
    rows = graph.table(name).to_table(columns=["id", "n"], with_row_id=True).to_pylist()
    assert len({one["_rowid"] for one in rows}) == len(rows)
    return {one["id"]: (one["_rowid"], one["n"]) for one in rows}


def uncovered(graph: Graph, name: str = "P") -> int:
    """Rows that the index of ids does not cover."""
    dataset = graph.table(name)
    held = {
        number
        for one in dataset.describe_indices()
        if one.field_names == ["id"]
        for segment in one.segments
        for number in segment.fragment_ids
    }
    return sum(one.count_rows() for one in dataset.get_fragments() if one.fragment_id not in held)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=400))
@settings(deadline=None, max_examples=60)
def test_fragment_count_and_row_rewrites_are_bounded(writes: list[int]) -> None:
    held: list[tuple[int, int]] = []  # rows, and how often the one that moved most has moved
    for rows in writes:
        due = due_fragment_count([one for one, _ in held])
        if due:
            tail = held[-due:]
            held[-due:] = [(sum(n for n, _ in tail), 1 + max(moves for _, moves in tail))]
        held.append((rows, 0))
    assert len(held) <= tail_compaction.MIN_FRAGMENTS + 9
    assert max(moves for _, moves in held) <= 25


def test_single_inserts_leave_few_fragments_and_keep_every_row(eager: None) -> None:
    with new_graph(SCHEMA) as graph:
        before: dict[str, tuple[int, Any]] = {}
        for n in range(70):
            graph.insert("P", {"k": f"k{n}", "n": n})
            now = stored(graph)
            assert before.items() <= now.items(), "a row changed or lost its row id"
            before = now
        assert [n for _, n in before.values()] == list(range(70)), "rows keep their order"
        assert len(sizes(graph)) <= BRIEF["MIN_FRAGMENTS"] + 5
        assert uncovered(graph) < 2 * BRIEF["MIN_INDEXED_ROWS"] + BRIEF["MIN_FRAGMENTS"]
        assert len(graph.log()) == 71, "a fold is no commit of its own"


def test_table_version_size_does_not_grow_with_rows(eager: None) -> None:
    with new_graph(SCHEMA) as graph:
        for n in range(64):
            graph.insert("P", {"k": f"k{n}", "n": n})
        facts = [one.metadata.to_json() for one in graph.table("P").get_fragments()]
        folded = [one for one in facts if one["physical_rows"] > 1]
        assert folded
        assert all(len(str(one["created_at_version_meta"])) < 100 for one in folded)


def test_fragments_covered_by_indexes_are_compacted(eager: None) -> None:
    with new_graph(SCHEMA) as graph:
        for n in range(12):
            graph.insert("P", {"k": f"k{n}", "n": n})
            graph.maintenance.ensure_indices()
        assert [n for _, n in stored(graph).values()] == list(range(12))
        assert len(sizes(graph)) < 8
        graph.maintenance.optimize()
        assert (sizes(graph), uncovered(graph)) == ([12], 0)


def test_substrings_are_found_while_the_index_lags(eager: None) -> None:
    schema = "node P { k: String @key  n: I64?  w: String?  @index(w, kind=ngram) }"
    with new_graph(schema) as graph:
        for n in range(40):
            graph.insert("P", {"k": f"k{n}", "n": n, "w": f"word{n % 7} text"})
            if n % 9 == 3:
                graph.maintenance.ensure_indices()
            found = graph.table("P").to_table(filter="contains(w, 'word3')", columns=["n"])
            assert sorted(found["n"].to_pylist()) == list(range(3, n + 1, 7))
        graph.maintenance.optimize()
        assert (sizes(graph), uncovered(graph)) == ([40], 0)
        found = graph.table("P").to_table(filter="contains(w, 'word3')", columns=["n"])
        assert sorted(found["n"].to_pylist()) == list(range(3, 40, 7))


def test_diff_of_a_compacting_commit_shows_only_its_row(eager: None) -> None:
    with new_graph(SCHEMA) as graph:
        heads: list[Any] = [graph.snapshot.commit_id]
        heads += [graph.insert("P", {"k": f"k{n}", "n": n}).commit_id for n in range(20)]
        for n, (old, new) in enumerate(pairwise(heads)):
            changed = list(graph.diff(old, new))
            assert [one.id for one in changed] == [f"k{n}"], changed
        assert len(stored(graph.at(heads[9]))) == 9


def test_updates_deletes_and_upserts_equal_a_model(eager: None) -> None:
    chance, model = random.Random(7), dict[str, int]()
    with new_graph(SCHEMA) as graph:
        for n in range(120):
            key, what = f"k{chance.randrange(30)}", chance.random()
            if what < 0.6:
                graph.upsert("P", {"k": key, "n": n})
                model[key] = n
            elif what < 0.8 and key in model:
                graph.update("P", where="k = $k", set={"n": -n}, k=key)
                model[key] = -n
            elif key in model:
                graph.delete("P", where="k = $k", k=key)
                del model[key]
            found = graph.query("match { $p: P } return { $p.k as k, $p.n as n }")
            assert {one["k"]: one["n"] for one in found} == model
            assert stored(graph).keys() == model.keys()
        assert len(sizes(graph)) <= BRIEF["MIN_FRAGMENTS"] + 8


MEANWHILE: dict[str, Callable[[Graph], object]] = {
    "insert": lambda g: g.insert("P", {"k": "other", "n": -1}),
    "update of the tail": lambda g: g.update("P", where="k = $k", set={"n": -1}, k="k2"),
    "delete of the tail": lambda g: g.delete("P", where="k = $k", k="k2"),
    "optimize": lambda g: g.maintenance.ensure_indices(),
}


@pytest.mark.parametrize("what", MEANWHILE)
@pytest.mark.parametrize("when", [(2, 5), pytest.param((1, 3, 4, 6), marks=pytest.mark.full)])
def test_tail_compaction_yields_to_concurrent_writes(eager: None, what: str, when: tuple[int, ...]) -> None:
    for number in when:
        with new_graph(SCHEMA) as graph:
            for n in range(4):
                graph.insert("P", {"k": f"k{n}", "n": n})
            with before_effect(graph, number, partial(MEANWHILE[what], elsewhere(graph))):
                graph.insert("P", {"k": "new", "n": 9})
            with new_graph(SCHEMA) as plain:
                for n in range(4):
                    plain.insert("P", {"k": f"k{n}", "n": n})
                MEANWHILE[what](plain)
                plain.insert("P", {"k": "new", "n": 9})
                graph.refresh()
                expected = {key: n for key, (_, n) in stored(plain).items()}
                assert {key: n for key, (_, n) in stored(graph).items()} == expected


def test_tail_compaction_is_not_retried(eager: None) -> None:
    with new_graph(SCHEMA) as graph:
        for n in range(4):
            graph.insert("P", {"k": f"k{n}", "n": n})
        other = partial(elsewhere(graph).insert, "P", {"k": "other", "n": -1})
        with graph._handle.store.effects.recording() as seen, before_effect(graph, 5, other):
            graph.insert("P", {"k": "new", "n": 9})
        first = ["stage", "stage", "detach", "detach", "state"]
        assert [one.kind for one in seen] == [*first, "detach", "state", "publish"]
        assert sizes(graph) == [4, 1, 1], "the other has folded"


def test_edges_are_found_by_endpoint_at_any_index_coverage(eager: None) -> None:
    with new_graph(SCHEMA) as graph:
        graph.insert("P", *({"k": f"k{n}"} for n in range(5)))
        for n in range(40):
            graph.connect_nodes("E", [(f"k{n % 5}", f"k{(n + 1) % 5}", {"w": n})])
        columns = {one.field_names[0] for one in graph.table("E").describe_indices()}
        assert columns == {"id", "src", "dst"}
        found = graph.query('match { $a: P { k: "k1" } $a e $b } return { $b.k as k }')
        assert {one["k"] for one in found} == {"k2"}
        graph.delete("P", where="k = $k", k="k1")
        assert len(graph.table("E").to_table()) == 24
