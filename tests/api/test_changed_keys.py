"""A key with several members names the same entity after a schema change, on disk and on a server."""

from datetime import date
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import InputError
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Person { name: String @key }
node Seat { day: Date  hall: String  plan: Blob?  @key(day, hall) }
edge Takes: Person -> Seat { mark: String  since: Date  @key(src, dst, mark, since) }
edge Joins: Person -> Seat
"""
RENAMED = """
node Person { name: String @key }
node Seat { day: Date  aisle: String @rename_from("hall")  plan: Blob?  @key(day, aisle) }
edge Takes: Person -> Seat {
    mark: String  began: Date @rename_from("since")
    @key(src, dst, mark, began)
}
edge Joins: Person -> Seat
"""
DAY = date(2024, 1, 1)
SEAT: list[Any] = [(DAY, "a"), [DAY, "a"], {"aisle": "a", "day": DAY}, {"day": "2024-01-01", "aisle": "a"}]


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    """A graph with an entity from before a rename, which has moved a member of the key in the order of the names."""
    graph = graphs.init(SCHEMA)
    graph.insert("Person", {"name": "ada"})
    graph.insert("Seat", {"day": DAY, "hall": "a", "plan": b"x"})
    graph.connect_nodes("Takes", [("ada", (DAY, "a"), {"mark": "m", "since": DAY})])
    graph.schema.apply(RENAMED)
    return graph.refresh()


@pytest.mark.parametrize("key", SEAT)
def test_renamed_member_keeps_its_place_in_the_id(graph: Graph, key: Any) -> None:
    seat = graph.node("Seat", key)
    assert seat is not None
    assert seat.id == '["19723","a"]'
    assert [version.op for version in graph.revisions.history("Seat", key)] == ["insert"]
    assert graph.revisions.blame("Seat", key)
    assert graph.blob("Seat", key, "plan").read() == b"x"
    graph.put_blob("Seat", key, "plan", b"y")
    assert graph.refresh().blob("Seat", key, "plan").read() == b"y"


def test_edges_find_a_node_by_its_renamed_members(graph: Graph) -> None:
    graph.connect_nodes("Joins", [("ada", key) for key in SEAT])
    with graph.transaction() as transaction:
        transaction.connect_nodes("Joins", [("ada", key) for key in SEAT])
    assert graph.refresh().edges("Joins").count() == 2 * len(SEAT)


def test_history_finds_an_edge_by_its_renamed_members(graph: Graph) -> None:
    ends = {"from": "ada", "to": (DAY, "a")}
    for key in ({**ends, "began": DAY, "mark": "m"}, ("ada", (DAY, "a"), "m", DAY)):
        assert [version.op for version in graph.revisions.history("Takes", key)] == ["insert"]


def test_tuple_has_the_declared_order_and_the_id_the_order_of_the_properties(graphs: GraphHost) -> None:
    types = """
    node Slot { place: String  at: Date  code: String  @key(place, code, at) }
    edge Next: Slot -> Slot { note: String  by: String  @key(dst, note, src, by) }
    """
    graph = graphs.init(types)
    graph.insert("Slot", {"place": "p", "code": "c", "at": DAY}, {"place": "c", "code": "p", "at": DAY})
    for key in (("p", "c", DAY), ["p", "c", "2024-01-01"]):
        slot = graph.refresh().node("Slot", key)
        assert slot is not None
        assert slot.id == '["19723","c","p"]'
        assert len(graph.revisions.history("Slot", key)) == 1
    graph.connect_nodes("Next", [(("p", "c", DAY), ("c", "p", DAY), {"note": "n", "by": "b"})])
    (edge,) = graph.refresh().edges("Next").result()
    assert edge["from"] == '["19723","c","p"]'
    assert len(graph.revisions.history("Next", (("c", "p", DAY), "n", ("p", "c", DAY), "b"))) == 1
    with pytest.raises(InputError, match=r"incomplete key for Slot; expected \(place, code, at\)"):
        graph.node("Slot", ("p", "c"))


def test_type_of_a_later_schema_is_found_by_its_key(graphs: GraphHost) -> None:
    graph = graphs.init("node Person { name: String @key }")
    names = ["ant", "bee", "cat", "dog", "elk"]
    types = [f"node {name.title()} {{ a: String  b: String  c: String  @key(a, b, c) }}" for name in names]
    graph.schema.apply("\n".join(["node Person { name: String @key }", *types]))
    graph.refresh()
    for name in names:
        graph.insert(name.title(), {"a": "1", "b": "2", "c": "3"})
        for key in ({"a": "1", "b": "2", "c": "3"}, ("1", "2", "3")):
            assert graph.refresh().node(name.title(), key) is not None


def test_schema_of_a_past_commit_has_the_old_names(graph: Graph) -> None:
    past = graph.at("HEAD~1")
    seat = past.node("Seat", {"hall": "a", "day": DAY})
    assert seat is not None
    assert seat.id == '["19723","a"]'
