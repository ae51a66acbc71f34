"""Open handles, prepared queries, transactions and caches see the new schema."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import (
    ClientError,
    HistoryReclaimed,
    OmnigraphError,
    PreconditionFailed,
    ReadOnlyError,
    ReadSetConflict,
    SchemaUnsupported,
    StorageError,
    TypeCheckError,
    UsageError,
)
from omnigraph.testing import graph as new_graph
from tests.evolve.cases import rows_of

BEFORE = "node A { k: String @key  n: I32? }\nedge E: A -> A { w: I32? }"
AFTER = 'node B @rename_from("A") { k: String @key  m: I64? @rename_from("n") }\nedge E: B -> B'
DATA = {"A": [{"k": "a", "n": 1}, {"k": "b"}], "E": [{"from": "a", "to": "b", "w": 3}]}
OLD = "match { $x: A  $x e $y } return { $x.k, $x.n, $y.k as other }"
NEW = "match { $x: B  $x e $y } return { $x.k, $x.m, $y.k as other }"


def test_an_open_handle_sees_the_new_schema() -> None:
    with new_graph(BEFORE, DATA) as graph:
        other, pinned = omnigraph.open(graph.uri), graph.revisions.pin()
        ask = other.prepare(OLD)
        assert len(other.query(OLD)) == len(ask()) == 1
        graph.schema.apply(AFTER)
        assert other.query(NEW).to_dicts() == [{"x.k": "a", "x.m": 1, "other": "b"}]
        for again in (lambda: other.query(OLD), ask):
            with pytest.raises(TypeCheckError, match="A"):
                again()
        assert pinned.query(OLD).to_dicts() == [{"x.k": "a", "x.n": 1, "other": "b"}]
        with pytest.raises(TypeCheckError):
            other.mutate('insert A { k: "c" }')
        other.mutate('insert B { k: "c", m: 9 }')
        with pytest.raises(ClientError):
            other.insert("A", {"k": "d"})
        other.insert("B", {"k": "d"})
        assert sorted(rows_of(graph)["node:B"]) == ["a", "b", "c", "d"]


def test_prepared_query_works_if_its_names_remain() -> None:
    with new_graph(BEFORE, DATA) as graph:
        ask = graph.prepare("query q($n: I64) { match { $x: A  $x.n = $n } return { $x.k } }")
        assert len(ask(n=1)) == 1
        graph.schema.apply(BEFORE.replace("n: I32?", "n: I64?  extra: String?"))
        graph.insert("A", {"k": "big", "n": 1 << 40})
        assert [row["x.k"] for row in ask(n=1 << 40).to_dicts()] == ["big"]


@pytest.mark.parametrize("change", ["update", "insert", "delete"])
def test_transaction_started_before_the_apply_is_rejected(change: str) -> None:
    with new_graph(BEFORE, DATA) as graph:
        other = omnigraph.open(graph.uri)
        with pytest.raises(ReadSetConflict):
            _overtaken(graph, other, change)
        assert sorted(rows_of(graph)["node:B"]) == ["a", "b"]
        assert rows_of(graph)["node:B"]["a"]["m"] == 1


def _overtaken(graph: Graph, other: Graph, change: str) -> None:
    """A transaction in which the schema changes before it ends."""
    with other.transaction() as tx:
        if change == "insert":
            tx.insert("A", {"k": "late", "n": 5})
        else:
            text = 'update A set { n: 5 } where k = "a"'
            tx.mutate(text if change == "update" else 'delete A where k = "a"')
        graph.schema.apply(AFTER)


def test_plan_is_rejected_for_another_schema() -> None:
    with new_graph(BEFORE, DATA) as graph:
        plan = graph.schema.plan(AFTER)
        assert (bool(plan), plan.supported) == (True, True)
        graph.schema.apply(BEFORE + "\nnode C { k: String @key }")
        with pytest.raises(ReadSetConflict, match="changed since the plan was created"):
            graph.schema.apply(plan)
        done = graph.schema.apply(graph.schema.plan(AFTER))
        assert done.applied
        assert done.steps
        assert done.to_json()["graph_manifest_version"] == done.commit.manifest_version  # type: ignore[union-attr]


def test_apply_options_are_validated() -> None:
    with new_graph(BEFORE, DATA) as graph:
        with pytest.raises(UsageError, match="not int"):
            graph.schema.apply(5)  # type: ignore[arg-type]
        head = graph.head.id
        graph.insert("A", {"k": "z"})
        with pytest.raises(PreconditionFailed):
            graph.schema.apply(AFTER, if_commit=head)
        with pytest.raises(ReadOnlyError):
            graph.at(head).schema.apply(AFTER)
        reader = omnigraph.open(graph.uri, read_only=True)
        with pytest.raises(ReadOnlyError):
            reader.schema.apply(AFTER)
        dry = reader.schema.apply(AFTER, dry_run=True)
        assert (dry.applied, len(dry.steps)) == (False, len(graph.schema.plan(AFTER).steps))
        with pytest.raises(SchemaUnsupported, match="OG-MF-106"):
            reader.schema.apply(BEFORE.replace("n: I32?", "n: String?"), dry_run=True)
        assert graph.schema.apply(AFTER, if_commit=graph.refresh().head.id)
        assert not graph.schema.apply("// a comment\n" + AFTER)


def test_branches_have_schemas_of_their_own() -> None:
    with new_graph(BEFORE, DATA) as graph:
        dev = graph.branches.create("dev")
        graph.schema.apply(AFTER, branch="dev")
        assert (graph.schema.source, dev.refresh().schema.source) == (BEFORE, AFTER)
        graph.insert("A", {"k": "main"})
        dev.insert("B", {"k": "dev"})
        graph.schema.apply(AFTER)
        assert graph.schema.ir == dev.schema.ir
        assert sorted(rows_of(graph)["node:B"]) == ["a", "b", "main"]
        assert sorted(rows_of(dev)["node:B"]) == ["a", "b", "dev"]


def test_branches_that_added_the_same_properties_in_another_order_are_merged() -> None:
    one, both = BEFORE.replace("n: I32?", "n: I32?  x: I32?"), "n: I32?  x: I32?  y: I32?"
    other, end = BEFORE.replace("n: I32?", "n: I32?  y: I32?"), BEFORE.replace("n: I32?", both)
    with new_graph(BEFORE, DATA) as graph:
        dev = graph.branches.create("dev")
        for there, texts in ((graph, (one, end)), (dev, (other, end))):
            for text in texts:
                there.schema.apply(text)
        dev.insert("A", {"k": "dev", "x": 1, "y": 2})
        assert graph.merge("dev").outcome == "merged"
        assert (rows_of(graph)["node:A"]["dev"]["x"], rows_of(graph)["node:A"]["dev"]["y"]) == (1, 2)


def test_a_merge_base_that_was_erased_is_reported_with_a_way_out() -> None:
    with new_graph(BEFORE, DATA) as graph:
        dev = graph.branches.create("dev")
        for there, k in ((graph, "main"), (dev, "dev")):
            there.insert("A", {"k": k})
            there.schema.apply(BEFORE.replace("  n: I32?", ""), allow_data_loss=True)
        with pytest.raises(HistoryReclaimed, match="with its history") as gone:
            graph.merge("dev")
        assert "load --mode merge" in (gone.value.hint or "")
        graph.branches.create("dev2").load(b"".join(dev.export()), mode="merge")
        graph.merge("dev2")
        assert sorted(rows_of(graph)["node:A"]) == ["a", "b", "dev", "main"]


def test_lost_table_file_is_reported() -> None:
    with new_graph(BEFORE, DATA) as graph:
        for one in Path(graph.uri).glob("nodes/*/data/*.lance"):
            one.unlink()
        with pytest.raises(StorageError, match=r"cannot be read|missing") as told:
            graph.schema.apply(BEFORE.replace("n: I32?", "n: I64?"))
        assert "omnigraph check" in (told.value.hint or "")
        assert graph.schema.source == BEFORE


def _answers(graph: Graph, queries: list[str]) -> list[object]:
    return [graph.query(text).to_dicts() for text in queries]


def test_caches_are_not_used_for_the_new_schema() -> None:
    """Neighbor lists and columns in memory belong to exact versions of tables."""
    with new_graph(BEFORE, DATA) as graph:
        queries = [
            "match { $x: A  $x e $y } return { $x.k, $y.k as other } order { $x.k }",
            "match { $x: A } return { $x.k, $x.n } order { $x.k }",
            "match { $x: A  $x.n > 0 } return { count($x) as many }",
        ]
        first = [_answers(graph, queries) for _ in range(30)][-1]
        graph.schema.apply("node A { k: String @key }\nedge E: A -> A { w: I32? }")
        with pytest.raises(OmnigraphError):
            graph.query(queries[1])
        graph.schema.apply(BEFORE)
        assert _answers(graph, queries) == [
            first[0],
            [{"x.k": "a", "x.n": None}, {"x.k": "b", "x.n": None}],
            [{"many": 0}],
        ]
