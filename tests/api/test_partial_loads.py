"""Loads by patch and delete: what they change, what they reject, and what they depend on."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph, LoadReport, Receipt
from omnigraph.errors import EntityNotFound, InputError, VersionConflict
from tests.rig.graph_hosts import GraphHost, open_again

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    city: String
    mail: String? @unique
    tags: [String]?
    photo: Blob?
    level: I32? @default(1)
    @range(age, 0..150)
}
node Seat { row: I32  place: I32  label: String?  @key(row, place) }
node Note { text: String? }
edge Knows: Person -> Person { since: Date?  weight: F64? }
edge Owns: Person -> Note @card(1..2)
"""
PEOPLE = [
    {"name": name, "age": age, "city": "rome", "mail": f"{name}@x", "tags": ["a"], "photo": "base64:AAEC", "level": 2}
    for name, age in (("ann", 30), ("bob", 40), ("cyd", 50), ("dee", 60))
]
KNOWS = [
    {"id": "k1", "from": "ann", "to": "bob", "since": "2020-01-01"},
    {"id": "k2", "from": "ann", "to": "bob"},
    {"id": "k3", "from": "bob", "to": "cyd", "weight": 0.5},
    {"id": "k4", "from": "cyd", "to": "cyd"},
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("partial") / "g"
    graph = omnigraph.init(root, SCHEMA, durability="os")
    seats = [{"row": row, "place": place} for row in (1, 2) for place in (1, 2)]
    notes, owns = [{"id": "n1"}, {"id": "n2"}], [{"id": "o1", "from": "ann", "to": "n1"}]
    graph.load({"Person": PEOPLE, "Seat": seats, "Note": notes, "Knows": KNOWS, "Owns": owns}, mode="append")
    return root


@pytest.fixture
def graph(graphs: GraphHost, tmp_path: Path, template: Path) -> Graph:
    shutil.copytree(template, tmp_path / "g")
    return graphs.open(tmp_path / "g")


def person(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **properties}}


