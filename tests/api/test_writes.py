"""Writes through the handle: accepted inputs, receipts, conditions and rejections."""
# ruff: noqa: PT012 - a transaction that fails at its end is a block

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph, LoadReport, Receipt
from omnigraph.errors import (
    BranchNotFound,
    ConstraintViolation,
    GraphClosed,
    InputError,
    KeyConflict,
    OmnigraphError,
    ParameterError,
    PreconditionFailed,
    PropertyValueError,
    ReadOnlyError,
    ReadSetConflict,
    TypeCheckError,
    UniqueViolation,
    UsageError,
    VersionConflict,
    root,
)
from tests.rig.graph_hosts import GraphHost, open_again

COUNT = "match { $p: Person } return { count($p) as n }"


def count(graph: Graph) -> int:
    return int(graph.query(COUNT).scalar())


@dataclass
class Person:
    name: str
    age: int | None = None


def test_receipt_reports_what_changed(graph: Graph) -> None:
    graph = open_again(graph, actor="ada")
    done = graph.mutate(
        "query add($n: String) { insert Person { name: $n } insert Knows { from: $n, to: $n } }",
        n="eve",
        message="hello",
    )
    assert isinstance(done, Receipt)
    assert (done.nodes, done.edges, done.total) == ({"Person": 1}, {"Knows": 1}, 2)
    assert done
    assert done.commit is not None
    assert (done.commit.actor, done.commit.message) == ("ada", "hello")
    assert graph.head.id == done.commit_id
    nothing = graph.update("Person", where="name = 'nobody'", set={"age": 1})
    assert not nothing
    assert (nothing.commit, nothing.total) == (None, 0)
    assert graph.head.id == done.commit_id
    assert "eve" not in repr(done)
    assert done.commit_id in done._repr_html_()


@pytest.mark.parametrize(
    "records",
    [
        ({"name": "x", "age": 1}, {"name": "y", "age": None}),
        ([{"name": "x", "age": 1}, {"name": "y"}],),
        (Person("x", 1), Person("y")),
        (pa.table({"name": ["x", "y"], "age": pa.array([1, None], pa.int32())}),),
    ],
    ids=["dicts", "list", "dataclasses", "arrow"],
)
def test_records_are_accepted_in_many_forms(graph: Graph, records: tuple[Any, ...]) -> None:
    assert graph.insert("Person", *records).nodes == {"Person": 2}
    assert (graph["Person", "x"].age, graph["Person", "y"].age) == (1, None)


def test_insert_is_strict_and_upsert_changes(graph: Graph) -> None:
    head = graph.head.id
    with pytest.raises(KeyConflict):
        graph.insert("Person", {"name": "ann"}, {"name": "new"})
    assert graph.refresh().head.id == head
    graph.upsert("Person", {"name": "ann", "age": 31}, {"name": "new"})
    assert (graph["Person", "ann"].age, graph["Person", "ann"].team) == (31, "core")
    assert graph["Person", "new"].age is None
    with pytest.raises(UsageError, match="unknown option"):
        options: Any = {"colour": "red"}
        graph.insert("Person", {"name": "z"}, **options)


def test_update_and_delete(graph: Graph) -> None:
    done = graph.update("Person", where="team = $t and age > 26", set={"age": 99, "tags": None}, t="core")
    assert done.nodes == {"Person": 1}
    assert (graph["Person", "ann"].age, graph["Person", "ann"].tags) == (99, None)
    gone = graph.delete("Person", where="name = $n", n="ann")
    assert (gone.nodes, gone.edges) == ({"Person": 1}, {"Knows": 3, "WorksAt": 1})
    assert graph.delete("Knows", where="from = 'bob'").edges == {"Knows": 2}
    with pytest.raises(InputError, match="unknown type 'Persn'"):
        graph.update("Persn", where="name = 'a'", set={"age": 1})
    with pytest.raises(InputError, match="nick"):
        graph.update("Person", where="name = 'a'", set={"nick": 1})
    with pytest.raises(InputError, match="nick"):
        graph.delete("Person", where="nick = 1")
    with pytest.raises(UsageError):
        graph.update("Person", where="name = 'a'", set={})
    with pytest.raises(ConstraintViolation):
        graph.update("Person", where="name = 'bob'", set={"age": 151})


