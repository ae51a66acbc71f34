"""Guarantees of writes through the public API."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, Receipt
from omnigraph.engine.writes import mutate
from omnigraph.errors import (
    ConstraintViolation,
    KeyConflict,
    ResourceLimitExceeded,
    StatementConflict,
    UniqueViolation,
    VersionConflict,
)
from omnigraph.ingest.load import LoadOptions, load
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.stage import stage
from tests.rig.plugin import S3
from tests.rig.proxy import requests_of

SCHEMA = """
node Person { name: String @key  mail: String? @unique  age: I32? @index }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City @card(0..1)
"""
ANN = {"name": "ann", "mail": "a@x", "age": 30}


def fill(graph: Graph) -> Graph:
    graph.insert("Person", ANN, {"name": "bob"}, {"name": "cyd"})
    graph.insert("City", {"name": "rome"}, {"name": "oslo"})
    graph.connect_nodes("Knows", [("ann", "bob"), ("cyd", "ann"), ("ann", "ann"), ("bob", "cyd")])
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return fill(omnigraph.init(tmp_path / "g", SCHEMA, durability="os"))


@pytest.fixture
def other(graph: Graph) -> Graph:
    """A handle that shares nothing with the first, as in another process."""
    found = omnigraph.open(graph.uri, durability="fsync")
    assert found._handle.branch_state is not graph._handle.branch_state
    return found


def contents(graph: Graph) -> list[bytes]:
    return list(graph.export())


def heads(graph: Graph) -> dict[str, int]:
    """The newest version of every table directory: no write of ours ever moves it."""
    return {key: graph._handle.store.open_dataset(one.location).version for key, one in _tables(graph).items()}


def _tables(graph: Graph) -> Any:
    return graph._handle.branch_state.refresh().state.tables


def after_first(monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]) -> None:
    """Somebody is quicker: when the next mutation is staged, before it lands."""
    original, left = stage, [deed]

    def staged(*given: Any, **how: Any) -> Any:
        answer = original(*given, **how)
        if left:
            left.pop()()
        return answer

    monkeypatch.setattr(mutate, "stage", staged)


def test_a_mutation_that_fails_in_its_second_statement_leaves_nothing(graph: Graph) -> None:
    before = contents(graph), heads(graph), dict(_tables(graph)), graph.log()
    with pytest.raises(ConstraintViolation) as refused:
        graph.mutate('insert Person { name: "eve" } insert Knows { from: "eve", to: "ghost" }')
    assert refused.value.effect == "none"
    assert (contents(graph), heads(graph), dict(_tables(graph)), graph.log()) == before
    assert graph.mutate('insert Person { name: "eve" } insert Knows { from: "eve", to: "ann" }')


def test_node_and_its_edge_are_inserted_in_one_commit(graph: Graph) -> None:
    before = graph.log()
    done = graph.mutate('insert Person { name: "eve" } insert LivesIn { from: "eve", to: "rome" }')
    assert (done.nodes, done.edges) == ({"Person": 1}, {"LivesIn": 1})
    assert [one.id for one in graph.log()] == [done.commit_id, *(one.id for one in before)]
    asked = 'match { $p: Person { name: "eve" }  $p livesIn $c } return { $c.name }'
    assert graph.query(asked).scalar() == "rome"


def test_statements_that_touch_a_deleted_row_are_rejected_before_any_effect(s3: S3) -> None:
    graph = omnigraph.init(s3.url, SCHEMA)
    graph.insert("Person", ANN)
    with requests_of(s3.proxy) as made, pytest.raises(StatementConflict, match=r"'ann'.*statement 1.*statement 2"):
        graph.mutate('update Person set { age: 1 } where name = "ann" delete Person where name = "ann"')
    assert "PUT" not in made.counts
    graph.mutate('insert Person { name: "eve" } delete Person where name = "ann"')
    assert graph.nodes("Person").ids() == ["eve"]


def test_node_delete_cascades_to_edges_in_one_commit(graph: Graph) -> None:
    before = len(graph.log())
    done = graph.delete("Person", where='name = "ann"')
    assert (done.nodes, done.edges) == ({"Person": 1}, {"Knows": 3})
    assert len(graph.log()) == before + 1
    assert [one for one in contents(graph) if b'"ann"' in one] == []


def test_insert_of_an_existing_key_is_rejected_and_an_upsert_changes_its_row(graph: Graph) -> None:
    before, row_id = contents(graph), _row_id(graph, "ann")
    with pytest.raises(KeyConflict):
        graph.mutate('insert Person { name: "ann", age: 31 }')
    assert contents(graph) == before
    assert graph.mutate('upsert Person { name: "ann", age: 31 }').nodes == {"Person": 1}
    found = graph.query('match { $p: Person { name: "ann" } } return { $p.age, $p.mail }')
    assert found.to_dicts() == [{"p.age": 31, "p.mail": "a@x"}]
    assert _row_id(graph, "ann") == row_id


def test_append_of_an_existing_id_is_rejected(graph: Graph) -> None:
    before = contents(graph), graph.log()
    lines = b'{"type":"Person","data":{"name":"new"}}\n{"type":"Person","data":{"name":"bob"}}'
    with pytest.raises(KeyConflict) as refused:
        graph.load(lines, mode="append")
    assert refused.value.entity_id == "bob"
    assert (contents(graph), graph.log()) == before


def test_a_merge_is_an_update_and_an_insert_in_one_commit(graph: Graph) -> None:
    before = len(graph.log())
    row_id = _row_id(graph, "bob")
    done = graph.load({"Person": [{"name": "bob", "age": 9}, {"name": "new"}]}, mode="merge")
    assert isinstance(done, Receipt)
    assert done.nodes == {"Person": 2}
    assert len(graph.log()) == before + 1
    assert (graph["Person", "bob"].age, graph["Person", "new"].age) == (9, None)
    assert _row_id(graph, "bob") == row_id
    assert graph.query("match { $p: Person } return { count($p) as n }").scalar() == 4


def _row_id(graph: Graph, name: str) -> int:
    found = graph.refresh().table("Person").to_table(columns=["id"], with_row_id=True).to_pylist()
    return next(int(one["_rowid"]) for one in found if one["id"] == name)


def test_overwrite_that_drops_an_endpoint_is_rejected(graph: Graph) -> None:
    before = contents(graph), graph.log()
    with pytest.raises(ConstraintViolation, match="cyd"):
        graph.load({"Person": [ANN, {"name": "bob"}]}, mode="overwrite")
    assert (contents(graph), graph.log()) == before


def test_load_row_limit_applies_only_if_given(graph: Graph) -> None:
    rows = [{"type": "City", "data": {"name": f"c{n}"}} for n in range(8193)]
    few = LoadOptions(limits=LoadLimits(rows=8192))
    before, version = (graph._handle.store.effects.counts_by_kind(), graph._handle.branch_state.refresh().version)
    with pytest.raises(ResourceLimitExceeded) as refused:
        load(graph._handle.branch_state, rows, "merge", options=few)
    assert (refused.value.limit, refused.value.actual) == (8192, 8193)
    assert graph._handle.store.effects.counts_by_kind() == before  # no intent either
    assert graph._handle.branch_state.refresh().version == version
    done = graph.load(rows, mode="merge")
    assert isinstance(done, Receipt)
    assert done.nodes == {"City": 8193}
    assert graph._handle.branch_state.refresh().version == version + 1


@pytest.mark.parametrize(
    ("mine", "theirs", "error"),
    [
        ('insert Person { name: "x", mail: "m@x" }', 'insert Person { name: "y", mail: "m@x" }', UniqueViolation),
        (
            'insert LivesIn { from: "ann", to: "rome" }',
            'insert LivesIn { from: "ann", to: "oslo" }',
            ConstraintViolation,
        ),
    ],
)
def test_one_of_two_jointly_invalid_writes_lands(
    graph: Graph, other: Graph, monkeypatch: pytest.MonkeyPatch, mine: str, theirs: str, error: type[Exception]
) -> None:
    after_first(monkeypatch, lambda: other.mutate(theirs))
    before = len(graph.log())
    with pytest.raises(error):
        graph.mutate(mine)
    assert len(graph.refresh().log()) == before + 1
    assert contents(graph) == contents(other.refresh())


def test_strict_update_ignores_indexes_built_by_others(graph: Graph, other: Graph) -> None:
    assert other.maintenance.ensure_indices()
    assert graph.update("Person", where='name = "ann"', set={"age": 31}).nodes == {"Person": 1}
    assert other.query("match { $p: Person  $p.age = 31 } return { $p.name }").scalar() == "ann"
    other.update("Person", where='name = "ann"', set={"age": 33})
    with pytest.raises(VersionConflict):
        graph.update("Person", where='name = "ann"', set={"age": 32})
