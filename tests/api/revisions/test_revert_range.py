"""Revert of a range: the net effect of several commits is undone in one commit."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InputError, MergeConflict
from omnigraph.testing import graph as temporary_graph
from tests.api.revisions.conftest import SCHEMA
from tests.api.revisions.test_revert_and_cherry_pick import STEP, lines, step


def ages(graph: Graph) -> dict[str, Any]:
    """The age of every person."""
    return {person["name"]: person["age"] for person in graph.nodes("Person").result()}


def test_range_is_undone_in_one_commit(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "age": 1}, {"name": "bob", "age": 2}, message="two people")
    empty.tag("v1")
    empty.update("Person", where="name = 'ada'", set={"age": 5})
    empty.insert("Person", {"name": "cyd", "age": 3})
    empty.connect_nodes("Knows", [("ada", "cyd", {"since": 1})])
    last = empty.head.id
    empty.insert("Person", {"name": "dan", "age": 4}, message="kept")
    commit_count = len(empty.log())
    done = empty.revisions.revert(f"v1..{last}")
    assert done.outcome == "merged"
    assert done.commit is not None
    first = empty.at("v1").head.id
    assert (done.commit.operation, done.commit.details) == (
        "revert",
        {"after": first, "commit": last, "granularity": "property"},
    )
    assert done.commit.message == f"Revert {first}..{last}"
    assert (done.stats["updates"], done.stats["deletes"]) == (1, 2)
    assert len(empty.log()) == commit_count + 1
    assert ages(empty) == {"ada": 1, "bob": 2, "dan": 4}
    assert empty.revisions.revert(f"v1..{last}").outcome == "already_up_to_date"
    assert empty.revisions.revert("v1..").outcome == "merged"  # up to the head: dan, too
    assert not empty.diff("v1")


def test_only_the_net_effect_of_a_range_can_conflict(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "age": 1}, {"name": "bob", "age": 1})
    empty.tag("v1")
    empty.update("Person", where="name = 'ada'", set={"age": 2})
    empty.update("Person", where="name = 'ada'", set={"age": 1})
    empty.update("Person", where="name = 'bob'", set={"age": 2})
    last = empty.head.id
    empty.update("Person", where="name = 'ada'", set={"age": 7})
    empty.update("Person", where="name = 'bob'", set={"age": 7})
    with pytest.raises(MergeConflict) as caught:
        empty.revisions.revert(f"v1..{last}")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_id) == ("divergent_update", "bob")
    assert [image and image["age"] for image in (conflict.base, conflict.ours, conflict.theirs)] == [2, 7, 1]
    preview = empty.revisions.revert(f"v1..{last}", dry_run=True)
    assert (preview.outcome, preview.conflicts, preview.commit) == ("conflict", (conflict,), None)
    empty.revisions.revert(f"v1..{last}", strategy="theirs")
    assert ages(empty) == {"ada": 7, "bob": 1}


def test_range_across_a_merge_and_on_another_branch(graph: Graph) -> None:
    before = lines(graph.at("v1"))
    review = graph.checkout("review")
    review.revisions.revert("v1..HEAD", dry_run=True)
    graph.revisions.revert("v1..HEAD", branch="review")  # HEAD is that of the branch
    assert lines(review.refresh()) == before
    graph.revisions.revert("v1..HEAD")  # through the merge of review
    assert lines(graph) == before


def test_invalid_ranges_are_rejected(graph: Graph) -> None:
    for text, reason in (
        ("HEAD..v1", "not an ancestor"),
        ("review..HEAD~3", "not an ancestor"),
        ("v1...HEAD", "two dots"),
        ("..HEAD", "before `..`"),
        ("v1..ghost", "unknown revision"),
    ):
        with pytest.raises(InputError, match=reason):
            graph.revisions.revert(text)
    with pytest.raises(InputError, match="mainline"):
        graph.revisions.revert("v1..HEAD", mainline=1)
    assert graph.revisions.revert("HEAD..HEAD").outcome == "already_up_to_date"
    graph.schema.apply(SCHEMA.replace("score: F64?", "score: F64?  note: String?"))
    assert graph.revisions.revert("v1..HEAD").outcome == "merged"
    assert not list(graph.diff("v1"))


def test_range_into_reclaimed_history_is_rejected(graph: Graph) -> None:
    oldest = graph.log()[-2].id
    graph.revisions.revert(f"{oldest}..HEAD", dry_run=True)
    for name in ("v1",):
        graph.tags.delete(name)
    graph.branches.delete("review", force=True)
    graph.maintenance.cleanup(keep=1, confirm=True, grace="0s")
    with pytest.raises(omnigraph.errors.HistoryReclaimed):
        graph.revisions.revert(f"{oldest}..HEAD")


@settings(max_examples=5)
@given(st.lists(STEP, min_size=2, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_reverted_range_restores_the_exact_state(steps: list[tuple[str, str, int]], one: int, two: int) -> None:
    with temporary_graph(SCHEMA) as graph:
        for what in steps:
            step(graph, *what)
        commits = graph.log()[::-1]
        first, last = sorted((one % len(commits), two % len(commits)))
        branch = graph.branches.create("old", commit=commits[last].id)
        before = lines(graph.at(commits[first].id))
        branch.revisions.revert(f"{commits[first].id}..HEAD")
        assert lines(branch) == before
        assert not graph.diff(commits[first].id, branch)
