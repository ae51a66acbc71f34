"""Updates and deletes fed by a match, through the handle: conflicts, transactions, repeated requests."""

import asyncio
from pathlib import Path

import pytest

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.errors import AmbiguousAssignment, InputError, ReadSetConflict, TypeCheckError, VersionConflict
from tests.rig.graph_hosts import open_again

COLLEAGUES = 'match { $p: Person  $p worksAt $f  $f.name = "acme" } update $p set { team: $f.name }'
STRANGERS = "match { $p: Person  not { $p worksAt $_ } } delete $p"


def teams(graph: Graph) -> dict[str, str | None]:
    rows = graph.query("match { $p: Person } return { $p.name, $p.team }").to_records()
    return {name: team for name, team in rows}  # noqa: C416 - the records have a type of their own


def test_receipt_counts_every_entity_once(graph: Graph) -> None:
    done = graph.mutate("match { $p: Person  $p $k:knows $q } update $p set { team: $n }", n="new")
    assert (done.nodes, done.edges) == ({"Person": 4}, {})
    assert set(teams(graph).values()) == {"new"}
    done = graph.mutate("match { $p: Person  $p $k:knows $q  $k.since is null } delete $k")
    assert (done.nodes, done.edges) == ({}, {"Knows": 4})
    done = graph.mutate(STRANGERS)
    assert (done.nodes, done.edges) == ({"Person": 1}, {})
    assert not graph.mutate(STRANGERS)


def test_ambiguous_assignment_writes_nothing(graph: Graph) -> None:
    head = graph.head.id
    with pytest.raises(AmbiguousAssignment, match=r"Person 'bob'.* to 'age'") as refused:
        graph.mutate("match { $p: Person  $p knows $q } update $p set { age: $q.age }")
    assert refused.value.effect == "none"
    assert {refused.value.first_value, refused.value.second_value} == {"null", 30}
    assert graph.refresh().head.id == head


@pytest.mark.parametrize(
    "change",
    [
        'insert Person { name: "eve" }',
        'update Person set { age: 1 } where name = "dee"',
        'update Firm set { size: 1 } where name = "zeta"',
        'insert WorksAt { from: "dee", to: "acme" }',
        'delete WorksAt where from = "ann"',
    ],
)
def test_change_of_anything_that_the_match_reads_is_a_conflict(graph: Graph, change: str) -> None:
    teams(graph)
    open_again(graph).mutate(change)
    with pytest.raises(VersionConflict):
        graph.mutate(COLLEAGUES)
    assert graph.retry(lambda handle: handle.mutate(COLLEAGUES))


def test_change_of_an_edge_of_a_path_is_a_conflict(graph: Graph) -> None:
    friends = 'match { $p: Person { name: "ann" }  $t = trail $p knows{2,2} $q } update $q set { team: "far" }'
    teams(graph)
    open_again(graph).mutate('delete Knows where from = "bob"')
    with pytest.raises(VersionConflict):
        graph.mutate(friends)


OLDER = "match { $p: Person  $p.age * 2 > 50  $f: Firm  $f.size = $p.age } update $p set { team: $f.name }"


@pytest.mark.parametrize(
    ("change", "conflicts"),
    [
        ('update Person set { team: "x" } where name = "dee"', False),  # neither passes the filter
        ('update Person set { age: 11 } where name = "dee"', False),
        ('insert Person { name: "eve", age: 20 }', False),
        ('update Person set { age: 31 } where name = "ann"', True),  # a value that the match reads
        ('update Person set { team: "x" } where name = "ann"', True),  # the value that is assigned
        ('insert Person { name: "eve", age: 40 }', True),
        ('update Firm set { size: 31 } where name = "zeta"', True),
    ],
)
def test_match_of_nodes_conflicts_by_row(graph: Graph, change: str, conflicts: bool) -> None:
    graph.upsert("Person", {"name": "ann", "age": 30}, {"name": "dee", "age": 10})
    graph.upsert("Firm", {"name": "acme", "size": 30})
    teams(graph)
    open_again(graph).mutate(change)
    if conflicts:
        with pytest.raises(VersionConflict):
            graph.mutate(OLDER)
    else:
        assert graph.mutate(OLDER).nodes == {"Person": 1}
        assert teams(graph)["ann"] == "acme"


