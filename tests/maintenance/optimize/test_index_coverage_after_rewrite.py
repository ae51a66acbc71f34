"""Indexes over rewritten fragments never cover fragments they have not read."""

import pytest

from omnigraph.api.graph import Graph
from omnigraph.storage import tail_compaction
from omnigraph.testing import graph as new_graph
from tests.maintenance.optimize.test_tail_compaction import BRIEF

SCHEMA = "node P { k: String @key  n: I64?  w: String?  @index(w, kind=ngram) }"


def covered_late(graph: Graph) -> None:
    """Many rows that no index covers, and behind them some that a write has folded and indexed."""
    graph.load({"P": [{"k": f"old{n}", "n": n, "w": "ancient"} for n in range(200)]}, mode="append")
    for n in range(14):
        graph.insert("P", {"k": f"new{n}", "n": n, "w": "recent"})


def count(graph: Graph, word: str) -> int:
    return len(graph.query(f'match {{ $p: P  $p.w contains "{word}" }} return {{ $p.k }}'))


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BRIEF.items():
        monkeypatch.setattr(tail_compaction, name, value)
    monkeypatch.setattr("omnigraph.engine.operators.scan.hot_rows", lambda *_: None)


def held(graph: Graph) -> bool:
    return any(one.field_names == ["w"] for one in graph.table("P").describe_indices())


def test_every_row_is_found_at_every_commit_after_an_erase() -> None:
    with new_graph(SCHEMA) as graph:
        covered_late(graph)
        assert held(graph), "a write has indexed what it folded"
        graph.delete("P", where="k = 'new2'")
        before = len(graph.log())
        graph.maintenance.cleanup(keep=100, confirm=True, erase=True)
        commits = [one.id for one in graph.refresh().log()]
        assert len(commits) > before
        for one in commits[: len(commits) - before + 1]:
            assert (count(graph.at(one), "ancient"), count(graph.at(one), "recent")) == (200, 13)
        assert held(graph), "what had an index has one again"


def test_an_optimize_keeps_answers_and_coverage() -> None:
    with new_graph(SCHEMA) as graph:
        covered_late(graph)
        graph.delete("P", where="k = 'new2'")
        graph.maintenance.optimize()
        assert (count(graph, "ancient"), count(graph, "recent")) == (200, 13)
        (index,) = (one for one in graph.table("P").describe_indices() if one.field_names == ["w"])
        present = {one.fragment_id for one in graph.table("P").get_fragments()}
        assert [set(one.fragment_ids) for one in index.segments] == [present]


def test_deleted_last_row_is_in_no_index() -> None:
    schema = "node P { k: String @key  v: Vector(2)? @index }"
    with new_graph(schema, {"P": [{"k": "person-77", "v": [1.0, 2.0]}]}) as graph:
        graph.maintenance.ensure_indices()
        graph.delete("P", where="k = 'person-77'")
        graph.maintenance.cleanup(keep=1, grace=0, confirm=True, erase=True)
        assert graph.maintenance.check_absent("P", "person-77").traces == ()
        assert graph.refresh().table("P").describe_indices() == []
