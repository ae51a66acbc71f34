"""Notebook cards of diffs and conflicts: everything is escaped, and the card is bounded."""

import pytest

from omnigraph import Graph
from omnigraph.errors import MergeConflict
from omnigraph.errors.conflict_card import conflict_card
from omnigraph.errors.merge_conflict import EntityConflict


def test_diff_card_shows_old_and_new_values(graph: Graph) -> None:
    graph.upsert("Person", {"name": "<i>eve</i>", "city": "a < b", "photo": b"\x00" * 9})
    graph.delete("Person", where="name = 'bob'")
    card = graph.diff("v1")._repr_html_()
    assert "<i>" not in card
    assert "&lt;i&gt;eve&lt;/i&gt;" in card
    assert '<td class="u">~</td><td>Person</td><td>ada</td>' in card
    assert '<span class="d">1</span> <span class="i">9</span>' in card
    assert "9 bytes" in card
    assert '<td class="d">−</td><td>Person</td><td>bob</td>' in card
    assert card.count("<tr>") == 1 + 3


def test_diff_card_shows_zeros_and_endpoints(graph: Graph) -> None:
    graph.insert("Person", {"name": "zoe", "age": 0})
    graph.connect_nodes("Knows", [("zoe", "ada")])
    card = graph.diff("HEAD~2")._repr_html_()
    assert 'age: <span class="i">0</span>' in card
    assert 'from: <span class="i">zoe</span>; to: <span class="i">ada</span>' in card
    assert "src" not in card


def merge_conflicting_changes(graph: Graph) -> MergeConflict:
    side = graph.branches.create("side")
    side.update("Person", where="name = 'ada'", set={"city": "<b>Bonn</b>", "age": 3})
    side.delete("Person", where="name = 'bob'")
    graph.update("Person", where="name = 'ada'", set={"city": "Kiel"})
    graph.update("Person", where="name = 'bob'", set={"age": 40})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("side")
    return caught.value


def check_conflict_card(card: str) -> None:
    assert "<b>" not in card
    cells = '<td>Ulm</td><td class="o">Kiel</td><td class="t">&lt;b&gt;Bonn&lt;/b&gt;</td>'
    assert cells in card
    assert '<td class="t"><small>absent</small></td>' in card
    assert "delete_vs_update" in card
    assert "2 conflicts" in card


def test_conflict_card_shows_base_and_both_sides(graph: Graph) -> None:
    check_conflict_card(merge_conflicting_changes(graph)._repr_html_())
    check_conflict_card(graph.merge("side", dry_run=True)._repr_html_())


def test_card_of_a_preview_shows_its_changes(graph: Graph) -> None:
    merge_conflicting_changes(graph)
    check_conflict_card(graph.branches.merge_session("side")._repr_html_())
    decided = graph.merge("side", strategy="theirs", dry_run=True)
    assert '<span class="i">&lt;b&gt;Bonn' in decided._repr_html_()


def test_conflict_card_truncates_long_lists() -> None:
    many = [EntityConflict("node", "P" * 500, str(n), "divergent_update", "x" * 9000) for n in range(99)]
    card = conflict_card(many)
    assert "79 more not shown" in card
    assert len(card) < 20_000