def test_a_receipt_has_the_ids_in_the_order_of_the_records(graph: Graph) -> None:
    notes = graph.insert("Note", {"text": "x"}, {"text": "y"})
    first, second = notes.ids["Note"]
    assert graph["Note", first].text == "x"
    assert graph["Note", second].text == "y"
    assert graph.upsert("Person", [{"name": "zoe"}, {"name": "ann"}]).ids == {"Person": ["zoe", "ann"]}
    ties = graph.connect_nodes("WorksAt", [("dee", "acme"), ("ann", "zeta")], idempotency_key="k")
    known = {one["id"]: one["from"] for one in graph.edges("WorksAt").to_dicts()}
    assert [known[one] for one in ties.ids["WorksAt"]] == ["dee", "ann"]
    again = graph.connect_nodes("WorksAt", [("dee", "acme"), ("ann", "zeta")], idempotency_key="k")
    assert (again.replayed, again.ids) == (True, ties.ids)


def test_receipt_counts_are_consistent(graph: Graph) -> None:
    same = graph.upsert("Person", {"name": "bob", "age": 25, "team": "core"})
    assert (bool(same), same.nodes, same.ids) == (False, {}, {"Person": ["bob"]})
    assert "nothing changed" in repr(same)
    with graph.transaction() as tx:
        tx.insert("Person", {"name": "z"})
        tx.delete("Person", where="name = 'z'")
    assert tx.receipt is not None
    assert (bool(tx.receipt), tx.receipt.total, tx.receipt.ids) == (False, 0, {})


def test_write_to_a_deleted_branch_raises_branch_not_found(graph: Graph) -> None:
    gone = graph.branches.create("dev")
    graph.branches.delete("dev", force=True)
    writes: list[Callable[[], object]] = [
        lambda: gone.insert("Person", {"name": "z"}),
        lambda: gone.load(b'{"type":"Note","data":{"text":"x"}}', mode="merge"),
        lambda: gone.mutate('insert Person { name: "q" }'),
    ]
    for write in writes:
        with pytest.raises(BranchNotFound):
            write()
    with pytest.raises(BranchNotFound), gone.transaction() as tx:
        tx.insert("Person", {"name": "z"})


def test_indexes_of_a_deleted_branch_are_not_built(graph: Graph) -> None:
    gone = graph.branches.create("dev")
    graph.branches.delete("dev", force=True)
    with pytest.raises(BranchNotFound):
        gone.maintenance.ensure_indices()


def test_existing_key_error_suggests_upsert(graph: Graph) -> None:
    with pytest.raises(KeyConflict, match="line 2: node type 'Person'") as taken:
        graph.insert("Person", {"name": "new"}, {"name": "bob"})
    assert "upsert" in (taken.value.hint or "")
    with pytest.raises(KeyConflict) as inside, graph.transaction() as tx:
        tx.insert("Person", {"name": "bob"})
    assert "upsert" in (inside.value.hint or "")
    with pytest.raises(UniqueViolation, match="appears on line 1 and again on line 2"):
        graph.insert("Person", {"name": "x"}, {"name": "x"})


def test_endpoint_of_the_wrong_type_is_reported_by_key(graph: Graph) -> None:
    with pytest.raises(InputError, match=r"Person\.name.*expected String, got integer 5") as wrong:
        graph.connect_nodes("Knows", [("ann", 5)])
    assert "parameter" not in str(wrong.value)


@pytest.mark.parametrize("end", ["7", "$n"])
def test_numeric_endpoint_error_suggests_a_string(graph: Graph, end: str) -> None:
    given = {"n": 7} if "$" in end else {}
    with pytest.raises(TypeCheckError, match="a node id, which is a string"):
        graph.mutate(f'insert Knows {{ from: "ann", to: {end} }}', params=given)


