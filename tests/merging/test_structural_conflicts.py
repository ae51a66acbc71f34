"""Conflicts that no single row shows, in both directions, and the effect of choosing a side."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.merging.conftest import Both, edge, person

Act = Callable[[Both, str], None]


def _delete_node(both: Both, branch: str) -> None:
    both.drop(branch, "node:Person", "a")


def _add_edge(both: Both, branch: str) -> None:
    both.put(branch, {"edge:Knows": {"k": edge("a", "b")}})


def _move_edge(both: Both, branch: str) -> None:
    both.put(branch, {"edge:Knows": {"old": edge("c", "a")}})


def _mail_x(both: Both, branch: str) -> None:
    both.put(branch, {"node:Person": {"x": person("x", mail="m")}})


def _mail_y(both: Both, branch: str) -> None:
    both.put(branch, {"node:Person": {"y": person("y", mail="m")}})


def _mail_b(both: Both, branch: str) -> None:
    both.put(branch, {"node:Person": {"b": person("b", mail="m")}})


def _boss_b(both: Both, branch: str) -> None:
    both.put(branch, {"edge:Boss": {"b1": {"src": "a", "dst": "b"}}})


def _boss_c(both: Both, branch: str) -> None:
    both.put(branch, {"edge:Boss": {"b2": {"src": "a", "dst": "c"}}})


def _boss_moved(both: Both, branch: str) -> None:
    both.put(branch, {"edge:Boss": {"b0": {"src": "a", "dst": "b"}}})


CASES: dict[str, tuple[Act, Act, str]] = {
    "a node goes, an edge comes": (_delete_node, _add_edge, "orphan_edge"),
    "a node goes, an edge is moved to it": (_delete_node, _move_edge, "orphan_edge"),
    "one value, two new holders": (_mail_x, _mail_y, "unique_violation"),
    "one value, a new and an old holder": (_mail_x, _mail_b, "unique_violation"),
    "two edges where one is allowed": (_boss_b, _boss_c, "cardinality_violation"),
    "an edge moved to where one comes": (_boss_moved, _boss_c, "cardinality_violation"),
}


@pytest.fixture
def prepared(both: Both) -> Both:
    """Three people, an edge, and a branch."""
    people: Any = {"node:Person": {one: person(one) for one in "abcd"}}
    edges = {"edge:Knows": {"old": edge("c", "d")}, "edge:Boss": {"b0": {"src": "d", "dst": "b"}}}
    both.put("main", {**people, **edges})
    both.fork("dev")
    return both


@pytest.mark.parametrize("turned", [False, True], ids=["here", "there"])
@pytest.mark.parametrize("name", CASES)
def test_rule_broken_only_by_both_sides_together_is_a_conflict(prepared: Both, name: str, turned: bool) -> None:
    one, other, kind = CASES[name]
    mine, theirs = (other, one) if turned else (one, other)
    mine(prepared, "main")
    theirs(prepared, "dev")
    versions = {b: prepared.on(b).snapshot.manifest_version for b in ("main", "dev")}
    assert prepared.merge("dev") == "conflict"
    found = prepared.graph.merge("dev", dry_run=True).conflicts
    assert {c.kind for c in found} == {kind}
    assert prepared.graph.checkout("main").snapshot.manifest_version == versions["main"]
    for side in ("theirs",) if turned else ("ours", "theirs"):
        prepared.fork(side)
        assert prepared.merge("dev", side, side) == "merged"


def test_deleted_node_cascades_to_edges_of_its_side_only(prepared: Both) -> None:
    """Edges that a deletion took along are changes of that side; they meet changes of the other."""
    prepared.put("main", {"edge:Knows": {"old": edge("c", "d", 5)}})
    prepared.drop("dev", "node:Person", "c")
    assert prepared.merge("dev") == "conflict"
    found = prepared.graph.merge("dev", dry_run=True).conflicts
    assert [(c.kind, c.entity_id) for c in found] == [("delete_vs_update", "old"), ("orphan_edge", "old")]


def test_edges_deleted_with_a_node_stay_deleted(prepared: Both) -> None:
    prepared.drop("main", "node:Person", "c")
    prepared.put("dev", {"edge:Knows": {"new": edge("a", "b")}})
    assert prepared.merge("dev") == "merged"
    assert prepared.merge("main", "dev") == "fast_forward"
    prepared.check("main", "dev")


def test_edges_added_on_both_sides_do_not_conflict(prepared: Both) -> None:
    prepared.put("main", {"edge:Knows": {"m": edge("a", "b")}})
    prepared.put("dev", {"edge:Knows": {"n": edge("a", "b", 1)}})
    assert prepared.merge("dev") == "merged"


def test_a_value_that_one_side_frees_may_be_used_by_the_other(prepared: Both) -> None:
    prepared.put("main", {"node:Person": {"a": person("a", mail="m")}})
    prepared.merge("main", "dev")
    prepared.put("main", {"node:Person": {"a": person("a", 1, mail="n")}})
    prepared.put("dev", {"node:Person": {"z": person("z")}})
    assert prepared.merge("dev") == "merged"


def test_conflicts_of_all_tables_are_reported_together(prepared: Both) -> None:
    for branch, at in (("main", 1), ("dev", 2)):
        rows: Any = {"node:Person": {"b": person("b", at)}, "edge:Knows": {"old": edge("c", "d", at)}}
        prepared.put(branch, rows)
    prepared.put("main", {"edge:Boss": {"b1": {"src": "a", "dst": "b"}}})
    prepared.put("dev", {"edge:Boss": {"b2": {"src": "a", "dst": "c"}}})
    assert prepared.merge("dev") == "conflict"
    found = prepared.graph.merge("dev", dry_run=True).conflicts
    assert [(c.type_name, c.kind) for c in found] == [
        ("Person", "divergent_update"),
        ("Boss", "cardinality_violation"),
        ("Knows", "divergent_update"),
    ]
