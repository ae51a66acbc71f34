"""Revert and cherry-pick: one commit undone or repeated, later changes kept."""

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph import Graph
from omnigraph.errors import InputError, MergeConflict, PreconditionFailed
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.stage import stage_tables
from omnigraph.merging import replay
from omnigraph.testing import graph as temporary
from tests.api.revisions.conftest import SCHEMA
from tests.rig.graph_hosts import act_as, open_again


def lines(graph: Graph) -> list[bytes]:
    """Everything that a handle shows."""
    return sorted(graph.export())


def test_revert_keeps_later_commits(graph: Graph) -> None:
    done = graph.revisions.revert("HEAD~2")  # bob is older
    assert done.outcome == "merged"
    assert done.commit is not None
    assert (done.commit.operation, done.commit.message) == ("revert", 'Revert "older"')
    assert done.commit.parents == (graph.log()[1].id,)
    assert done.commit.details == {"commit": graph.revisions.commit("HEAD~3").id, "granularity": "property"}
    assert done.stats["updates"] == 1
    assert {one["name"]: one["age"] for one in graph.nodes("Person").result()} == {"ada": 9, "bob": 2}
    assert graph.revisions.revert("HEAD~3").outcome == "already_up_to_date"
    again = act_as(graph, "bob").revisions.revert("HEAD", message="on second thoughts")
    assert again.commit is not None
    assert (again.commit.message, again.commit.actor) == ("on second thoughts", "bob")
    assert not graph.diff("HEAD~2")


def test_revert_of_a_value_changed_since_is_a_conflict(graph: Graph) -> None:
    graph.update("Person", where="name = 'bob'", set={"age": 30}, message="again")
    head = graph.head.id
    with pytest.raises(MergeConflict) as caught:
        graph.revisions.revert("HEAD~3")
    (one,) = caught.value.conflicts
    assert (one.kind, one.entity_id, one.changed) == ("divergent_update", "bob", ("age",))
    assert [image and image["age"] for image in (one.base, one.ours, one.theirs)] == [3, 30, 2]
    assert "before the commit" in (caught.value.hint or "")
    preview = graph.revisions.revert("HEAD~3", dry_run=True)
    assert (preview.outcome, preview.conflicts) == ("conflict", (one,))
    assert graph.refresh().head.id == head
    graph.revisions.revert("HEAD~3", strategy="theirs")
    assert graph["Person", "bob"].properties["age"] == 2


def test_revert_of_an_insert_in_use_is_a_conflict(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada"})
    empty.insert("Person", {"name": "bob"}, message="bob")
    empty.connect_nodes("Knows", [("ada", "bob")])
    with pytest.raises(MergeConflict) as caught:
        empty.revisions.revert("HEAD~1")
    assert [one.kind for one in caught.value.conflicts] == ["orphan_edge"]
    empty.revisions.revert("HEAD~1", strategy="theirs")  # the edge goes with its node
    assert empty.nodes("Person").ids() == ["ada"]
    assert empty.edges("Knows").result().to_dicts() == []


def test_revert_of_a_deletion_restores_edges(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "photo": b"x" * 100}, {"name": "bob"})
    empty.connect_nodes("Knows", [("ada", "bob", {"since": 1})])
    before = lines(empty)
    empty.delete("Person", where="name = 'ada'")
    empty.revisions.revert("HEAD")
    assert lines(empty) == before
    assert not empty.diff("HEAD~2")


def test_revert_of_a_merge_is_relative_to_a_parent(graph: Graph) -> None:
    merged = graph.revisions.commit("HEAD~1")
    graph.revisions.revert("HEAD")
    graph.revisions.revert(merged.id)
    assert not graph.diff(merged.parents[0])
    graph.revisions.revert("HEAD")
    graph.revisions.revert(merged.id, mainline=2)
    assert not graph.diff(merged.parents[1])
    for mainline in (0, 3):
        with pytest.raises(InputError):
            graph.revisions.revert(merged.id, mainline=mainline)


def test_invalid_reverts_are_rejected(graph: Graph) -> None:
    first = graph.log()[-1]
    with pytest.raises(InputError, match="because it created the graph"):
        graph.revisions.revert(first.id)
    head = graph.head.id
    with pytest.raises(PreconditionFailed):
        graph.revisions.revert("HEAD", if_commit=first.id)
    for wrong in ({"granularity": "word"}, {"strategy": "mine"}, {"strategy": {"Ghost": "ours"}}):
        with pytest.raises(InputError):
            graph.revisions.revert("HEAD", **wrong)
    graph.schema.apply(SCHEMA.replace("score: F64?", "score: F64?  note: String?"))
    for dry_run in (False, True):
        with pytest.raises(InputError, match="changed only the schema"):
            graph.revisions.revert("HEAD", dry_run=dry_run)
    assert graph.revisions.revert(head, dry_run=True).outcome == "merged"  # rows are expressed in the new schema