def test_edges_require_existing_endpoints(graph: Graph) -> None:
    with pytest.raises(ConstraintViolation, match="'bob' -> 'ghost': dst 'ghost'") as lost:
        graph.connect_nodes("Knows", [("bob", "ghost")])
    assert lost.value.hint == "add the Person with name 'ghost', or correct `to`"
    with pytest.raises(InputError, match=r"\(from, to\)"):
        graph.connect_nodes("Knows", [("bob",)])
    with pytest.raises(InputError, match="unknown edge type"):
        graph.connect_nodes("Likes", [("bob", "ann")])


def test_strict_write_requires_the_shown_rows(graph: Graph) -> None:
    other = open_again(graph)
    other.update("Person", where="name = 'ann'", set={"age": 5})
    with pytest.raises(VersionConflict):
        graph.update("Person", where="name = 'ann'", set={"age": 1})
    with pytest.raises(VersionConflict):  # a failed write shows nothing
        graph.update("Person", where="name = 'ann'", set={"age": 1})
    assert graph["Person", "ann"].age == 5  # a read shows the newest state
    assert graph.update("Person", where="name = 'ann'", set={"age": 1})
    assert graph.update("Person", where="name = 'ann'", set={"age": 2})  # own writes are known
    graph.insert("Firm", {"name": "new"})
    other.insert("Person", {"name": "fay"})
    graph.query("match { $f: Firm } return { $f.name }")  # another type was shown
    with pytest.raises(VersionConflict):
        graph.delete("Person", where="name = 'fay'")
    assert graph.retry(lambda g: g.delete("Person", where="name = 'fay'")).nodes == {"Person": 1}
    with pytest.raises(VersionConflict):
        other.load({"Person": [{"name": "only"}]}, mode="overwrite")


def test_retry_stops_after_its_limit(graph: Graph) -> None:
    calls: list[int] = []

    def fail(_: Graph) -> None:
        calls.append(1)
        raise ReadSetConflict(member="x")

    with pytest.raises(ReadSetConflict):
        graph.retry(fail, attempts=3)
    assert len(calls) == 3
    calls.clear()

    def wrong(_: Graph) -> None:
        calls.append(1)
        raise InputError("no")

    with pytest.raises(InputError):
        graph.retry(wrong)
    assert len(calls) == 1


def test_retry_has_a_default_limit(graph: Graph) -> None:
    calls: list[int] = []

    def fail(_: Graph) -> None:
        calls.append(1)
        raise ReadSetConflict(member="x")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ReadSetConflict):
        patch.setattr(type(graph._handle.branch_state), "back_off", staticmethod(lambda _: None))
        graph.retry(fail)
    assert len(calls) == 12


def test_one_of_many_conditional_writes_wins(graph: Graph) -> None:
    seen = graph.query(COUNT).commit_id
    outcomes: list[Any] = []

    def write(number: int) -> None:
        handle = open_again(graph)
        try:
            outcomes.append(handle.insert("Note", {"text": str(number)}, if_commit=seen))
        except PreconditionFailed as error:
            outcomes.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    won = [one for one in outcomes if isinstance(one, Receipt)]
    lost = [one for one in outcomes if isinstance(one, PreconditionFailed)]
    assert (len(won), len(lost)) == (1, 19)
    assert {error.actual for error in lost} == {won[0].commit_id}
    assert {error.expected for error in lost} == {seen}


def test_repeated_write_with_a_key_is_applied_once(graph: Graph) -> None:
    text = "query note($t: String) { insert Note { text: $t } }"
    first = graph.mutate(text, t="one", idempotency_key="k")
    again = graph.mutate(text, t="one", idempotency_key="k")
    assert (again.commit_id, again.replayed, first.replayed) == (first.commit_id, True, False)
    assert (again.nodes, again.ids) == (first.nodes, first.ids) == ({"Note": 1}, first.ids)
    assert graph.nodes("Note").count() == 1
    with pytest.raises(InputError, match="a different request"):
        graph.mutate(text, t="two", idempotency_key="k")


