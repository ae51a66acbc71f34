"""Merge sessions on a server: conflicts are resolved one by one, and the merge fails if the target changes."""

import pytest

from omnigraph import Graph
from omnigraph.errors import InputError, MergeConflict, NotSupportedRemotely, ReadSetConflict


@pytest.fixture
def side(graph: Graph) -> Graph:
    """A branch that changed the same two people as the branch of the test."""
    other = graph.branches.create(f"{graph.branch_name}-side")
    for branch, age in ((graph, 1), (other, 2)):
        branch.update("Person", where="name = 'ada'", set={"age": age, "bio": f"by {age}"})
        branch.update("Person", where="name = 'bob'", set={"age": age + 10})
    return other


def test_conflicts_are_resolved_one_by_one(graph: Graph, side: Graph) -> None:
    session = graph.branches.merge_session(side.branch_name, message="reviewed")
    assert [conflict.entity_id for conflict in session.conflicts] == ["ada", "bob"]
    assert "2 of 2 left" in repr(session)
    assert f"2 on '{side.branch_name}'" in session.conflicts[0].message
    with pytest.raises(MergeConflict) as raised:
        session.commit()
    assert len(raised.value.conflicts) == 2
    session.resolve(0, "theirs")
    assert [conflict.entity_id for conflict in session.open] == ["bob"]
    session.resolve(session.conflicts[1], {"age": 99})
    session.resolve(0, "ours")  # a second decision replaces the first
    assert (len(session), len(session.conflicts), session.preview().outcome) == (0, 2, "merged")
    assert session.to_arrow().num_rows == 2
    merged = session.commit()
    assert merged.commit is not None
    assert (merged.commit.message, merged.commit.id) == ("reviewed", graph.head.id)
    assert merged.stats["resolved"] == 2
    people = graph.query("match { $p: Person } return { $p.name, $p.age, $p.bio } order { $p.name }")
    assert people.to_records() == [("ada", 1, "by 1"), ("bob", 99, None)]


def test_all_conflicts_can_be_resolved_at_once(graph: Graph, side: Graph) -> None:
    session = side.branches.merge_session(into=graph.branch_name)
    assert not session.resolve_all("theirs", type="Doc").preview()
    assert session.resolve_all("theirs", kind="divergent_update").open == ()
    session.commit(message="theirs")
    assert graph["Person", "bob"].age == 12


def test_a_rejected_decision_has_no_effect(graph: Graph, side: Graph) -> None:
    session = graph.branches.merge_session(side.branch_name)
    for which, choice in ((0, "mine"), (7, "ours"), (0, {"age": "old"}), (0, {"height": 1})):
        with pytest.raises(InputError):
            session.resolve(which, choice)
    assert len(session.open) == 2
    with pytest.raises(InputError, match="cannot be merged into itself"):
        graph.branches.merge_session()
    with pytest.raises(NotSupportedRemotely):
        graph.branches.merge_session(side.branch_name, actor="ann")


def test_the_merge_fails_if_the_target_changes(graph: Graph, side: Graph) -> None:
    session = graph.branches.merge_session(side.branch_name).resolve_all("ours")
    side.insert("Person", {"name": "too late"})  # the session merges the commit that it was opened for
    graph.insert("Person", {"name": "cyd"})
    head = graph.head.id
    with pytest.raises(ReadSetConflict) as raised:
        session.commit()
    assert (raised.value.actual, raised.value.effect) == (head, "none")
    again = graph.branches.merge_session(f"{side.branch_name}~1").resolve_all("ours")
    assert again.commit().outcome == "merged"
    assert graph.nodes("Person").ids() == ["ada", "bob", "cyd"]


def test_schema_conflicts_are_resolved_by_side(graph: Graph, side: Graph) -> None:
    source = graph.schema.source
    graph.schema.apply(source.replace("score: F64?", "score: F64?  height: I32?"))
    side.schema.apply(source.replace("score: F64?", "score: F64?  height: F64?"))
    session = graph.branches.merge_session(side.branch_name)
    assert [conflict.kind for conflict in session.conflicts] == ["schema_conflict"]
    with pytest.raises(InputError, match="cannot be resolved with values"):
        session.resolve(0, {"height": 1})
    session.resolve(0, "theirs")
    assert [conflict.entity_id for conflict in session.open] == ["ada", "bob"]
    session.resolve_all("theirs").commit()
    assert "height: F64" in graph.schema.source
