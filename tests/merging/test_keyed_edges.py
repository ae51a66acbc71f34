"""Merges of branches that add, change and delete the same keyed edge."""

from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import InputError, MergeConflict
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { kind: String  since: I32?  note: String?  @key(src, dst, kind) }
edge Badge: Person -> Person { number: I32 @key  note: String? }
"""
EDGE = '["ada","bob","friend"]'


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    made = graphs.init(SCHEMA)
    made.insert("Person", {"name": "ada"}, {"name": "bob"})
    made.branches.create("dev")
    return made


def knows(**values: Any) -> dict[str, Any]:
    return {"from": "ada", "to": "bob", "kind": "friend", **values}


def stored(graph: Graph) -> list[Any]:
    return graph.refresh().edges("Knows").order_by("id").result().to_records()


def test_branches_that_add_the_same_keyed_edge_agree(graph: Graph) -> None:
    graph.insert("Knows", knows(since=1))
    graph.checkout("dev").insert("Knows", knows(since=1))
    graph.checkout("dev").insert("Knows", knows(kind="boss", since=1))
    result = graph.merge("dev")
    assert (result.outcome, result.parallel_edges, result.conflicts) == ("merged", (), ())
    assert stored(graph) == [
        ('["ada","bob","boss"]', "ada", "bob", "boss", None, 1),
        (EDGE, "ada", "bob", "friend", None, 1),
    ]


def test_different_properties_of_one_keyed_edge_conflict(graph: Graph) -> None:
    graph.insert("Knows", knows(since=1, note="x"))
    graph.checkout("dev").insert("Knows", knows(since=2, note="x"))
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_id, conflict.changed) == ("divergent_insert", EDGE, ("since",))
    with pytest.raises(InputError, match="part of the key"):
        graph.merge("dev", strategy=lambda _: {"kind": "boss"})
    with pytest.raises(InputError, match="part of the key"):
        graph.merge("dev", strategy=lambda _: {"src": "bob"})
    graph.merge("dev", strategy="theirs")
    assert stored(graph) == [(EDGE, "ada", "bob", "friend", "x", 2)]


def test_edits_of_one_keyed_edge_combine_by_property(graph: Graph) -> None:
    graph.insert("Knows", knows(since=1))
    graph.merge("main", "dev")
    graph.upsert("Knows", knows(since=2))
    graph.checkout("dev").upsert("Knows", knows(since=1, note="x"))
    assert graph.merge("dev").outcome == "merged"
    assert stored(graph) == [(EDGE, "ada", "bob", "friend", "x", 2)]


def test_one_key_with_different_endpoints_is_one_edge_in_conflict(graph: Graph) -> None:
    graph.insert("Badge", {"from": "ada", "to": "bob", "number": 1})
    graph.checkout("dev").insert("Badge", {"from": "bob", "to": "ada", "number": 1})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_id, set(conflict.changed)) == ("divergent_insert", "1", {"src", "dst"})


def test_branches_that_add_the_same_keyed_edge_type_agree_on_its_edges(graph: Graph) -> None:
    schema = SCHEMA + "edge Met: Person -> Person { place: String  year: I32  n: I32?  @key(src, dst, year, place) }\n"
    for branch in (graph, graph.checkout("dev")):
        branch.schema.apply(schema)
        branch.insert("Met", {"from": "ada", "to": "bob", "place": "x", "year": 1})
    assert graph.merge("dev").parallel_edges == ()
    (edge_id,) = graph.refresh().edges("Met").ids()
    assert edge_id[:13] == '["ada","bob",'
    assert list(graph.maintenance.check().findings) == []