def ndjson(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def stored(graph: Graph, type_name: str = "Person") -> dict[str, dict[str, Any]]:
    records = map(json.loads, graph.refresh().export(types=[type_name], iso_dates=True))
    return {record["data"].pop("id"): record["data"] for record in records if type_name in record.values()}


def receipt(outcome: Receipt | LoadReport) -> Receipt:
    assert isinstance(outcome, Receipt)
    return outcome


def reasons(outcome: Receipt | LoadReport) -> list[tuple[int | None, str]]:
    assert isinstance(outcome, LoadReport)
    return [(problem.line, problem.reason.partition(": ")[2]) for problem in outcome]


def test_patch_changes_only_the_given_properties(graph: Graph) -> None:
    before, commits = stored(graph), len(list(graph.log()))
    text = ndjson(
        person("ann", age=31),
        {"type": "Person", "data": {"id": "bob", "tags": None, "level": None}},
        {"type": "Seat", "data": {"row": 1, "place": 2, "label": "window"}},
        {"type": "Seat", "data": {"id": '["1","1"]', "label": "door"}},
        {"type": "Note", "data": {"id": "n1", "text": "hi"}},
        {"edge": "Knows", "data": {"id": "k1", "weight": 2.5}},
        {"edge": "Knows", "from": "ann", "to": "bob", "data": {"id": "k2", "since": "2021-05-05"}},
    )
    done = receipt(graph.load(text, mode="patch"))
    assert (done.nodes, done.edges) == ({"Note": 1, "Person": 2, "Seat": 2}, {"Knows": 2})
    after = stored(graph)
    assert after["ann"] == before["ann"] | {"age": 31}
    assert after["bob"] == before["bob"] | {"tags": None, "level": None}
    assert (after["cyd"], after["dee"]) == (before["cyd"], before["dee"])
    assert [seat.get("label") for seat in stored(graph, "Seat").values()] == ["door", None, "window", None]
    edges = stored(graph, "Knows")
    assert (edges["k1"]["weight"], edges["k1"]["since"], edges["k2"]["since"]) == (2.5, "2020-01-01", "2021-05-05")
    assert not graph.load(text, mode="patch")  # everything is stored already
    assert len(list(graph.log())) == commits + 1


def test_patch_reads_the_columns_of_a_csv_file(graph: Graph, tmp_path: Path) -> None:
    before = stored(graph)
    (tmp_path / "people.csv").write_text('who,age,city\nann,,oslo\nbob,41,""\n')
    columns = {"Person": {"who": "name"}}
    assert receipt(graph.load({"Person": tmp_path / "people.csv"}, mode="patch", mapping=columns)).nodes == {
        "Person": 2
    }
    after = stored(graph)
    assert after["ann"] == before["ann"] | {"age": None, "city": "oslo"}
    assert after["bob"] == before["bob"] | {"age": 41, "city": ""}


def test_patch_reads_the_columns_of_files_and_tables(graph: Graph, tmp_path: Path) -> None:
    before = stored(graph)
    pq.write_table(pa.table({"id": ["cyd"], "mail": ["c@y"]}), tmp_path / "Person.parquet")
    assert graph.load(tmp_path / "Person.parquet", mode="patch")
    assert graph.load({"Person": pa.table({"name": ["dee"], "tags": [["b", "c"]]})}, mode="patch")
    assert graph.load({"Person": [{"name": "dee", "level": 9}], "Knows": [{"id": "k4", "weight": 1}]}, mode="patch")
    after = stored(graph)
    assert after["cyd"] == before["cyd"] | {"mail": "c@y"}
    assert after["dee"] == before["dee"] | {"tags": ["b", "c"], "level": 9}
    assert stored(graph, "Knows")["k4"]["weight"] == 1.0


def test_patch_writes_every_problem_to_a_file(graph: Graph, tmp_path: Path) -> None:
    text = ndjson(person("zoe", age=1), person("ann", age=200), {"type": "Person", "data": {"age": 3}})
    report = graph.load(text, mode="patch", on_error="report", rejects=tmp_path / "rejects")
    assert len(reasons(report)) == 3
    rejects = [json.loads(line) for line in (tmp_path / "rejects" / "rejects.ndjson").read_text().splitlines()]
    assert rejects[0] == {"file": None, "line": 1, "type": "Person", "id": "zoe", "code": "EntityNotFound",
                          "property": None, "reason": "line 1: no node of type 'Person' has the id 'zoe'"}  # fmt: skip
    assert len(rejects) == 3


def test_patch_reports_every_problem_and_writes_nothing(graph: Graph) -> None:
    head = graph.head.id
    text = ndjson(
        person("zoe", age=1),
        person("ann", age=200),
        person("bob", mail="cyd@x"),
        person("cyd", city=None),
        {"type": "Person", "data": {"age": 3}},
        {"type": "Seat", "data": {"row": 1, "label": "x"}},
        person("dee", id="ann"),
        {"edge": "Knows", "from": "bob", "data": {"id": "k1"}},
        {"edge": "Knows", "from": "ann", "to": "bob", "data": {"weight": 1}},
        {"edge": "Knows", "data": {"id": "k3", "weight": 1}},
        {"edge": "Knows", "data": {"id": "k3", "weight": 2}},
    )
    report = graph.load(text, mode="patch", on_error="report")
    assert reasons(report) == [
        (1, "no node of type 'Person' has the id 'zoe'"),
        (2, "@range violation on Person.age for 'ann': 200 is not in 0..150"),
        (3, "@unique violation on Person.mail: value 'cyd@x' is used by both 'cyd' and 'bob'"),
        (4, "property 'Person.city' of 'cyd': expected String, got null"),
        (5, "patching Person requires its key (name) or 'id'"),
        (6, "only part of the Seat key (place, row) is given"),
        (7, "id 'ann' does not match its key; expected 'dee'"),
        (8, "endpoint violation on Knows.src for 'k1': 'from' is 'ann' and cannot be changed"),
        (9, "patching Knows requires 'id'"),
        (11, "edge type 'Knows' already has an entity with id 'k3', from line 10"),
    ]
    with pytest.raises(EntityNotFound, match="line 1: no node of type 'Person' has the id 'zoe'") as missing:
        graph.load(text.splitlines()[0], mode="patch")
    assert "append" in missing.value.hint
    assert graph.refresh().head.id == head


def test_patches_may_exchange_unique_values(graph: Graph) -> None:
    assert graph.load(ndjson(person("ann", mail="bob@x"), person("bob", mail="ann@x")), mode="patch")
    report = graph.load(ndjson(person("cyd", mail="new"), person("dee", mail="new")), mode="patch", on_error="report")
    rule = "@unique violation on Person.mail"
    assert reasons(report) == [(2, f"{rule}: value 'new' is used by both 'cyd' and 'dee' (input positions 1 and 2)")]


def test_delete_reads_only_the_keys_of_a_csv_file(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "gone.csv").write_text("name,age\ncyd,not a number\n")
    assert receipt(graph.load({"Person": tmp_path / "gone.csv"}, mode="delete")).nodes == {"Person": 1}


def test_delete_removes_named_entities_and_the_edges_of_nodes(graph: Graph) -> None:
    text = ndjson(
        person("bob", age=99, city="ignored"),
        person("bob"),
        person("zoe"),
        {"type": "Seat", "data": {"row": 2, "place": 2}},
        {"edge": "Knows", "from": "cyd", "to": "cyd"},
        {"edge": "Knows", "from": "cyd", "to": "dee"},
        {"edge": "Knows", "data": {"id": "none"}},
    )
    checked = receipt(graph.load(text, mode="delete", dry_run=True))
    done = receipt(graph.load(text, mode="delete"))
    assert (checked.nodes, checked.edges, checked.missing) == (done.nodes, done.edges, done.missing)
    assert (done.nodes, done.edges) == ({"Person": 1, "Seat": 1}, {"Knows": 4})
    assert done.missing == {"Knows": 2, "Person": 1}
    assert (set(stored(graph)), set(stored(graph, "Knows"))) == ({"ann", "cyd", "dee"}, set())
    again = graph.load(text, mode="delete")
    assert (bool(again), receipt(again).missing) == (False, {"Knows": 3, "Person": 2, "Seat": 1})
    assert graph.load({"Seat": pa.table({"row": [1], "place": [1]}), "Note": [{"id": "n2"}]}, mode="delete")
    assert (set(stored(graph, "Seat")), set(stored(graph, "Note"))) == ({'["1","2"]', '["2","1"]'}, {"n1"})


def test_delete_reports_ambiguous_edges_and_broken_rules(graph: Graph) -> None:
    head = graph.head.id
    text = ndjson({"edge": "Knows", "from": "ann", "to": "bob"}, {"type": "Note", "data": {}}, {"edge": "Knows"})
    report = graph.load(text, mode="delete", on_error="report")
    assert reasons(report) == [
        (1, "the endpoints do not identify a single edge: 2 Knows edges go from 'ann' to 'bob'"),
        (2, "deleting Note requires 'id'"),
        (3, "deleting Knows requires 'id', or 'from' and 'to'"),
    ]
    report = graph.load({"Note": [{"id": "n1"}]}, mode="delete", on_error="report")
    assert isinstance(report, LoadReport)
    assert "source 'ann' has 0 edges" in report.problems[0].reason
    assert graph.refresh().head.id == head
    assert graph.load({"Note": [{"id": "n1"}], "Person": [{"id": "ann"}]}, mode="delete")


def test_merge_reports_properties_that_the_input_never_had(graph: Graph) -> None:
    records = [
        {"name": "ann", "city": "rome"},
        {"name": "bob", "city": "x", "mail": None},
        {"name": "new", "city": "y"},
    ]
    done = receipt(graph.load({"Person": records}, mode="merge", dry_run=True))
    assert done.nulled == {"Person": {"age": 2, "photo": 2, "tags": 2}}
    for data in ({"Person": records}, ndjson(*({"type": "Person", "data": record} for record in records))):
        branch = graph.branches.create(f"b{len(graph.branches)}")
        assert receipt(branch.load(data, mode="merge")).nulled == done.nulled
    table = pa.table({"name": ["cyd"], "city": ["x"], "age": pa.nulls(1, pa.int32())})
    assert receipt(graph.load({"Person": table}, mode="merge")).nulled == {"Person": {"mail": 1, "photo": 1, "tags": 1}}
    assert receipt(graph.load({"Person": [{"name": "cyd", "city": "z"}]}, mode="merge")).nulled == {}


def test_partial_loads_conflict_with_changes_of_their_rows_only(graph: Graph) -> None:
    other = open_again(graph)
    other.update("Person", where="name = 'ann'", set={"city": "oslo"})
    assert graph.load(ndjson(person("ann", age=1)), mode="patch")
    assert graph.load(ndjson(person("bob", city="kyiv")), mode="patch")
    assert stored(other)["ann"]["city"] == "oslo"
    mine = open_again(graph)
    other.update("Person", where="name = 'bob'", set={"age": 2})
    with pytest.raises(VersionConflict, match="bob"):
        mine.load(ndjson(person("bob", age=3)), mode="patch")
    with pytest.raises(VersionConflict, match="bob"):
        mine.load(ndjson(person("bob")), mode="delete")
    other.connect_nodes("Knows", [("dee", "ann")])
    with pytest.raises(VersionConflict, match="Knows"):
        mine.load(ndjson(person("dee")), mode="delete")
    assert mine.refresh().load(ndjson(person("bob"), person("dee")), mode="delete")


def test_partial_loads_honor_idempotency_keys_and_transactions(graph: Graph) -> None:
    text = ndjson(person("ann"))
    first = receipt(graph.load(text, mode="delete", idempotency_key="x"))
    graph.insert("Person", {"name": "ann", "city": "rome"})
    again = receipt(graph.load(text, mode="delete", idempotency_key="x"))
    assert (again.replayed, again.commit_id) == (True, first.commit_id)
    assert "ann" in stored(graph)


def test_a_transaction_patches_no_files(graph: Graph) -> None:
    with graph.transaction() as tx, pytest.raises(InputError, match="cannot load in mode 'patch'"):
        tx.load(ndjson(person("bob", age=1)), mode="patch")


MANY = 1_200


def table_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*.lance"))


def test_patch_of_most_rows_writes_only_the_changed_columns(tmp_path: Path) -> None:
    graph = omnigraph.init(
        tmp_path / "g", "node Item { name: String @key  rank: I64? @unique  text: String?  note: String? }"
    )
    texts = [f"{number:0100}" for number in range(MANY)]
    names = [f"i{number}" for number in range(MANY)]
    items = pa.table({"name": names, "rank": np.arange(MANY), "text": texts, "note": texts})
    graph.load({"Item": items}, mode="append")
    graph.delete("Item", where="rank < 5")
    graph.maintenance.optimize()
    before, size = graph.refresh().head.id, table_bytes(tmp_path)
    review = graph.branches.create("review")
    patch = pa.table({"name": names[5:], "rank": np.arange(5, MANY) + MANY, "note": [None, *texts[6:]]})
    assert receipt(review.load({"Item": patch}, mode="patch")).nodes == {"Item": MANY - 5}
    assert table_bytes(tmp_path) - size < size / 3
    graph.update("Item", where="name = 'i7'", set={"text": "mine"})
    assert graph.merge("review").outcome == "merged"
    rows = stored(graph, "Item")
    assert len(rows) == MANY - 5
    assert rows["i7"] == {"name": "i7", "rank": 7 + MANY, "text": "mine", "note": texts[7]}
    assert rows["i5"].get("note") is None
    ranks = "match { $i: Item { rank: $rank } } return { $i.name }"
    assert [graph.query(ranks, rank=rank).scalars() for rank in (9, 9 + MANY)] == [[], ["i9"]]
    changes = list(graph.diff(f"{before}..review", types="Item"))
    assert {change.op for change in changes} == {"update"}
    assert (len(changes), changes[0].changed) == (MANY - 5, ("rank",) if changes[0].id != "i5" else ("note", "rank"))
    assert graph.at(before).query(ranks, rank=9).scalars() == ["i9"]
    assert not graph.maintenance.check().findings
    graph.maintenance.optimize()
    assert stored(graph, "Item") == rows
    report = graph.load(
        {"Item": pa.table({"name": names[5:], "rank": [1] * (MANY - 5)})}, mode="patch", on_error="report"
    )
    assert isinstance(report, LoadReport)
    assert len(report) == MANY - 6
