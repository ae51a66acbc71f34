"""A key with several members is accepted in the same forms wherever an entity is named, on disk and on a server."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import EntityNotFound, InputError
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Person { name: String @key }
node Day { at: Date @key  note: Blob? }
node Room { number: I32  house: String  built: Date  plan: Blob?  @key(house, number) }
node Shift { start: DateTime  room: I32  @key(start, room) }
node Tick { at: DateTime @key  note: Blob? }
node Level { height: F64 @key  note: Blob? }
edge Stays: Person -> Room
edge Next: Room -> Room { @key(src, dst) }
edge Works: Person -> Shift
edge Follows: Day -> Day
"""
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ROOM: list[Any] = [("a", 1), ["a", 1], {"house": "a", "number": 1}, {"number": "1", "house": "a"}, ("a", "1")]
SHIFT: list[Any] = [(NOON, 1), [NOON, 1], {"room": 1, "start": NOON}, ("2024-01-01T12:00:00Z", 1)]
DAY: list[Any] = [date(2024, 1, 1), (date(2024, 1, 1),), {"at": date(2024, 1, 1)}, "2024-01-01"]
WRONG: list[tuple[Any, str]] = [
    (("a",), r"incomplete key for Room; expected \(house, number\)"),
    (("a", 1, 2), r"incomplete key for Room; expected \(house, number\)"),
    ({"house": "a"}, "key Room.number: expected I32, got null"),
    (("a", b"1"), "key Room.number: expected I32, got bytes"),
    (5, r"incomplete key for Room; expected \(house, number\)"),
]


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    graph.insert("Person", {"name": "ada"})
    graph.insert("Day", {"at": date(2024, 1, 1), "note": b"x"})
    rooms = [{"house": "a", "number": number, "built": date(1900, 1, 1), "plan": b"x"} for number in (1, 2)]
    graph.insert("Room", *rooms)
    graph.insert("Tick", {"at": NOON, "note": b"x"})
    graph.insert("Level", {"height": 1e21, "note": b"x"}, {"height": 0.5})
    graph.insert("Shift", {"start": NOON, "room": 1})
    return graph


def test_edges_accept_every_form(graph: Graph) -> None:
    graph.connect_nodes("Stays", [("ada", key) for key in ROOM])
    graph.connect_nodes("Works", [("ada", key) for key in SHIFT] + [(("ada",), SHIFT[0]), ({"name": "ada"}, SHIFT[0])])
    graph.connect_nodes("Follows", [(key, key) for key in DAY])
    with graph.transaction() as transaction:
        transaction.connect_nodes("Stays", [("ada", key) for key in ROOM])
        transaction.connect_nodes("Works", [("ada", key) for key in SHIFT])
    graph.refresh()
    counts = {name: graph.edges(name).count() for name in ("Stays", "Works", "Follows")}
    assert counts == {"Stays": 2 * len(ROOM), "Works": 2 * len(SHIFT) + 2, "Follows": len(DAY)}


@pytest.mark.parametrize(("key", "message"), WRONG)
def test_edges_reject_a_key_that_does_not_match(graph: Graph, key: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        graph.connect_nodes("Stays", [("ada", key)])


def test_history_accepts_every_form(graph: Graph) -> None:
    graph.connect_nodes("Next", [(("a", 1), ("a", 2))])
    ends: list[Any] = [(("a", 1), ("a", 2)), {"from": ("a", 1), "to": {"number": 2, "house": "a"}}]
    keys = {"Room": ROOM, "Shift": SHIFT, "Day": DAY, "Person": ["ada", ("ada",), {"name": "ada"}], "Next": ends}
    for type_name, forms in keys.items():
        for key in forms:
            assert [version.op for version in graph.revisions.history(type_name, key)] == ["insert"], key
            assert graph.revisions.blame(type_name, key), key


@pytest.mark.parametrize(("key", "message"), WRONG)
def test_history_and_blobs_reject_a_key_that_does_not_match(graph: Graph, key: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        graph.revisions.history("Room", key)
    with pytest.raises(InputError, match=message):
        graph.revisions.blame("Room", key)
    with pytest.raises(InputError, match=message):
        graph.put_blob("Room", key, "plan", b"y")


def test_blobs_accept_every_form(graph: Graph) -> None:
    names = {"Room": ROOM, "Day": DAY, "Tick": [NOON, (NOON,), "2024-01-01T12:00:00Z"], "Level": [1e21, (0.5,)]}
    for type_name, forms in names.items():
        property_name = "plan" if type_name == "Room" else "note"
        for number, key in enumerate(forms):
            content = f"version {number}".encode()
            graph.put_blob(type_name, key, property_name, content)
            assert graph.refresh().blob(type_name, key, property_name).read() == content
    with pytest.raises(EntityNotFound):
        graph.put_blob("Room", ("a", 3), "plan", b"y")


@pytest.mark.parametrize("key", ["99999999999999999999", "true", 19723, True])
def test_a_date_key_is_never_a_number(graph: Graph, key: Any) -> None:
    with pytest.raises(InputError, match=r"key Day\.at: expected Date"):
        graph.blob("Day", key, "note")
