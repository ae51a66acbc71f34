"""The history of one entity: every version once, with its commit."""

import pytest

from omnigraph import Graph
from omnigraph.errors import EntityNotFound, InputError
from omnigraph.history.entity_history import EntityVersion
from tests.rig.graph_hosts import GraphHost, act_as


def told(found: list[EntityVersion]) -> list[tuple[str | None, str, tuple[str, ...]]]:
    """What each version says: why, what, which properties."""
    return [(one.commit.message, one.op, one.changed) for one in found]


def test_entity_versions_name_their_commits(graph: Graph) -> None:
    found = graph.revisions.history("Person", "ada")
    assert told(found) == [
        ("much older", "update", ("age",)),
        ("moved", "update", ("city",)),
        ("two people", "insert", ()),
    ]
    newest, moved, first = found
    assert newest.values is not None
    assert (newest.values["age"], newest.values["city"]) == (9, "Ulm")
    assert newest.before is not None
    assert newest.before["age"] == 1
    assert moved.commit.actor == "cy"
    assert first.before is None
    assert told(graph.revisions.history("Person", "ada", limit=1)) == told(found[:1])
    assert told(graph.at("HEAD~1").revisions.history("Person", "ada")) == told(found[1:])
    assert told(graph.revisions.history("Person", "bob")) == [
        ("older", "update", ("age",)),
        ("two people", "insert", ()),
    ]
    assert graph.revisions.history("Person", "nobody") == []


def test_blame_names_the_commit_of_each_value(graph: Graph) -> None:
    found = graph.revisions.blame("Person", "ada")
    assert {name: one.actor for name, one in found.items()} == {
        "age": "dan",
        "city": "cy",
        "name": "ann",
        "score": "ann",
        "photo": "ann",
    }
    assert (found["city"].value, found["age"].value) == ("Ulm", 9)
    for name, key in (("Person", "nobody"), ("Knows", "none")):
        with pytest.raises(EntityNotFound):
            graph.revisions.blame(name, key)
    with pytest.raises(InputError, match="unknown type 'Ghost'"):
        graph.revisions.blame("Ghost", "ada")


def test_reinserted_entity_has_two_births(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "age": 1}, message="one")
    empty.delete("Person", where="name = 'ada'", message="two")
    empty.insert("Person", {"name": "bob"}, message="not about her")
    empty.insert("Person", {"name": "ada", "age": 1}, message="three")
    assert told(empty.revisions.history("Person", "ada")) == [
        ("three", "insert", ()),
        ("two", "delete", ()),
        ("one", "insert", ()),
    ]
    assert {one.commit.message for one in empty.revisions.blame("Person", "ada").values() if one.commit} == {"three"}


def test_blame_of_a_restored_value_names_the_restoring_commit(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "age": 1})
    empty.update("Person", where="name = 'ada'", set={"age": 2})
    act_as(empty, "bob").update("Person", where="name = 'ada'", set={"age": 1})
    assert empty.revisions.blame("Person", "ada")["age"].actor == "bob"
    act_as(empty, "cy").update("Person", where="name = 'ada'", set={"age": 1})  # changes nothing
    assert empty.revisions.blame("Person", "ada")["age"].actor == "bob"


def test_a_merge_of_properties_is_a_version_of_its_own(graph: Graph) -> None:
    side = graph.branches.create("side")
    act_as(side, "eve").update("Person", where="name = 'ada'", set={"score": 0.5}, message="scored")
    act_as(graph, "fay").update("Person", where="name = 'ada'", set={"city": "Bonn"}, message="left")
    graph.merge("side", message="both")
    assert told(graph.revisions.history("Person", "ada", limit=3)) == [
        ("both", "update", ("score",)),
        ("left", "update", ("city",)),
        ("scored", "update", ("score",)),
    ]
    found = graph.revisions.blame("Person", "ada")
    assert (found["score"].actor, found["city"].actor) == ("eve", "fay")


