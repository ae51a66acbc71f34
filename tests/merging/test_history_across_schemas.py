"""Diffs, histories, reverts and cherry-picks across schema changes, from the user's side."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import ChangeSchemaBoundary, InputError, MergeConflict, SchemaMismatch
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  note: String? }
node Team { name: String @key }
edge MemberOf: Person -> Team { since: I32? }
"""


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    graph.insert("Person", {"name": "Ada", "age": 36, "city": "Rome", "note": "n"}, {"name": "Bob"}, message="people")
    graph.insert("Team", {"name": "Blue"}, message="team")
    graph.connect_nodes("MemberOf", [("Ada", "Blue", {"since": 2020})])
    return graph


def change(graph: Graph, *replacements: tuple[str, str], message: str = "schema") -> str:
    """Apply a schema with some texts replaced and return the commit."""
    source = graph.schema.source
    for old, new in replacements:
        assert old in source
        source = source.replace(old, new)
    applied = graph.schema.apply(source, message=message)
    assert applied.commit is not None
    return applied.commit.id


def changes(items: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [(item.op, item.type, item.id, item.changed) for item in items]


def update(graph: Graph, name: str, message: str, type_name: str = "Person", **values: Any) -> str:
    graph.update(type_name, where="name = $n", set=values, n=name, message=message)
    return graph.head.id


EVERY_CHANGE = (
    ("node Person {", 'node Human @rename_from("Person") {'),
    ("Person ->", "Human ->"),
    ("age: I32?", "age: I64?"),
    ("city: String?", 'town: String? @rename_from("city")'),
    ("note: String?", 'email: String?  role: String @default("guest")'),
)


def test_diff_and_feed_follow_renamed_widened_dropped_and_added_properties(graph: Graph) -> None:
    start, cursor = graph.head.id, graph.changes.feed().cursor
    change(graph, *EVERY_CHANGE)
    assert changes(graph.diff(start)) == []
    update(graph, "Ada", "old", "Human", age=1 << 40, town="Paris", email="a@x")
    (after,) = graph.diff(start)
    assert changes([after]) == [("update", "Human", "Ada", ("age", "town", "email"))]
    assert after.before == {"name": "Ada", "age": 36, "town": "Rome", "email": None, "role": "guest"}
    blocks = list(graph.changes.feed(cursor=cursor))
    assert [changes(block.changes) for block in blocks] == [
        [],
        [("update", "Human", "Ada", ("age", "town", "email"))],
    ]
    # Back in time: what the old schema does not have vanishes, and dropped values are there again.
    expected = r"values of 'age' .* do not fit 'age: I32\?' \(commit .*: widen node:Human.age from I32\? to I64\?"
    with pytest.raises(ChangeSchemaBoundary, match=expected) as caught:
        list(graph.diff("HEAD", start))
    assert caught.value.to_json()["change_diff_refusal"]["reason"] == "schema_boundary"
    assert changes(graph.diff("HEAD", start, types="Team")) == []
    update(graph, "Ada", "small", "Human", age=7)
    assert changes(graph.diff("HEAD", start)) == [("update", "Person", "Ada", ("age", "city", "note"))]


def test_dropped_values_are_changes_when_a_diff_looks_back(graph: Graph) -> None:
    start = graph.head.id
    change(graph, ("note: String?", ""))
    assert changes(graph.diff(start)) == []
    (back,) = graph.diff("HEAD", start)
    assert (back.op, back.id, back.changed, (back.before or {})["note"]) == ("update", "Ada", ("note",), None)
    change(graph, ("city: String?", "city: String?  note: String?"))  # another property of the same name
    assert changes(graph.diff(start)) == []
    update(graph, "Bob", "new note", note="m")
    assert ("update", "Person", "Bob", ("note",)) in changes(graph.diff(start))
    found = graph.revisions.history("Person", "Ada")
    assert [(version.op, (version.values or {}).get("note")) for version in found] == [("insert", None)]


def test_history_and_blame_are_told_in_the_current_schema(graph: Graph) -> None:
    update(graph, "Ada", "moved", city="Oslo")
    update(graph, "Ada", "noted", note="gone")
    change(graph, *EVERY_CHANGE, message="everything")
    update(graph, "Ada", "grown", "Human", age=1 << 40)
    found = graph.revisions.history("Human", "Ada")
    values = [(version.commit.message, version.op, version.changed, version.values) for version in found]
    person = {"name": "Ada", "email": None, "role": "guest"}
    assert values == [
        ("grown", "update", ("age",), {**person, "age": 1 << 40, "town": "Oslo"}),
        ("moved", "update", ("town",), {**person, "age": 36, "town": "Oslo"}),
        ("people", "insert", (), {**person, "age": 36, "town": "Rome"}),
    ]
    assert found.complete
    blamed = graph.revisions.blame("Human", "Ada")
    assert {name: one.commit and one.commit.message for name, one in blamed.items()} == {
        "name": "people",
        "age": "grown",
        "town": "moved",
        "email": "everything",
        "role": "everything",
    }


def test_blame_credits_an_added_property_to_the_schema_change(graph: Graph) -> None:
    side = graph.branches.create("side")
    change(graph, ("note: String?", "note: String?  level: I32? @default(3)  rank: I32 @default(1)"), message="levels")
    change(graph, ("since: I32?", "since: I32?  until: I32?"), message="until")
    side.insert("Person", {"name": "Cyd"}, message="cyd")
    graph.merge("side", message="merged")
    update(graph, "Bob", "set", level=3)

    def credited(type_name: str, entity_id: str) -> dict[str, str | None]:
        blamed = graph.revisions.blame(type_name, entity_id)
        return {name: None if one.commit is None else one.commit.message for name, one in blamed.items()}

    others = dict.fromkeys(("name", "age", "city", "note"), "people")
    assert credited("Person", "Ada") == others | {"level": "levels", "rank": "levels"}
    assert credited("Person", "Bob") == others | {"level": "set", "rank": "levels"}
    assert credited("Person", "Cyd")["name"] == "cyd"
    edge_id = graph.edges("MemberOf").ids()[0]
    assert {name for name, message in credited("MemberOf", edge_id).items() if message == "until"} == {"until"}


def test_a_commit_before_a_schema_change_is_reverted(graph: Graph) -> None:
    moved = update(graph, "Ada", "moved", city="Oslo", note="x", age=40)
    graph.insert("Person", {"name": "Cyd", "city": "Bern"})
    added = graph.head.id
    change(graph, *EVERY_CHANGE)
    update(graph, "Ada", "mail", "Human", email="a@x")
    done = graph.revisions.revert(moved)
    assert (done.outcome, done.commit and done.commit.operation) == ("merged", "revert")
    ada = graph.refresh()["Human", "Ada"].properties
    assert ada == {"name": "Ada", "age": 36, "town": "Rome", "email": "a@x", "role": "guest"}
    assert graph.revisions.revert(added).outcome == "merged"
    assert sorted(graph.refresh().nodes("Human").ids()) == ["Ada", "Bob"]
    assert graph.revisions.revert("HEAD").outcome == "merged"  # the deleted person returns, in the new schema
    assert graph.refresh()["Human", "Cyd"].properties["town"] == "Bern"
    update(graph, "Ada", "again", "Human", town="Lima")
    with pytest.raises(MergeConflict, match="town"):
        graph.revisions.revert(moved)
    assert not graph.maintenance.check().findings


def test_a_range_across_a_schema_change_is_reverted_without_the_schema(graph: Graph) -> None:
    start = graph.head.id
    update(graph, "Ada", "moved", city="Oslo")
    change(graph, *EVERY_CHANGE)
    graph.upsert("Human", {"name": "Bob", "email": "b@x", "town": "Kiel"})
    graph.insert("Human", {"name": "Dee"})
    preview = graph.revisions.revert(f"{start}..HEAD", dry_run=True)
    assert changes(preview.delta) == [
        ("update", "Human", "Ada", ("town",)),
        ("update", "Human", "Bob", ("town", "email")),
        ("delete", "Human", "Dee", ()),
    ]
    assert graph.revisions.revert(f"{start}..HEAD").outcome == "merged"
    assert changes(graph.diff(start)) == []
    assert "Human" in graph.schema.source


def test_a_commit_that_changed_only_the_schema_is_refused_with_its_steps(graph: Graph) -> None:
    schema_commit = change(graph, ("note: String?", "note: String?  email: String?"))
    update(graph, "Ada", "mail", email="a@x")
    for replay in (graph.revisions.revert, graph.revisions.cherry_pick):
        with pytest.raises(
            InputError, match=r"changed only the schema \(add property node:Person.email: String\?\)"
        ) as e:
            replay(schema_commit)
        assert "omnigraph schema show --snapshot" in (e.value.hint or "")


def test_a_merge_that_changed_the_schema_is_reverted_without_the_schema(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, ("note: String?", "note: String?  email: String?"))
    update(dev, "Ada", "mail", email="a@x", age=50)
    graph.insert("Person", {"name": "Eve"})
    merged = graph.merge("dev").commit
    assert merged is not None
    assert graph.revisions.revert(merged.id).outcome == "merged"
    ada = graph.refresh()["Person", "Ada"].properties
    assert (ada["age"], ada["email"]) == (36, None)
    assert "Eve" in graph.nodes("Person").ids()


@pytest.mark.parametrize("fast_forward", [True, False])
def test_a_merge_that_changed_only_the_schema_cannot_be_reverted(graph: Graph, fast_forward: bool) -> None:
    dev = graph.branches.create("dev")
    change(dev, ("age: I32?", "age: I32?  email: String?"))
    if not fast_forward:
        update(graph, "Bob", "age", age=25)
    merged = graph.merge("dev")
    assert merged.outcome == ("fast_forward" if fast_forward else "merged")
    steps = r"changed only the schema \(add property node:Person\.email: String\?\)"
    for act in (graph.revisions.revert, graph.checkout("dev").revisions.cherry_pick):
        with pytest.raises(InputError, match=steps):
            act(graph.head.id)
        with pytest.raises(InputError, match=steps):
            act(graph.head.id, dry_run=True)


def test_cherry_pick_between_branches_with_different_schemas(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(graph, *EVERY_CHANGE)
    picked = update(dev, "Ada", "dev", city="Oslo", note="lost", age=40)
    dev.insert("Person", {"name": "Fay", "city": "Nice"})
    graph.revisions.cherry_pick(picked)
    graph.revisions.cherry_pick(dev.head.id)
    assert graph.refresh()["Human", "Ada"].properties["town"] == "Oslo"
    fay = graph["Human", "Fay"].properties
    assert fay == {"name": "Fay", "age": None, "town": "Nice", "email": None, "role": "guest"}
    late = update(graph, "Bob", "late", "Human", email="b@x", town="Turin", role="owner")
    dev.revisions.cherry_pick(late)
    assert dev.refresh()["Person", "Bob"].properties["city"] == "Turin"
    dev.revisions.cherry_pick(update(graph, "Bob", "small", "Human", age=5))
    large = update(graph, "Ada", "large", "Human", age=1 << 40)
    dev.revisions.cherry_pick(update(graph, "Bob", "other", "Human", age=6))  # the large value is not replayed
    assert dev.refresh()["Person", "Bob"].properties["age"] == 6
    with pytest.raises(SchemaMismatch, match=r"values of 'age' .*commit .*: widen node:Human.age from I32\? to I64\?"):
        dev.revisions.cherry_pick(large)


def test_replays_of_a_dropped_type_name_the_commit_that_dropped_it(graph: Graph) -> None:
    graph.insert("Team", {"name": "Red"})
    added = graph.head.id
    dropped = change(
        graph, ("node Team { name: String @key }\n", ""), ("edge MemberOf: Person -> Team { since: I32? }\n", "")
    )
    with pytest.raises(SchemaMismatch, match=rf"type 'Team' no longer exists .*commit {dropped}: drop node type Team"):
        graph.revisions.revert(added)
    change(graph, ("node Person", "node Team { title: String @key }\nnode Person"))
    with pytest.raises(ChangeSchemaBoundary, match="'Team' is a different type"):
        list(graph.diff(added, types="Team"))


def test_values_that_are_required_by_now_must_be_given(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", "node Item { name: String @key  tag: String? }", durability="os")
    graph.insert("Item", {"name": "a"}, {"name": "b"}, message="items")
    start = graph.head.id
    graph.delete("Item", where="name = 'a'", message="deleted")
    deleted = graph.head.id
    change(graph, ("tag: String?", "tag: String?  size: I32?"))
    update(graph, "b", "filled", "Item", size=2)
    change(graph, ("size: I32?", "size: I32"))
    assert changes(graph.diff(start)) == [("delete", "Item", "a", ()), ("update", "Item", "b", ("size",))]
    found = graph.revisions.history("Item", "a")
    assert [(version.commit.message, version.op) for version in found] == [("deleted", "delete"), ("items", "insert")]
    with pytest.raises(MergeConflict, match="must have a value") as caught:
        graph.revisions.revert(deleted)
    assert [(item.kind, item.entity_id) for item in caught.value.conflicts] == [("value_constraint_violation", "a")]
    assert graph.revisions.revert(deleted, strategy=lambda _: {"size": 1}).outcome == "merged"
    assert graph.refresh()["Item", "a"].properties == {"name": "a", "tag": None, "size": 1}


RULES = """
node Person { name: String @key  mail: String?  size: I64?  @unique(mail) }
edge Knows: Person -> Person
edge Boss: Person -> Person @card(0..1)
"""


@pytest.fixture(params=[(), (("mail: String?", "mail: String?  age: I32?"),)], ids=["same schema", "other schema"])
def branches(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Graph, Graph]:
    """Main and a branch, whose schema may differ."""
    graph = omnigraph.init(tmp_path / "graph", RULES, durability="os")
    graph.insert("Person", *({"name": name} for name in "abc"))
    graph.connect_nodes("Knows", [("c", "b", {"id": "old"})])
    dev = graph.branches.create("dev")
    if request.param:
        change(dev, *request.param)
    return graph, dev


def test_cherry_pick_with_theirs_restores_a_deleted_endpoint(branches: tuple[Graph, Graph]) -> None:
    graph, dev = branches
    dev.connect_nodes("Knows", [("a", "b", {"id": "new"})])
    graph.delete("Person", where="name = 'b'")
    with pytest.raises(MergeConflict, match="refers to Person 'b', which was deleted on 'main'") as caught:
        graph.revisions.cherry_pick(dev.head.id)
    assert [(item.kind, item.entity_id) for item in caught.value.conflicts] == [("orphan_edge", "new")]
    assert graph.revisions.cherry_pick(dev.head.id, strategy="ours").outcome == "already_up_to_date"
    picked = graph.revisions.cherry_pick(dev.head.id, strategy="theirs")
    assert [str(item) for item in picked.discarded] == ["Person 'b': its deletion"]
    assert [(item.id, item.node) for item in picked.lost_edges] == [("old", "b")]
    assert sorted(graph.refresh().nodes("Person").ids()) == ["a", "b", "c"]
    assert sorted(graph.edges("Knows").ids()) == ["new"]


def test_cherry_pick_with_theirs_takes_a_unique_value(branches: tuple[Graph, Graph]) -> None:
    graph, dev = branches
    update(dev, "a", "dev", mail="x")
    update(graph, "b", "main", mail="x", size=3)
    picked = graph.revisions.cherry_pick(dev.head.id, strategy="theirs")
    assert [str(item) for item in picked.discarded] == ["Person 'b': mail 'x'"]
    assert graph.refresh()["Person", "a"].properties["mail"] == "x"
    assert (graph["Person", "b"].properties["mail"], graph["Person", "b"].properties["size"]) == (None, 3)


def test_cherry_pick_with_theirs_replaces_edges_above_the_maximum(branches: tuple[Graph, Graph]) -> None:
    graph, dev = branches
    dev.connect_nodes("Boss", [("a", "b", {"id": "theirs"})])
    graph.connect_nodes("Boss", [("a", "c", {"id": "ours"})])
    graph.revisions.cherry_pick(dev.head.id, strategy="theirs")
    assert list(graph.refresh().edges("Boss").ids()) == ["theirs"]


def test_an_endpoint_that_does_not_fit_the_schema_stays_a_conflict(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", RULES.replace("I64", "I32"), durability="os")
    graph.insert("Person", {"name": "a"}, {"name": "b"})
    dev = graph.branches.create("dev")
    change(dev, ("I32", "I64"))
    update(dev, "b", "large", size=1 << 40)
    dev.connect_nodes("Knows", [("a", "b", {"id": "new"})])
    graph.delete("Person", where="name = 'b'")
    for strategy in (None, "theirs"):
        with pytest.raises(MergeConflict) as caught:
            graph.revisions.cherry_pick(dev.head.id, strategy=strategy)
        assert [(item.kind, item.entity_id) for item in caught.value.conflicts] == [("orphan_edge", "new")]
    assert graph.revisions.cherry_pick(dev.head.id, strategy="ours").outcome == "already_up_to_date"
