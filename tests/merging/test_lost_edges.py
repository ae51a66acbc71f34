"""A node kept against its deletion does not get its edges back; the merge reports them."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from tests.merging.conftest import Both, edge, person, stored


@pytest.fixture
def prepared(both: Both) -> Both:
    """Four people who know one another, a note, and a branch."""
    people: Any = {one: person(one, 0) for one in "abcd"}
    knows = {"ab": edge("a", "b"), "bc": edge("b", "c"), "cd": edge("c", "d"), "ca": edge("c", "a")}
    rows: Any = {"node:Person": people, "edge:Knows": knows, "node:Note": {"n": {"p": 1, "q": None}}}
    both.put("main", {**rows, "edge:About": {"nb": edge("n", "b")}})
    both.fork("dev")
    return both


def _lost(found: Any) -> list[tuple[str, ...]]:
    return [(one.key, one.id, one.node, one.side) for one in found.lost_edges]


@pytest.mark.parametrize("turned", [False, True], ids=["here", "there"])
def test_lost_edges_of_a_kept_node_are_reported(prepared: Both, turned: bool) -> None:
    gone, kept = ("dev", "main") if turned else ("main", "dev")
    prepared.drop(gone, "node:Person", "b", "d")
    prepared.put(kept, {"node:Person": {"b": person("b", 9)}})
    side, other = ("ours", "theirs") if turned else ("theirs", "ours")
    deleted_on = "theirs" if turned else "ours"
    assert prepared.graph.merge("dev", dry_run=True).lost_edges == ()
    assert prepared.graph.merge("dev", dry_run=True, strategy=other).lost_edges == ()
    tried = prepared.graph.merge("dev", dry_run=True, strategy=side)
    done = prepared.graph.merge("dev", strategy=side)
    wanted = [
        ("edge:About", "nb", "b", deleted_on),
        ("edge:Knows", "ab", "b", deleted_on),
        ("edge:Knows", "bc", "b", deleted_on),
    ]
    assert _lost(tried) == _lost(done) == wanted
    assert str(done.lost_edges[0]) == "About 'nb' (n -> b) was deleted along with 'b'"
    assert done.stats["lost_edges"] == done.commit.details["lost_edges"] == 3
    rows = stored(prepared.on("main"))
    assert [*rows["edge:Knows"], *rows["edge:About"]] == ["ca"]


def test_text_of_a_merge_counts_its_lost_edges(prepared: Both) -> None:
    prepared.drop("main", "node:Person", "b", "d")
    prepared.put("dev", {"node:Person": {"b": person("b", 9)}})
    plain = prepared.graph.merge("dev", dry_run=True, strategy="ours")
    assert "lost" not in repr(plain) + plain._repr_html_()
    merges = [
        prepared.graph.merge("dev", dry_run=dry_run, strategy="theirs", idempotency_key=key)
        for dry_run, key in ((True, None), (False, "once"), (False, "once"))
    ]
    assert [", 3 edges lost" in repr(merge) for merge in merges] == [True] * 3
    assert [", 3 edges lost" in merge._repr_html_() for merge in merges[:2]] == [True] * 2


def test_edges_removed_by_both_sides_or_resolved_are_not_lost(prepared: Both) -> None:
    prepared.drop("main", "node:Person", "b")
    prepared.put("dev", {"node:Person": {"b": person("b", 9)}})
    prepared.drop("dev", "edge:Knows", "ab")
    prepared.put("dev", {"edge:Knows": {"bc": edge("b", "c", 5)}})
    session = prepared.graph.branches.merge_session("dev").resolve_all("theirs", type="Person")
    session.resolve_all("ours", type="Knows")
    assert _lost(session.preview()) == [("edge:About", "nb", "b", "ours")]
    assert _lost(session.commit()) == [("edge:About", "nb", "b", "ours")]


def test_node_restored_for_an_edge_does_not_restore_its_edges(prepared: Both) -> None:
    prepared.drop("main", "node:Person", "b")
    prepared.put("dev", {"edge:Knows": {"new": edge("a", "b")}})
    done = prepared.graph.merge("dev", strategy="theirs")
    assert [one.id for one in done.lost_edges] == ["nb", "ab", "bc"]
    assert sorted(stored(prepared.on("main"))["edge:Knows"]) == ["ca", "cd", "new"]


def test_edges_to_a_deleted_endpoint_are_not_lost(prepared: Both) -> None:
    prepared.drop("main", "node:Person", "b", "c")
    prepared.put("dev", {"node:Person": {"b": person("b", 9)}})
    done = prepared.graph.merge("dev", strategy="theirs")
    assert [one.id for one in done.lost_edges] == ["nb", "ab"]


LED = """
node Person { name: String @key }
node Team { name: String @key  size: I64? }
edge Leads: Person -> Team @card(1..2)
"""


def test_resolved_edge_is_not_lost(tmp_path: Path) -> None:
    """Without either edge nobody leads anything: the side that is chosen brings its own back."""
    graph = omnigraph.init(tmp_path / "g", LED, durability="os")
    with graph.transaction() as tx:
        tx.insert("Person", {"name": "ada"})
        tx.insert("Team", {"name": "red"}, {"name": "blue"})
        tx.connect_nodes("Leads", [("ada", "red", {}), ("ada", "blue", {})])
    dev = graph.branches.create("dev")
    dev.update("Team", where="name = 'red'", set={"size": 3})
    dev.delete("Leads", where="to = 'blue'")
    graph.delete("Team", where="name = 'red'")
    tried = graph.merge("dev", dry_run=True)
    assert [one.kind for one in tried.conflicts] == ["delete_vs_update", "cardinality_violation"]
    done = graph.merge("dev", strategy="theirs")
    assert done.lost_edges == ()
    assert graph.edges("Leads").count() == 1
