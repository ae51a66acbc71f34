"""Ids of keyed edges: the same for every format, in transactions, and after an export."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph, testing
from omnigraph.cli.main import run
from omnigraph.errors import KeyConflict, VersionConflict
from omnigraph.ingest.assign_ids import key_ids
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from tests.maintenance.conftest import again, smuggle

SCHEMA = """
node Person { name: String @key }
node Firm { code: I64 @key }
edge Role: Person -> Firm { day: Date  kind: String  pay: F64?  @key(kind, dst, src, day) }
edge Badge: Person -> Firm { number: I32 @key }
"""
IR = new_identity(compile_schema("node A {}\nedge E: A -> A { @key(dst, src) }"), "01ARZ3NDEKTSV4RRFFQ69G5FAV")
ROLE = '["ada","7","18262","dev"]'
RECORD = {"from": "ada", "to": "7", "day": date(2020, 1, 1), "kind": "dev", "pay": 1.5}
LINE = '{"edge": "Role", "from": "ada", "to": "7", "data": {"day": "2020-01-01", "kind": "dev", "pay": 1.5}}\n'


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    made.load({"Person": [{"name": "ada"}, {"name": "bob"}], "Firm": [{"code": 7}]}, mode="append")
    yield made
    made.close()


def test_every_format_gives_a_keyed_edge_the_same_id(graph: Graph, tmp_path: Path) -> None:
    table = pa.table({"from": ["ada"], "to": ["7"], "day": [date(2020, 1, 1)], "kind": ["dev"], "pay": [1.5]})
    pq.write_table(table, tmp_path / "Role.parquet")
    (tmp_path / "Role.csv").write_text("src,dst,day,kind,pay\nada,7,2020-01-01,dev,1.5\n")
    (tmp_path / "many.ndjson").write_text(LINE)
    graph.load({"Role": [RECORD]}, mode="append")
    assert graph.edges("Role").ids() == [ROLE]
    head = graph.head.id
    sources: tuple[Any, ...] = (
        *({"Role": table}, {"Role": tmp_path / "Role.csv"}, {"Role": tmp_path / "Role.parquet"}),
        *(tmp_path / "many.ndjson", LINE.encode(), LINE.replace(" ", "").encode()),
    )
    for source in sources:
        graph.load(source, mode="merge")
        assert graph.refresh().head.id == head, source
        with pytest.raises(KeyConflict) as caught:
            graph.load(source, mode="append")
        assert (caught.value.entity_kind, caught.value.entity_id) == ("edge", ROLE)


def test_records_and_transactions_write_keyed_edges_by_key(graph: Graph) -> None:
    graph.insert("Role", RECORD)
    with pytest.raises(KeyConflict):
        graph.connect_nodes("Role", [("ada", 7, {"day": date(2020, 1, 1), "kind": "dev"})])
    graph.upsert("Role", {**RECORD, "pay": 2.5})
    with graph.transaction() as tx:
        tx.upsert("Role", {**RECORD, "pay": 3.5})
        tx.connect_nodes("Badge", [("ada", 7, {"number": 1})])
        tx.upsert("Badge", {"from": "bob", "to": "7", "number": 1})
    assert graph.edges("Role").result().to_records() == [(ROLE, "ada", "7", date(2020, 1, 1), "dev", 3.5)]
    assert graph.edges("Badge").result().to_records() == [("1", "bob", "7", 1)]
    with pytest.raises(KeyConflict), graph.transaction() as tx:
        tx.insert("Badge", {"from": "ada", "to": "7", "number": 1})
    assert graph.maintenance.check().findings == ()


def test_a_stale_handle_does_not_add_a_keyed_edge_twice(graph: Graph) -> None:
    other = omnigraph.open(graph.uri, durability="os")
    assert other.edges("Role").ids() == []
    graph.insert("Role", RECORD)
    with pytest.raises(KeyConflict):
        other.insert("Role", RECORD)
    with pytest.raises(VersionConflict):
        other.upsert("Role", {**RECORD, "pay": 9.0})
    other.refresh().upsert("Role", {**RECORD, "pay": 9.0})
    assert [row[-1] for row in graph.refresh().edges("Role").result().to_records()] == [9.0]


def test_the_history_of_a_keyed_edge_is_found_by_its_key(graph: Graph) -> None:
    graph.insert("Role", RECORD)
    graph.upsert("Role", {**RECORD, "pay": 2.5}, actor="ada")
    graph.insert("Badge", {"from": "bob", "to": "7", "number": 12})
    members = {"kind": "dev", "day": date(2020, 1, 1), "from": "ada"}
    for key in (ROLE, ("dev", 7, "ada", date(2020, 1, 1)), {**members, "to": 7}, {**members, "dst": "7"}):
        assert [version.op for version in graph.revisions.history("Role", key)] == ["update", "insert"]
    assert [version.commit.actor for version in graph.revisions.history("Role", ROLE)] == ["ada", None]
    assert graph.revisions.blame("Role", ROLE)["pay"].actor == "ada"
    assert len(graph.revisions.history("Badge", 12)) == 1
    with pytest.raises(omnigraph.errors.InputError, match="incomplete key for Role"):
        graph.revisions.history("Role", ("ada", 7))


def test_an_export_of_keyed_edges_loads_as_the_same_edges(graph: Graph, tmp_path: Path) -> None:
    graph.load(
        {"Role": [RECORD, {**RECORD, "kind": '"'}], "Badge": [{"from": "bob", "to": "7", "number": -1}]}, mode="append"
    )
    head = graph.head.id
    graph.export(tmp_path / "all.ndjson")
    graph.load(tmp_path / "all.ndjson", mode="merge")
    assert graph.refresh().head.id == head
    with testing.graph(SCHEMA) as copy:
        copy.load(tmp_path / "all.ndjson", mode="append")
        copy.export(tmp_path / "copy.ndjson")
    assert (tmp_path / "copy.ndjson").read_bytes() == (tmp_path / "all.ndjson").read_bytes()


def test_check_reports_an_edge_whose_id_is_not_that_of_its_key(graph: Graph) -> None:
    smuggle(graph, "edge:Badge", [{"id": "2", "src": "ada", "dst": "7", "number": 1}])
    (finding,) = again(graph).maintenance.check().findings
    assert (finding.kind, finding.entity_id) == ("key", "2")
    assert "the key requires the id '1'" in finding.reason


def test_the_command_line_finds_a_keyed_edge_by_its_key(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    graph.insert("Role", RECORD)
    graph.insert("Badge", {"from": "bob", "to": "7", "number": 12})
    for type_name, key, value in (("Role", ROLE, "pay 1.5"), ("Badge", "12", "number 12")):
        assert run(["history", type_name, key, "--uri", graph.uri]) == 0
        assert value in capsys.readouterr().out


@given(st.lists(st.lists(st.text(max_size=3), min_size=2, max_size=2), min_size=1))
def test_ids_of_many_rows_equal_those_of_single_rows(keys: list[list[str]]) -> None:
    edge = IR.catalog.edges[0]
    rows = pa.table(
        {name: pa.array(values) for name, values in zip(("src", "dst"), zip(*keys, strict=True), strict=True)}
    )
    ids = key_ids(IR, edge, rows, lambda *_: pytest.fail("every key is complete")).to_pylist()
    assert ids == [json.dumps(key, ensure_ascii=False, separators=(",", ":")) for key in keys]


def test_an_edge_key_may_share_its_type_name_with_a_node() -> None:
    schema = "node Tie { a: I32  b: I32  @key(a, b) }\nedge Tie: Tie -> Tie { n: I32  @key(src, n) }"
    with testing.graph(schema) as graph:
        graph.load([{"type": "Tie", "data": {"a": 1, "b": 2}}], mode="append")
        graph.load([{"edge": "Tie", "from": '["1","2"]', "to": '["1","2"]', "data": {"n": 3}}], mode="append")
        key = '["[\\"1\\",\\"2\\"]","3"]'
        assert [row[0] for row in graph.edges("Tie").result().to_records()] == [key]
        assert len(graph.revisions.history("Tie", {"src": (1, 2), "n": 3}, kind="edge")) == 1