def test_revert_resolves_head_on_the_target_branch(graph: Graph) -> None:
    review = graph.checkout("review")
    done = graph.revisions.revert("HEAD", branch="review")
    assert done.commit is not None
    assert done.commit.message == 'Revert "moved"'
    assert review.refresh()["Person", "ada"].properties["city"] is None
    assert graph.revisions.revert("HEAD", branch="review").commit is not None  # and back it comes
    assert review.refresh()["Person", "ada"].properties["city"] == "Ulm"
    # To pick is to take from here what another branch shall have.
    picked = graph.revisions.cherry_pick("HEAD", into="review")
    assert review.refresh()["Person", "ada"].properties["age"] == 9
    assert picked.commit is not None
    assert [change.id for change in graph.diff(f"{picked.commit.parent}..{picked.commit.id}")] == ["ada"]


def test_cherry_pick_applies_a_commit_to_another_branch(graph: Graph) -> None:
    old = graph.branches.create("old", commit=graph.at("v1").head.id)
    with pytest.raises(MergeConflict, match="ada"):  # who has another city there
        old.revisions.cherry_pick(graph.head.id, granularity="entity")
    done = old.revisions.cherry_pick(graph.head.id)
    assert done.commit is not None
    assert (done.commit.operation, done.commit.message) == ("cherry_pick", "much older")
    assert done.commit.branch == "old"
    assert old["Person", "ada"].properties["age"] == 9
    assert old["Person", "ada"].properties["city"] is None
    again = old.revisions.cherry_pick(graph.head.id)
    assert again.outcome == "already_up_to_date"
    # From another handle, by name; a branch names its newest commit.
    assert graph.revisions.cherry_pick("review", into="old").outcome == "merged"
    assert old["Person", "ada"].properties["city"] == "Ulm"


def test_revert_lands_beside_a_constant_writer(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "age": 1})
    wanted = empty.update("Person", where="name = 'ada'", set={"age": 2}).commit_id
    assert wanted is not None
    ended = threading.Event()
    other = open_again(empty)

    def write() -> None:
        for number in range(1000):
            if ended.is_set():
                return
            other.insert("Person", {"name": f"p{number}"})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        empty.revisions.revert(wanted)
    finally:
        ended.set()
        writer.join()
    assert empty["Person", "ada"].properties["age"] == 1


def test_revert_keeps_concurrent_writes(empty: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    empty.insert("Person", {"name": "ada", "age": 1}, {"name": "bob", "age": 1})
    empty.update("Person", where="age = 1", set={"age": 2})
    other = open_again(empty)
    # As another process knows the branch.
    monkeypatch.setattr(empty._handle, "branch_state", BranchState(empty._handle.store, "main", "main"))
    ages = iter((50, 60))

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(replay, "stage_tables", stage_tables)
        staged = stage_tables(*given)
        other.upsert("Person", {"name": "bob", "age": next(ages)})
        return staged

    monkeypatch.setattr(replay, "stage_tables", overtaken)
    with pytest.raises(MergeConflict, match="bob"):
        empty.revisions.revert("HEAD")
    assert {one["name"]: one["age"] for one in other.nodes("Person").result()} == {"ada": 2, "bob": 50}
    # The same for what is brought back, while somebody else makes it anew.
    other.delete("Person", where="name = 'bob'")
    monkeypatch.setattr(replay, "stage_tables", overtaken)
    with pytest.raises(MergeConflict, match="bob"):
        empty.revisions.revert("HEAD")
    assert sorted(other.nodes("Person").ids()) == ["ada", "bob"]


STEP = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 2)),
    st.tuples(st.just("del"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("tie"), st.sampled_from("abc"), st.integers(0, 2)),
)


def step(graph: Graph, what: str, name: str, number: int) -> None:
    """One write; what does not fit is left out."""
    if what == "put":
        graph.upsert("Person", {"name": name, "age": number, "score": number / 3})
    elif what == "del":
        graph.delete("Person", where="name = $n", n=name)
    elif graph.node("Person", name) and graph.node("Person", "abc"[number]):
        graph.connect_nodes("Knows", [(name, "abc"[number], {"since": number})])


@settings(max_examples=5)
@given(st.lists(STEP, min_size=2, max_size=6))
def test_revert_and_cherry_pick_restore_the_exact_state(steps: list[tuple[str, str, int]]) -> None:
    with temporary(SCHEMA) as graph:
        for one in steps:
            step(graph, *one)
        commit, states = graph.head, lines(graph)
        if commit.parent is None:
            return
        before = lines(graph.at("HEAD~1"))
        old = graph.branches.create("old", commit=commit.parent)
        old.revisions.cherry_pick(commit.id)
        assert lines(old) == states
        assert not graph.diff(old, commit.id)
        graph.revisions.revert(commit.id)
        assert lines(graph) == before
        assert not graph.diff(commit.parent)


@pytest.mark.full
@settings(max_examples=60)
@given(st.lists(STEP, min_size=2, max_size=12))
def test_whole_history_can_be_reverted(steps: list[tuple[str, str, int]]) -> None:
    with temporary(SCHEMA) as graph:
        for one in steps:
            step(graph, *one)
        made = graph.log()[:-1]
        for commit in made:
            graph.revisions.revert(commit.id)
        assert lines(graph) == []
        for commit in reversed(made):
            graph.revisions.cherry_pick(commit.id)
        assert not graph.diff(made[0].id) if made else True
