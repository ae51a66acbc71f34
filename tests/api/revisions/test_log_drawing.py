"""The drawn log: the same commits always produce the same text and SVG."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph import Graph
from omnigraph.api.commit_lanes import assign_lanes, draw_rows
from omnigraph.api.results.commit_log import CommitLog
from omnigraph.history.commit import Commit
from omnigraph.values import clock_and_ids
from tests.api.revisions.conftest import SCHEMA, START
from tests.rig.graph_hosts import GraphHost, act_as

CASES = Path(__file__).parents[2] / "cases" / "travel"


@pytest.fixture
def braided(graphs: GraphHost) -> Iterator[Graph]:
    """Three branches and two merges, with a tag, and a message that is no HTML."""
    with clock_and_ids.deterministic_ids(START, seed=7) as clock:
        graph = graphs.init(SCHEMA, actor="ann")

        def add(there: Graph, name: str, *, actor: str = "ann", message: str | None = None) -> None:
            clock.advance(hours=1)
            act_as(there, actor).insert("Person", {"name": name}, message=message)

        add(graph, "ada", message="the first")
        one, two = graph.branches.create("review/one"), graph.branches.create("two")
        add(one, "bob", message="<b>bold</b> & co", actor="bob")
        add(two, "cy")
        add(graph, "dan", message="meanwhile")
        clock.advance(hours=1)
        graph.merge("review/one", message="one is good")
        graph.tag("v1")
        add(two, "eve", actor="eve")
        add(graph, "fay")
        clock.advance(hours=1)
        graph.merge("two", message="two as well")
        add(one, "gus", message="goes on")
        yield graph.refresh()


def anonymous(text: str) -> str:
    """The text with ids as numbers, in the order in which they appear."""
    seen: dict[str, str] = {}
    return re.sub("[0-9A-Z]{26}", lambda m: seen.setdefault(m[0], f"id{len(seen):02}"), text)


def test_ascii_drawing_is_text_in_a_notebook(braided: Graph) -> None:
    drawing = braided.log(all=True).draw(ascii=True)
    assert str(drawing).isascii()
    assert (drawing.text(ascii=False).isascii(), braided.log().draw().text().isascii()) == (False, False)
    html = drawing._repr_html_()
    assert html.startswith("<pre>* ")
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; co" in html


def test_text_drawing_matches_the_golden_file(braided: Graph) -> None:
    told = f"{braided.log().draw()}\n---\n{braided.log(all=True).draw().text(ascii=True)}\n"
    told += f"---\n{braided.log(limit=4).draw(limit=3)}\n"
    assert anonymous(told) == (CASES / "log.txt").read_text()


def test_svg_drawing_matches_the_golden_file(braided: Graph) -> None:
    svg = braided.log(all=True).draw().svg
    assert anonymous(f"{svg}\n") == (CASES / "log.svg").read_text()
    ElementTree.fromstring(svg)
    assert "<b>" not in svg
    assert braided.log(all=True)._repr_html_().count("<circle") == len(braided.log(all=True))


def test_a_log_is_a_list_with_a_table(braided: Graph) -> None:
    log = braided.log()
    assert log == list(log)
    assert log.to_arrow().num_rows == len(log)
    assert str(CommitLog().draw()) == ""
    only = braided.log(actor="bob")
    assert [one.actor for one in only] == ["bob"]
    assert str(only.draw()).startswith("●  ")


@st.composite
def histories(draw: st.DrawFn) -> list[Commit]:
    """Commits, newest first, each on one or two of those before it."""
    made: list[Commit] = []
    for number in range(draw(st.integers(1, 12))):
        before = [one.id for one in made]
        some = st.lists(st.sampled_from(before), min_size=1, max_size=2, unique=True)
        parents = tuple(draw(some)) if before else ()
        made.append(Commit(f"c{number}", parents, "load", "main", number, number, number))
    return made[::-1]


@given(histories())
def test_every_commit_is_drawn_once_with_edges_to_its_parents(log: list[Commit]) -> None:
    placed = assign_lanes(log)
    lane_of = {one.commit.id: one.lane for one in placed}
    drawn = list(draw_rows(placed))
    assert [commit.id for _, commit in drawn if commit is not None] == [one.id for one in log]
    for line, commit in drawn:
        if commit is not None:
            assert line.index("●") == 2 * lane_of[commit.id]
    for at, one in enumerate(placed):
        assert [parent for parent, _ in one.parent_lanes] == list(one.commit.parents)
        for parent, way in one.parent_lanes:
            # The lane is kept for the edge down to the row in which the parent stands.
            below = next(n for n, other in enumerate(placed) if other.commit.id == parent)
            for other in placed[at + 1 : below]:
                assert way in other.lanes_above
                assert way != other.lane
            assert way in (placed[below].lane, *placed[below].joined_lanes)
    for one, below_it in pairwise(placed):
        ends = {one.lane, *one.joined_lanes}
        used = ({*one.lanes_above} - ends) | {way for _, way in one.parent_lanes}
        assert {*below_it.lanes_above} == used | {below_it.lane}


def test_dag_maps_each_commit_to_the_parents_in_the_log(braided: Graph) -> None:
    commits = braided.log(all=True)
    assert commits.dag() == {commit.id: tuple(commit.parents) for commit in commits}
    newest = braided.log(limit=1)
    assert newest.dag() == {newest[0].id: ()}