def test_a_bad_load_is_reported_line_by_line(graph: Graph) -> None:
    head = graph.head.id
    lines = [
        '{"type":"Person","data":{"name":"a"}}',
        '{"type":"Person","data":{"nme":"b"}}',
        "{broken",
        '{"type":"Person","data":{"name":"c","age":"x"}}',
    ]
    found = graph.load("\n".join(lines).encode(), mode="append", on_error="report")
    assert isinstance(found, LoadReport)
    assert not found
    assert [one.line for one in found] == [2, 2, 3, 4]  # the name is unknown, and another missing
    assert "c" in [one.id for one in found]
    assert "4 bad rows" in found._repr_html_()
    assert graph.refresh().head.id == head
    with pytest.raises(InputError, match="line 2"):
        graph.load("\n".join(lines).encode(), mode="append")
    assert graph.refresh().head.id == head


def test_many_bad_cells_cost_only_the_messages_that_are_shown(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[str] = []
    fill_template = root.fill_template

    def count_filled(template: str, facts: dict[str, Any]) -> str | None:
        filled.append(template)
        return fill_template(template, facts)

    monkeypatch.setattr(root, "fill_template", count_filled)
    path, bad_cells = tmp_path / "people.csv", 200
    path.write_text("\n".join(["name,age", *(f"p{number},x{number}" for number in range(bad_cells))]))
    with pytest.raises(
        PropertyValueError, match=r"line 2: property 'Person\.age' of 'p0': expected I32, got string 'x0'"
    ):
        graph.load({"Person": path}, mode="append")
    assert len(filled) < 5
    filled.clear()
    found = graph.load({"Person": path}, mode="append", on_error="report")
    assert isinstance(found, LoadReport)
    assert len(filled) <= bad_cells + 5
    last = "line 201: property 'Person.age' of 'p199': expected I32, got string 'x199'"
    assert (len(found), found.problems[-1].reason, found.problems[-1].line) == (bad_cells, last, 201)


def test_loads_of_files(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "more.ndjson"
    path.write_text('{"type":"Person","data":{"name":"p"}}\n')
    told: list[tuple[int, int]] = []
    done = graph.load(path, mode="append", progress=lambda n, total: told.append((n, total)))
    assert isinstance(done, Receipt)
    assert done.nodes == {"Person": 1}
    assert told[-1] == (38, 38)
    with pytest.raises(InputError, match="cannot read"):
        graph.load(tmp_path / "gone.ndjson", mode="append", progress=lambda *_: None)
    with pytest.raises(UsageError, match="mode"):
        graph.load(path, mode="upsert")  # type: ignore[arg-type]
    empty = graph.load(b"", mode="append")
    assert isinstance(empty, Receipt)
    assert empty.commit is None


def test_loads_of_tables(graph: Graph, tmp_path: Path) -> None:
    csv = tmp_path / "people.csv"
    csv.write_text("full,age\nq,5\n")
    graph.load({"Person": csv}, mode="append", mapping={"Person": {"full": "name"}})
    assert graph["Person", "q"].age == 5
    with pytest.raises(InputError, match="type"):
        graph.load(csv, mode="append", format="csv")


def test_load_creates_a_missing_branch_only_on_request(graph: Graph) -> None:
    data = b'{"type":"Person","data":{"name":"p"}}'
    with pytest.raises(BranchNotFound):
        graph.load(data, mode="append", branch="review")
    done = graph.load(data, mode="append", branch="review", from_="main")
    assert isinstance(done, Receipt)
    assert (done.branch, done.branch_created) == ("review", True)
    again = graph.load(data, mode="merge", branch="review", from_="main")
    assert isinstance(again, Receipt)
    assert not again.branch_created
    with pytest.raises(InputError):
        graph.load(b"{broken", mode="append", branch="other", from_="main")
    assert list(graph.branches) == ["main", "review"]
    assert (count(graph), count(graph.checkout("review"))) == (4, 5)


def test_export_can_be_loaded(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "all.ndjson.gz"
    assert graph.export(path) == 4 + 2 + 6 + 3
    copy = omnigraph.init(tmp_path / "copy", graph.schema.source, durability="os")
    copy.load(path, mode="append")
    assert b"".join(copy.export()) == b"".join(graph.export())
    assert len(list(graph.export(types=["Firm"]))) == 2
    with pytest.raises(InputError, match="Nope"):
        list(graph.export(types=["Nope"]))
    with pytest.raises(InputError, match="cannot write"):
        graph.export(tmp_path / "gone" / "x.ndjson")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.ndjson.gz", "copy"]


def test_indexes_are_built_once(graph: Graph) -> None:
    built = graph.maintenance.ensure_indices()
    assert built
    assert "no entity changed" in repr(built)
    assert not graph.maintenance.ensure_indices()
    assert graph["Person", "ann"].age == 30
    for handle in (open_again(graph, read_only=True), graph.at("HEAD~1"), graph.revisions.pin()):
        with pytest.raises(ReadOnlyError):
            handle.maintenance.ensure_indices()
    graph.close()
    with pytest.raises(GraphClosed):
        graph.maintenance.ensure_indices()


WRITES: list[Callable[[Any], object]] = [
    lambda g: g.mutate('insert Note { text: "x" }'),
    lambda g: g.insert("Note", {"text": "x"}),
    lambda g: g.upsert("Person", {"name": "x"}),
    lambda g: g.patch("Person", {"name": "ann", "age": 1}),
    lambda g: g.connect_nodes("Knows", [("ann", "bob")]),
    lambda g: g.update("Person", where="name = 'ann'", set={"age": 1}),
    lambda g: g.delete("Person", where="name = 'ann'"),
    lambda g: g.load(b"", mode="append"),
    lambda g: g.transaction(),
    lambda g: g.branches.create("x"),
    lambda g: g.branches.delete("x", force=True),
]


@pytest.mark.parametrize("write", WRITES, ids=range(len(WRITES)))
def test_handle_on_a_past_commit_rejects_every_write(people: Graph, write: Any) -> None:
    for handle in (people, people.at("HEAD~1"), people.revisions.pin()):
        with pytest.raises(ReadOnlyError):
            write(handle)


def test_closed_handle_rejects_every_call(graph: Graph) -> None:
    graph.close()
    graph.close()
    reads: list[Callable[[Any], object]] = [count, lambda g: g.nodes("Person"), lambda g: g.export()]
    reads.append(lambda g: g.refresh())
    for use in [*WRITES, *reads]:
        with pytest.raises(GraphClosed):
            use(graph)


def test_a_call_names_its_actor(graph: Graph) -> None:
    for done in (
        graph.mutate('insert Note { text: "x" }', actor="ada"),
        graph.insert("Note", {"text": "x"}, actor="ada"),
        graph.load(b'{"type":"Note","data":{"text":"x"}}', mode="append", actor="ada"),
    ):
        assert isinstance(done, Receipt)
        assert done.commit is not None
        assert done.commit.actor == "ada"
    with graph.transaction(actor="bob") as tx:
        tx.insert("Note", {"text": "x"})
    assert graph.head.actor == "bob"
    with pytest.raises(InputError, match="reserved"):
        graph.insert("Note", {"text": "x"}, actor="omnigraph:maintenance")


def test_long_messages_are_refused(graph: Graph) -> None:
    with pytest.raises(InputError, match="more than"):
        graph.insert("Note", {"text": "x"}, message="x" * 5000)


# Transactions ----------------------------------------------------------------------------------


def test_transaction_is_atomic(graph: Graph) -> None:
    head = graph.head.id
    with pytest.raises(ZeroDivisionError), graph.transaction() as tx:
        tx.insert("Person", {"name": "eve"})
        tx.insert("Person", {"name": "fay"})
        raise ZeroDivisionError
    assert tx.receipt is None
    assert graph.refresh().head.id == head
    with open_again(graph, actor="ada").transaction(message="two") as tx:
        tx.insert("Person", {"name": "eve"})
        tx.mutate("query q($n: String) { insert Person { name: $n, age: 1 } }", n="fay")
        tx.connect_nodes("Knows", [("eve", "fay")])
        tx.update("Person", where="name = 'fay'", set={"age": 2})
        tx.delete("Person", where="name = $n", n="cyd")
        assert tx.query(COUNT).scalar() == tx.nodes("Person").count() == 5
        assert tx.nodes("Person").where(name="eve").out("Knows").ids() == ["fay"]
        assert count(graph) == 4
    assert tx.receipt
    assert tx.receipt.commit is not None
    assert tx.receipt.commit.parent == head
    assert (tx.receipt.commit.message, tx.receipt.commit.actor) == ("two", "ada")
    assert (count(graph), graph["Person", "fay"].age, graph.node("Person", "cyd")) == (5, 2, None)


def test_ids_generated_in_a_transaction_are_those_of_the_commit(graph: Graph) -> None:
    with graph.transaction() as tx:
        tx.mutate('insert Note { text: "a" }')
        tx.insert("Note", {"text": "b"})
        inside = sorted(tx.nodes("Note").ids())
    assert sorted(graph.nodes("Note").ids()) == inside


def test_transaction_fails_if_its_reads_changed(graph: Graph) -> None:
    other = open_again(graph)
    with pytest.raises(ReadSetConflict), graph.transaction() as tx:
        total = tx.query(COUNT).scalar()
        other.insert("Person", {"name": "eve"})
        tx.insert("Note", {"text": str(total)})
    assert graph.nodes("Note").count() == 0
    with graph.transaction() as tx:  # nothing was read: both fit
        other.insert("Person", {"name": "fay"})
        tx.insert("Note", {"text": "x"})
    assert tx.receipt


def test_a_transaction_is_checked_as_a_whole(graph: Graph) -> None:
    with graph.transaction() as tx:  # the end comes after the edge
        tx.connect_nodes("Knows", [("ann", "new")])
        tx.insert("Person", {"name": "new"})
    assert tx.receipt
    with pytest.raises(OmnigraphError), graph.transaction() as tx:
        tx.insert("Person", {"name": "x"})
        tx.connect_nodes("Knows", [("ann", "ghost")])
    assert graph.node("Person", "x") is None


def test_transaction_is_confined_to_its_thread_and_block(graph: Graph) -> None:
    found: list[BaseException] = []

    def intrude(tx: Any) -> None:
        try:
            tx.insert("Note", {"text": "x"})
        except UsageError as error:
            found.append(error)

    with graph.transaction() as tx:
        thread = threading.Thread(target=intrude, args=(tx,))
        thread.start()
        thread.join()
    assert "thread" in str(found[0])
    assert tx.receipt is not None
    assert tx.receipt.commit is None
    with pytest.raises(UsageError, match="not open"):
        tx.insert("Note", {"text": "x"})
    with pytest.raises(UsageError, match="once"), tx:
        pass
    with pytest.raises(PreconditionFailed), graph.transaction(if_commit=graph.log()[1].id) as late:
        late.insert("Note", {"text": "x"})


def test_rejects_name_their_file(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { k: String @key n: I32 }")
    path = tmp_path / "bad.ndjson"
    path.write_text('{"type": "P", "data": {"k": "a", "n": "x"}}\n')
    with pytest.raises(OmnigraphError):
        graph.load(path, mode="append", engine="local", rejects=tmp_path / "rejects")
    (told,) = (tmp_path / "rejects" / "rejects.ndjson").read_text().splitlines()
    assert json.loads(told)["file"] == str(path)


def test_a_bad_line_of_several_files_names_its_file(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { k: String @key }")
    (tmp_path / "in").mkdir()
    good, bad = tmp_path / "in" / "a.jsonl", tmp_path / "in" / "b.jsonl"
    good.write_text(json.dumps({"type": "P", "data": {"k": "a"}}))
    bad.write_text("{oops\n")
    for data in (tmp_path / "in", [good, bad]):
        with pytest.raises(InputError, match=r"b\.jsonl: line 1: malformed") as told:
            graph.load(data, mode="append")
        assert told.value.details["file"] == str(bad)


def test_connect_nodes_writes_edges_even_if_a_node_type_has_the_same_name(tmp_path: Path) -> None:
    schema = "node Person { name: String @key } node Knows { name: String @key } "
    graph = omnigraph.init(tmp_path / "g", f"{schema} edge Knows: Person -> Person {{ since: I32? }}", durability="os")
    graph.insert("Person", {"name": "ann"}, {"name": "bob"})
    made = graph.connect_nodes("Knows", [("ann", "bob", {"since": 1})])
    assert (made.edges, made.nodes) == ({"Knows": 1}, {})
    with graph.transaction() as tx:
        tx.connect_nodes("Knows", [("bob", "ann", {"since": 2, "id": "k"})])
    found = graph.query("match { $a: Person  $a $k:knows $b } return { $a.name, $k.since } order { $k.since }")
    assert [tuple(row) for row in found.to_records()] == [("ann", 1), ("bob", 2)]


def test_a_time_in_a_date_property_is_refused_with_a_hint(graphs: GraphHost) -> None:
    graph = graphs.init("node Event { name: String @key  day: Date? }")
    with pytest.raises(PropertyValueError, match=r"as in value.date\(\)"):
        graph.insert("Event", {"name": "a", "day": datetime(2024, 5, 1, 12)})


def test_times_without_a_zone_are_errors_or_utc(tmp_path: Path) -> None:
    schema = "node Event { name: String @key  at: DateTime? }"
    graph = omnigraph.init(tmp_path / "g", schema, durability="os")
    noon, early = datetime(2024, 5, 1, 12), datetime(1960, 1, 1, 0, 0, 0, 1500)
    with pytest.raises(PropertyValueError) as refused:
        graph.insert("Event", {"name": "a", "at": noon})
    assert "assume_utc=True" in str(refused.value)
    graph.insert("Event", {"name": "a", "at": noon}, assume_utc=True)
    table = pa.table({"name": ["b", "c"], "at": pa.array([noon, early], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "events.parquet")
    for data in (table, str(tmp_path / "events.parquet")):
        with pytest.raises(PropertyValueError, match="assume_utc=True"):
            graph.load({"Event": data}, mode="append")
        graph.load({"Event": data}, mode="merge", assume_utc=True)
    graph.upsert("Event", {"name": "d", "at": noon}, assume_utc=True)
    graph.patch("Event", {"name": "d", "at": noon}, assume_utc=True)
    graph.mutate('query m($t: DateTime) { insert Event { name: "e", at: $t } }', t=noon, assume_utc=True)
    graph.update("Event", where="name = 'e'", set={"at": noon}, assume_utc=True)
    stored = graph.query("match { $e: Event } return { $e.name, $e.at } order { $e.name }").to_records()
    zoned = noon.replace(tzinfo=UTC)
    early_utc = datetime(1960, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)
    assert [row[1] for row in stored] == [zoned, zoned, early_utc, zoned, zoned]
    text = "query q($t: DateTime) { match { $e: Event  $e.at = $t } return { $e.name } }"
    with pytest.raises(ParameterError) as unclear:
        graph.query(text, t=noon)
    assert "assume_utc=True" in str(unclear.value.hint)
    assert "got datetime 2024-05-01T12:00:00" in unclear.value.message
    with pytest.raises(ParameterError) as unclear_text:
        graph.query(text, t="2024-05-01T12:00:00")
    assert "add an offset, as in 2024-05-01T12:00:00Z" in str(unclear_text.value.hint)
    with pytest.raises(PropertyValueError, match="add an offset, as in 2024-05-01T12:00:00Z"):
        graph.insert("Event", {"name": "f", "at": "2024-05-01T12:00:00"})
    with pytest.raises(ParameterError) as nonsense:
        graph.query(text, t="soon")
    assert "declared type" in str(nonsense.value.hint)
    assert graph.query(text, t=noon, assume_utc=True).num_rows == 4
    with graph.stream(text, t=noon, assume_utc=True) as stream:
        assert len(list(stream.iter_rows())) == 4
    with pytest.raises(UsageError, match="assume_utc"):
        graph.load({"Event": table}, mode="merge", engine="spark", assume_utc=True)
