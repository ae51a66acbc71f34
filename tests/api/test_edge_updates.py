"""Updates of edges through the handle: values, costs of paths, conflicts by row, transactions, repeated requests."""

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InputError, ReadSetConflict, VersionConflict
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = """
node City { name: String @key }
edge Road: City -> City { km: F64?  note: String?  opened: Date? }
"""
CHEAPEST = """
query cheapest() {
    match { $a: City { name: "a" }  $d: City { name: "d" }  $p = any shortest $a $r:road{1,3} $d by $r.km }
    return { nodes($p) as names, cost($p) as km }
}
"""


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    with graph.transaction() as tx:
        tx.insert("City", [{"name": name} for name in "abcd"])
        roads = [("a", "b", 1.0), ("b", "d", 1.0), ("a", "c", 2.0), ("c", "d", 2.0)]
        tx.connect_nodes("Road", [(source, target, {"km": km}) for source, target, km in roads])
    return graph


def cheapest(graph: Graph) -> tuple[str, float]:
    row = graph.query(CHEAPEST).one()
    return "".join(row["names"]), row["km"]


def test_costs_of_paths_follow_updated_edges(graph: Graph) -> None:
    assert cheapest(graph) == ("abd", 2.0)
    done = graph.update("Road", where="from = 'a' and to = $t", set={"km": 9.0, "opened": "2020-01-01"}, t="b")
    assert (done.nodes, done.edges) == ({}, {"Road": 1})
    assert cheapest(graph) == ("acd", 4.0)
    assert graph.mutate("match { $a: City  $a $r:road $b } update $r set { km: 10 - $r.km }").edges == {"Road": 4}
    assert cheapest(graph) == ("abd", 10.0)
    with graph.transaction() as tx:
        tx.update("Road", where="opened is not null", set={"km": None, "note": "closed"})
        tx.mutate('match { $a: City  $a $r:road $b  $r.note = "closed" } update $r set { opened: null }')
        assert tx.edges("Road").filter("km is null and opened is null").count() == 1
    assert cheapest(graph) == ("acd", 16.0)
    assert graph.edges("Road").count() == 4
    assert cheapest(open_again(graph)) == ("acd", 16.0)
    assert not graph.update("Road", where="id = 'none'", set={"km": 1.0})


def test_endpoints_cannot_be_set(graph: Graph) -> None:
    with pytest.raises(InputError, match="'to' is an endpoint of Road and cannot be changed") as refused:
        graph.update("Road", where="from = 'a'", set={"to": "d"})
    assert refused.value.hint == "delete the edge and insert it again"
    with pytest.raises(InputError, match="Road has no property 'kmm'"):
        graph.update("Road", where="from = 'a'", set={"kmm": 1.0})


def test_updates_of_edges_conflict_by_row(graph: Graph) -> None:
    other = open_again(graph, durability="fsync", actor="rival")
    other.update("Road", where="from = 'b'", set={"km": 3.0})
    graph.update("Road", where="from = 'c'", set={"km": 4.0})  # another edge
    other.update("Road", where="from = 'a' and to = 'b'", set={"note": "x"})
    graph.update("Road", where="from = 'a'", set={"km": 5.0})  # another property
    with pytest.raises(VersionConflict) as conflict:
        graph.update("Road", where="from = 'b'", set={"km": 6.0})
    assert (conflict.value.actor, len(conflict.value.changed_ids)) == ("rival", 1)
    assert graph.retry(lambda handle: handle.update("Road", where="from = 'b'", set={"km": 6.0}))
    other.refresh().connect_nodes("Road", [("d", "a", {"km": 1.0})])
    with pytest.raises(VersionConflict):
        graph.update("Road", where="km < 2", set={"note": "short"})  # the predicate gained an edge
    graph.refresh()
    with pytest.raises(ReadSetConflict), graph.transaction() as tx:  # noqa: PT012 - it fails at its end
        tx.update("Road", where="from = 'd'", set={"note": "mine"})
        other.update("Road", where="from = 'd'", set={"note": "theirs"})


def test_delete_of_a_node_conflicts_with_an_updated_edge(graph: Graph) -> None:
    other = open_again(graph, durability="fsync")
    other.update("Road", where="to = 'd' and from = 'b'", set={"note": "x"})
    with pytest.raises(VersionConflict):
        graph.delete("City", where="name = 'b'")


def test_repeated_update_of_edges_is_applied_once(graph: Graph) -> None:
    def grow() -> omnigraph.Receipt:
        return graph.mutate(
            "match { $a: City  $a $r:road $b } update $r set { km: $r.km * 2 }", idempotency_key="double"
        )

    first, second = grow(), grow()
    assert (first.replayed, second.replayed) == (False, True)
    assert cheapest(graph) == ("abd", 4.0)