@pytest.mark.parametrize("gone", [False, True], ids=["changed", "deleted"])
def test_merge_that_rejected_a_change_is_a_version(graph: Graph, gone: bool) -> None:
    side = graph.branches.create("side")
    side.update("Person", where="name = 'ada'", set={"score": 0.5}, message="scored")
    if gone:
        graph.delete("Person", where="name = 'ada'", message="gone")
    else:
        graph.update("Person", where="name = 'ada'", set={"score": 0.7}, message="gone")
    graph.merge("side", strategy="theirs", message="theirs")
    newest, *others = told(graph.revisions.history("Person", "ada", limit=3))
    assert newest == (("theirs", "insert", ()) if gone else ("theirs", "update", ("score",)))
    assert [one[0] for one in others] == ["gone", "scored"]
    assert graph.revisions.history("Person", "bob")[0].commit.message == "older"
    blamed = graph.revisions.blame("Person", "ada")["score"].commit
    assert blamed is not None
    assert blamed.message == "theirs"


def test_edges_have_a_history(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada"}, {"name": "bob"})
    made = empty.connect_nodes("Knows", [("ada", "bob", {"since": 1})], message="met")
    edge = made.ids["Knows"][0]
    act_as(empty, "bob").upsert("Knows", {"id": edge, "from": "ada", "to": "bob", "since": 2})
    found = empty.revisions.history("Knows", edge)
    assert [(one.op, one.values, one.endpoints) for one in found] == [
        ("update", {"since": 2}, {"src": "ada", "dst": "bob"}),
        ("insert", {"since": 1}, {"src": "ada", "dst": "bob"}),
    ]
    blamed = empty.revisions.blame("Knows", edge)
    assert {name: one.actor for name, one in blamed.items()} == {"since": "bob", "src": "ann", "dst": "ann"}


def test_renamed_type_keeps_its_entity_history(graphs: GraphHost) -> None:
    before = "node Person { name: String @key  age: I64? }"
    after = 'node Human @rename_from("Person") { name: String @key  age: I64?  size: I64? }'
    graph = graphs.init(before)
    graph.insert("Person", {"name": "ada", "age": 1}, message="one")
    graph.schema.apply(after, message="renamed")
    graph.update("Human", where="name = 'ada'", set={"size": 3}, message="grown")
    assert told(graph.revisions.history("Human", "ada")) == [("grown", "update", ("size",)), ("one", "insert", ())]
    found = graph.revisions.blame("Human", "ada")
    assert {n: one.commit and one.commit.message for n, one in found.items()} == {
        "age": "one",
        "name": "one",
        "size": "grown",
    }


def test_entity_history_reports_reclaimed_commits(empty: Graph) -> None:
    empty.insert("Person", {"name": "ada", "age": 1}, {"name": "bob"}, message="one")
    for age in (2, 3, 4):
        empty.update("Person", where="name = 'ada'", set={"age": age}, message=f"at {age}")
    whole = empty.revisions.history("Person", "ada")
    assert (whole.complete, whole.gap, len(whole)) == (True, None, 4)
    empty.maintenance.cleanup(keep=2, older_than=0, grace=0, confirm=True)
    found = empty.revisions.history("Person", "ada")
    assert told(found) == [("at 4", "update", ("age",))]
    assert found.gap is not None
    assert (found.complete, found.gap.message) == (False, "at 3")
    assert repr(found) == (f"<EntityHistory: 1 version; a cleanup removed the history before commit {found.gap.id}>")
    still = empty.revisions.history("Person", "bob")  # who has not changed since: nothing, but not silently
    assert (list(still), still.complete) == ([], False)
    assert empty.revisions.history("Person", "ada", limit=1).complete
    blamed = empty.revisions.blame("Person", "ada")
    assert (blamed["age"].commit is None, blamed["name"].commit) == (False, None)
