"""A rejected step of a transaction leaves neither rows nor generated ids."""

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConstraintViolation
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Note { text: String }
node Person { name: String @key  age: I64?  @range(age, 0..150) }
edge About: Note -> Person
edge Knows: Person -> Person @card(0..2)
"""
HALF = 'insert Note { text: "ghost" } insert Person { name: "old", age: 999 }'


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    made = graphs.init(SCHEMA)
    made.insert("Person", {"name": "ann"}, {"name": "bob"})
    return made


def test_rejected_step_leaves_no_rows(graph: Graph) -> None:
    with graph.transaction() as tx:
        tx.mutate('insert Note { text: "kept" }')
        with pytest.raises(ConstraintViolation):
            tx.mutate(HALF)
        assert [one["text"] for one in tx.nodes("Note").result()] == ["kept"]
    assert [one["text"] for one in graph.nodes("Note").result()] == ["kept"]


def test_ids_read_after_a_refused_step_are_those_of_the_commit(graph: Graph) -> None:
    with graph.transaction() as tx:
        with pytest.raises(ConstraintViolation):
            tx.mutate(HALF)
        tx.mutate('insert Note { text: "first" }')
        tx.mutate('insert Note { text: "second" }')
        seen = {one["text"]: one["id"] for one in tx.nodes("Note").result()}
        tx.connect_nodes("About", [(seen["first"], "ann")])
    assert {one["text"]: one["id"] for one in graph.nodes("Note").result()} == seen
    found = graph.query("match { $n: Note  $n about $p } return { $n.text }")
    assert [one["n.text"] for one in found] == ["first"]


def test_a_refused_load_of_two_types_leaves_nothing(graph: Graph) -> None:
    records = {"Note": [{"text": "a"}], "Person": [{"name": "ann"}]}
    with graph.transaction() as tx:
        with pytest.raises(omnigraph.errors.KeyConflict):
            tx.load(records, mode="append")
        assert len(tx.nodes("Note").result()) == 0
    assert tx.receipt is not None
    assert tx.receipt.commit is None


def test_edge_deleted_and_upserted_in_one_transaction_has_its_new_endpoints(graph: Graph) -> None:
    graph.insert("Knows", {"id": "e1", "from": "ann", "to": "bob"})
    with graph.transaction() as tx:
        tx.delete("Knows", where='from = "ann"')
        tx.upsert("Knows", {"id": "e1", "from": "bob", "to": "bob"})
        tx.upsert("Knows", {"id": "e2", "from": "bob", "to": "ann"})
        assert sorted(one["id"] for one in tx.edges("Knows").result()) == ["e1", "e2"]
    ends = [(one["id"], one["from"]) for one in graph.edges("Knows").result()]
    assert sorted(ends) == [("e1", "bob"), ("e2", "bob")]
