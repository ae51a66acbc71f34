"""Upserts and patches of records: what they keep, how they name rows, conflicts, transactions, repeated requests."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.errors import (
    EntityNotFound,
    InputError,
    KeyConflict,
    PropertyValueError,
    ReadSetConflict,
    UniqueViolation,
    VersionConflict,
)
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = """
node Person { name: String @key  age: I32?  team: String @default("red")  mail: String? @unique  level: I32 }
node Slot { room: String  day: Date  note: String?  @key(room, day) }
node Note { text: String  more: String? }
edge Knows: Person -> Person @card(0..2) { since: Date?  note: String? }
"""


def fill(graph: Graph) -> Graph:
    graph.insert("Person", {"name": "ann", "age": 30, "mail": "a@x", "level": 1}, {"name": "bob", "level": 2})
    graph.insert("Knows", {"id": "k", "from": "ann", "to": "bob", "since": "2020-01-01"})
    return graph


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    return fill(graphs.init(SCHEMA))


@pytest.fixture(scope="module")
def shared(graphs: GraphHost) -> Graph:
    """The same graph, for requests that are refused."""
    return fill(graphs.init(SCHEMA))


def person(graph: Graph, name: str) -> tuple[Any, ...]:
    node = graph["Person", name]
    return node.age, node.team, node.mail, node.level


@dataclass
class Record:
    name: str
    age: int | None


def _frames(columns: dict[str, list[Any]]) -> list[Any]:
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [records, pa.table(columns), pa.record_batch(columns)]


def test_upsert_keeps_what_a_record_omits(graph: Graph) -> None:
    done = graph.upsert("Person", {"name": "ann", "age": 31}, {"name": "cyd", "level": 3}, {"name": "bob", "team": "x"})
    assert (done.nodes, done.ids) == ({"Person": 3}, {"Person": ["ann", "cyd", "bob"]})
    assert person(graph, "ann") == (31, "red", "a@x", 1)
    assert person(graph, "bob") == (None, "x", None, 2)
    assert person(graph, "cyd") == (None, "red", None, 3)
    graph.upsert("Person", {"name": "ann", "age": None, "mail": None})
    assert person(graph, "ann") == (None, "red", None, 1)
    assert not graph.upsert("Person", {"name": "ann", "team": "red"}, {"name": "bob"})
    graph.upsert("Person", Record("bob", 7))
    for index, people in enumerate(_frames({"name": ["ann", "bob"], "level": [7, 8]})):
        graph.upsert("Person", people)
        assert (person(graph, "ann"), person(graph, "bob")) == ((None, "red", None, 7), (7, "x", None, 8)), index
        graph.patch("Person", {"name": "ann", "level": 0})
    graph.load({"Person": [{"name": "bob", "level": 9}]}, mode="merge")  # a load replaces the whole entity
    assert person(graph, "bob") == (None, "red", None, 9)


def test_upsert_of_a_new_entity_needs_its_required_properties(graph: Graph) -> None:
    with pytest.raises(PropertyValueError, match=r"Person\.level.* of 'cyd'") as refused:
        graph.upsert("Person", {"name": "ann", "age": 1}, {"name": "cyd", "age": 2})
    assert "because the upsert inserts a new entity" in (refused.value.hint or "")
    assert person(graph.refresh(), "ann")[0] == 30
    with pytest.raises(KeyConflict, match=r"line 2: .*'ann', from line 1"):
        graph.upsert("Person", {"name": "ann", "age": 1}, {"name": "ann", "team": "x"})
    with pytest.raises(UniqueViolation):
        graph.upsert("Person", {"name": "bob", "mail": "a@x"})
    with pytest.raises(InputError, match="no property 'agee'"):
        graph.upsert("Person", {"name": "ann", "agee": 1})


def test_patch_changes_only_existing_entities(graph: Graph) -> None:
    done = graph.patch("Person", {"name": "ann", "age": 31}, {"id": "bob", "team": "x", "mail": "b@x"})
    assert (done.nodes, done.ids) == ({"Person": 2}, {})
    assert (person(graph, "ann"), person(graph, "bob")) == ((31, "red", "a@x", 1), (None, "x", "b@x", 2))
    with pytest.raises(EntityNotFound, match="'Person' has the id 'zoe'"):
        graph.patch("Person", {"name": "ann", "age": 1}, {"name": "zoe", "age": 2})
    assert person(graph.refresh(), "ann")[0] == 31
    for number, people in enumerate(_frames({"name": ["ann", "bob"], "age": [1, None]})):
        graph.patch("Person", people)
        assert (person(graph, "ann")[0], person(graph, "bob")[0]) == (1, None), number
        graph.update("Person", where="age is null or age = 1", set={"age": 9})
    graph.insert("Slot", {"room": "r", "day": "2024-01-01"})
    graph.patch("Slot", {"room": "r", "day": "2024-01-01", "note": "full"})
    assert graph["Slot", {"room": "r", "day": "2024-01-01"}].note == "full"
    assert graph.patch("Knows", {"id": "k", "note": "x"}).edges == {"Knows": 1}
    assert graph.patch("Knows", pa.table({"id": ["k"], "since": [None]})).edges == {"Knows": 1}
    assert graph.edges("Knows").select("from", "to", "since", "note").to_records() == [("ann", "bob", None, "x")]


@pytest.mark.parametrize(
    ("type_name", "record", "message"),
    [
        ("Person", {"age": 1}, r"patching Person requires its key \(name\) or 'id'"),
        ("Note", {"text": "x"}, "patching Note requires 'id'"),
        ("Note", {"id": None, "text": "x"}, "patching Note requires 'id'"),
        ("Note", pa.table({"id": pa.array([None], pa.string()), "text": ["x"]}), "patching Note requires 'id'"),
        ("Slot", {"room": "r", "note": "x"}, r"only part of the Slot key \(day, room\)"),
        ("Person", {"name": "ann", "id": "bob", "age": 1}, "does not match its key"),
        ("Person", {"name": "ann", "level": None}, "expected I32, got null"),
        ("Knows", {"id": "k", "to": "ann"}, "the endpoints of Knows cannot be changed"),
        ("Persn", {"name": "ann"}, "unknown type 'Persn'"),
        ("Person", 7, "expected a dict or a dataclass, got int"),
    ],
)
def test_invalid_patch_is_refused(shared: Graph, type_name: str, record: Any, message: str) -> None:
    head = shared.head.id
    records = [record] if isinstance(record, int) else record
    with pytest.raises(InputError, match=message):
        shared.patch(type_name, records)
    assert shared.refresh().head.id == head


def test_upsert_moves_an_edge_and_counts_it_at_both_ends(graph: Graph) -> None:
    graph.upsert("Knows", {"id": "k", "from": "bob", "to": "ann"}, {"from": "bob", "to": "bob"})
    rows = sorted(graph.edges("Knows").select("from", "to", "since").to_records(), key=str)
    assert [(source, target, str(since)) for source, target, since in rows] == [
        ("bob", "ann", "2020-01-01"),
        ("bob", "bob", "None"),
    ]
    with pytest.raises(omnigraph.errors.ConstraintViolation, match="@card"):
        graph.upsert("Knows", {"id": "k2", "from": "bob", "to": "ann"})


Step = Callable[[Any], object]
VERBS: list[Step] = [
    lambda g: g.upsert("Person", {"name": "ann", "age": 1}),
    lambda g: g.patch("Person", {"name": "ann", "age": 1}),
    lambda g: g.mutate('patch Person { name: "ann", age: 1 }'),
    lambda g: g.mutate('upsert Person { name: "ann", age: 1, level: 1 }'),
]


@pytest.mark.parametrize("step", VERBS)
def test_upserts_and_patches_conflict_by_row(graph: Graph, step: Step) -> None:
    other = open_again(graph, durability="fsync")
    other.update("Person", where="name = 'bob'", set={"age": 3})  # another row
    other.update("Person", where="name = 'ann'", set={"team": "blue"})  # another property
    assert step(graph)
    other.refresh().update("Person", where="name = 'ann'", set={"age": 2})
    with pytest.raises(VersionConflict) as conflict:
        step(graph)
    assert conflict.value.changed_ids == ("ann",)
    graph.refresh()
    with pytest.raises(ReadSetConflict), graph.transaction() as tx:  # noqa: PT012 - it fails at its end
        step(tx)
        other.refresh().update("Person", where="name = 'ann'", set={"age": 5})
    assert graph.retry(step)
    assert person(graph, "ann") == (1, "blue", "a@x", 1)


def test_strict_insert_that_loses_a_race_reports_the_key(graph: Graph) -> None:
    other = open_again(graph, durability="fsync")
    other.insert("Person", {"name": "cyd", "level": 1})
    with pytest.raises(KeyConflict, match="already has an entity with id 'cyd'") as taken:
        graph.mutate('insert Person { name: "cyd", level: 2 }')
    assert "upsert" in (taken.value.hint or "")
    other.insert("Person", {"name": "dee", "level": 1})
    with pytest.raises(VersionConflict):
        graph.upsert("Person", {"name": "dee", "level": 5})  # the row did not exist when it was last shown
    assert person(graph.refresh(), "cyd")[3] == 1


def test_transaction_upserts_and_patches_its_own_rows(graph: Graph) -> None:
    with graph.transaction() as tx:
        tx.mutate('insert Person { name: "cyd", level: 1 }')
        tx.patch("Person", {"name": "cyd", "age": 2})
        tx.upsert("Person", {"name": "cyd", "team": "x"}, {"name": "ann", "team": "y"})
        with pytest.raises(EntityNotFound):
            tx.patch("Person", {"name": "zoe", "age": 1})
        with pytest.raises(KeyConflict):
            tx.mutate('insert Person { name: "cyd", level: 2 }')
        tx.delete("Person", where="name = 'bob'")
        tx.upsert("Person", {"name": "bob", "level": 9})
        assert tx.nodes("Person").count() == 3
    assert person(graph, "cyd") == (2, "x", None, 1)
    assert person(graph, "bob") == (None, "red", None, 9)
    assert graph.edges("Knows").count() == 0


def test_repeated_request_is_recognised(graph: Graph) -> None:
    first = graph.patch("Person", {"name": "ann", "age": 1}, idempotency_key="p")
    assert not first.replayed
    graph.patch("Person", {"name": "ann", "age": 2})
    assert graph.patch("Person", {"name": "ann", "age": 1}, idempotency_key="p").replayed
    assert person(graph, "ann")[0] == 2
    with pytest.raises(InputError, match="a different request"):
        graph.upsert("Person", {"name": "ann", "age": 1}, idempotency_key="p")
    insert = 'insert Person { name: "eve", level: 1 }'
    assert not graph.mutate(insert, idempotency_key="i").replayed
    assert graph.mutate(insert, idempotency_key="i").replayed


def test_a_merge_of_records_is_recognised_as_an_upsert(graph: Graph) -> None:
    merged = graph.load({"Person": [{"name": "fay", "level": 1}]}, mode="merge", idempotency_key="u")
    assert isinstance(merged, omnigraph.Receipt)
    again = graph.upsert("Person", {"name": "fay", "level": 1}, idempotency_key="u")  # described as before
    assert (merged.replayed, again.replayed) == (False, True)


def test_async_graph_patches(graph: Graph) -> None:
    async def patch() -> None:
        opened = AsyncGraph(graph)
        assert (await opened.patch("Person", {"name": "ann", "age": 4})).nodes == {"Person": 1}
        async with opened.transaction() as tx:
            await tx.patch("Person", {"name": "ann", "team": "z"})

    asyncio.run(patch())
    assert person(graph.refresh(), "ann") == (4, "z", "a@x", 1)