def test_delete_of_matched_nodes_conflicts_with_their_edges_only(graph: Graph) -> None:
    lone = 'match { $p: Person  lower($p.name) = "dee" } delete $p'
    other = open_again(graph)
    teams(graph)
    other.mutate('insert Knows { from: "bob", to: "bob" }')
    other.mutate('insert Knows { from: "dee", to: "ann" }')
    with pytest.raises(VersionConflict, match="Knows"):
        graph.mutate(lone)
    graph.refresh()
    other.mutate('insert Knows { from: "bob", to: "bob" }')
    assert graph.mutate(lone).nodes == {"Person": 1}


def test_change_of_another_type_is_no_conflict(graph: Graph) -> None:
    open_again(graph).mutate('insert Note { text: "x" }')
    assert graph.mutate(COLLEAGUES).nodes == {"Person": 2}


def test_match_in_a_transaction_sees_its_writes(graph: Graph) -> None:
    with graph.transaction() as tx:
        tx.insert("Person", {"name": "eve"})
        tx.connect_nodes("WorksAt", [("eve", "acme")])
        tx.mutate(COLLEAGUES)
        tx.mutate('match { $p: Person  $p.team = "acme"  $p worksAt $f } update $f set { size: 3 }')
        assert tx.query("match { $f: Firm  $f.size = 3 } return { count(*) as n }").scalar() == 1
        tx.mutate("match { $p: Person  not { $p worksAt $_ } } delete $p")
    assert teams(graph) == {"ann": "acme", "bob": "acme", "cyd": None, "eve": "acme"}


def test_transaction_conflicts_with_a_change_of_what_its_match_read(graph: Graph) -> None:
    other = open_again(graph)
    with pytest.raises(ReadSetConflict), graph.transaction() as tx:  # noqa: PT012 - it fails at its end
        tx.mutate(COLLEAGUES)
        other.mutate('update Firm set { size: 9 } where name = "zeta"')


def test_repeated_request_is_recognised_by_its_key(graph: Graph) -> None:
    first = graph.mutate(COLLEAGUES, idempotency_key="k")
    assert graph.mutate(COLLEAGUES, idempotency_key="k").commit_id == first.commit_id
    with pytest.raises(InputError, match="a different request"):
        graph.mutate(COLLEAGUES.replace("acme", "zeta"), idempotency_key="k")


def test_matched_write_is_a_mutation(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(TypeCheckError, match="changes the graph"):
        graph.query(COLLEAGUES)
    assert not graph.mutate("match { $p: Person { name: $n } } delete $p", n="nobody")


def test_blobs_of_updated_nodes_stay(tmp_path: Path) -> None:
    schema = "node Doc { slug: String @key  raw: Blob?  n: I32? } edge Cites: Doc -> Doc"
    with omnigraph.init(tmp_path / "g", schema, durability="os") as graph:
        graph.insert("Doc", {"slug": "a", "raw": b"abc"}, {"slug": "b", "n": 4})
        graph.connect_nodes("Cites", [("a", "b")])
        graph.mutate("match { $d: Doc  $d cites $c } update $d set { n: $c.n }")
        assert graph["Doc", "a"].n == 4
        assert b"base64:YWJj" in b"".join(graph.export(types=["Doc"]))


def test_asynchronous_graph_runs_matched_writes_and_unions(graph: Graph) -> None:
    async def run() -> tuple[int, list[tuple[object, ...]]]:
        handle = AsyncGraph(graph)
        done = await handle.mutate(COLLEAGUES)
        union = "match { $p: Person } return { $p.team as t } union match { $f: Firm } return { $f.name as t }"
        result = await handle.query(f"{union} order {{ t }}")
        return done.total, result.to_records()

    assert asyncio.run(run()) == (2, [(None,), ("acme",), ("web",), ("zeta",)])
