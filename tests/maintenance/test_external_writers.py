"""Tables changed by external writers: reported, classified, never adopted silently."""

from contextlib import suppress
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError, ReadOnlyError, UsageError
from omnigraph.storage import table_head as heads
from omnigraph.storage.effects import Fault
from omnigraph.values.table_key import TableKey
from tests.maintenance.conftest import Foreign, again, files, foreign_append, head, kinds, names, path_of

PERSON = TableKey("node:Person")
EVE = {"id": "eve", "name": "eve", "age": 5}
FIELDS = {
    "type_key",
    "committed",
    "skipped",
    "error",
    "classification",
    "action",
    "operations",
    "manifest_version",
    "lance_head_version",
}


def one(report: Any, key: str = PERSON) -> Any:
    return next(row for row in report.datasets if row.type_key == key)


def append(graph: Graph) -> None:
    foreign_append(graph, "Person", EVE)


def index(graph: Graph) -> None:
    head(graph, "Person").create_scalar_index("name", "BTREE")


def compact(graph: Graph) -> None:
    """Compaction that moves an index along, which Lance cannot show afterward."""
    for name in ("eve", "fay", "gus"):
        foreign_append(graph, "Person", {**EVE, "id": name, "name": name})
    index(graph)
    foreign_append(graph, "Person", {**EVE, "id": "hal", "name": "hal"})
    head(graph, "Person").optimize.compact_files()


def delete(graph: Graph) -> None:
    append(graph)
    head(graph, "Person").delete("id = 'eve'")


def overwrite(graph: Graph) -> None:
    rows = pa.Table.from_pylist([EVE], schema=head(graph, "Person").schema)
    lance.write_dataset(rows, path_of(graph, "Person"), mode="overwrite")


def clean(graph: Graph) -> None:
    from datetime import timedelta

    append(graph)
    head(graph, "Person").cleanup_old_versions(older_than=timedelta(0))


DRIFTS: list[tuple[Foreign, str, str]] = [
    (append, "appended", "refused"),
    (index, "verified_maintenance", "no_effect"),
    (delete, "suspicious", "refused"),
]
MORE = [(compact, "appended", "refused"), (overwrite, "suspicious", "refused")]


@pytest.mark.parametrize(
    ("did", "classification", "action"), [*DRIFTS, *(pytest.param(*one, marks=pytest.mark.full) for one in MORE)]
)
def test_external_changes_are_reported_without_effect(
    graph: Graph, did: Foreign, classification: str, action: str
) -> None:
    shown = names(graph)
    did(graph)
    assert names(graph) == shown
    found = again(graph).maintenance.check()
    assert [(f.kind, f.type_key, f.severity) for f in found.findings] == [("drift", PERSON, "warning")]
    assert found
    assert "another program" in str(found.findings[0])
    before = files(graph)
    told = again(graph).maintenance.repair()
    assert one(told).classification == classification
    assert one(told).action == ("no_effect" if action == "no_effect" else "preview")
    assert one(again(graph).maintenance.repair(confirm=True)).action == action
    assert files(graph) == before, "a repair that was not forced writes nothing"
    assert names(graph) == shown


def test_report_members_are_exactly_the_documented_ones(graph: Graph) -> None:
    append(graph)
    told = graph.maintenance.repair().to_json()
    assert all(row.keys() == FIELDS for row in told["datasets"])
    row = next(row for row in told["datasets"] if row["type_key"] == PERSON)
    assert (row["operations"], row["lance_head_version"]) == (["Append"], 2)
    assert row["manifest_version"] == graph.snapshot.tables[PERSON].version


def test_external_operations_are_named_even_if_lance_cannot_read_them(graph: Graph) -> None:
    compact(graph)
    operations = one(graph.maintenance.repair()).operations
    assert operations == (*["Append"] * 3, "CreateIndex", "Append", "ReserveFragments", "Rewrite")


def test_a_clean_graph_has_no_drift(graph: Graph) -> None:
    done = graph.maintenance.repair(confirm=True, force=True)
    assert {(row.classification, row.action) for row in done.datasets} == {("no_drift", "no_op")}
    assert done.commit_id is None
    assert not done.refused
    assert not done.damage


@pytest.mark.parametrize("did", [pytest.param(append, marks=pytest.mark.full), compact])
def test_appended_rows_are_adopted_once(graph: Graph, did: Foreign) -> None:
    did(graph)
    expected = sorted({*names(graph), *head(graph, "Person").to_table()["name"].to_pylist()})
    done = graph.maintenance.repair(confirm=True, force=True)
    row = one(done)
    assert (row.action, row.committed, row.skipped, row.error) == ("forced", True, None, None)
    assert graph.head.actor == "omnigraph:repair:force"
    assert done.manifest_version == graph.head.manifest_version
    assert [(o.kind, o.commit_id) for o in graph.maintenance.operations.recoveries()] == [("repaired", graph.head.id)]
    assert names(graph) == expected
    assert not again(graph).maintenance.check().findings
    again_done = again(graph).maintenance.repair(confirm=True, force=True)
    assert one(again_done).classification == "rebased"
    assert again_done.commit_id is None
    assert names(graph) == expected
    foreign_append(graph, "Person", {**EVE, "id": "zoe", "name": "zoe"})
    assert again(graph).maintenance.repair(confirm=True, force=True).commit_id is not None
    assert names(graph) == sorted([*expected, "zoe"])


def test_writes_continue_after_external_maintenance(graph: Graph) -> None:
    index(graph)
    assert one(graph.maintenance.repair(confirm=True)).action == "no_effect"
    graph.mutate('update Person set { age: 40 } where name = "ada"')
    append(graph)
    graph.maintenance.repair(confirm=True, force=True)
    foreign_append(graph, "Person", {**EVE, "id": "fay", "name": "fay"})
    graph.maintenance.repair(confirm=True, force=True)
    head(graph, "Person").optimize.compact_files()
    told = one(graph.maintenance.repair(confirm=True))
    assert (told.classification, told.action) == ("rebased", "no_op")
    assert told.operations == ("ReserveFragments", "Rewrite")
    graph.mutate('delete Person where name = "eve"')
    assert names(graph) == ["ada", "bob", "cid", "fay"]
    assert one(graph.maintenance.repair(confirm=True, force=True)).action == "no_op", "it stays deleted"


def test_optimize_continues_after_external_changes(graph: Graph) -> None:
    """HEAD is nothing that a graph stands on: neither is skipped, nor refused, nor taken over."""
    foreign_append(graph, "Person", {"id": "eve", "name": "eve"})
    done = {one.type_key: one for one in graph.maintenance.optimize().datasets}
    assert (done[TableKey("node:Person")].committed, done[TableKey("node:Person")].skipped) == (True, None)
    assert not graph.maintenance.cleanup(keep=1, grace=0, confirm=True).failed
    assert "eve" not in names(graph)
    (told,) = [one for one in graph.maintenance.repair().datasets if one.type_key == "node:Person"]
    assert (told.classification, told.action) == ("appended", "preview")


def test_external_nodes_and_edges_are_validated_together(graph: Graph) -> None:
    append(graph)
    foreign_append(graph, "Knows", {"id": "k1", "src": "eve", "dst": "ada"})
    done = graph.maintenance.repair(confirm=True, force=True)
    assert {row.type_key for row in done.datasets if row.committed} == {PERSON, "edge:Knows"}
    assert again(graph).maintenance.check()


BAD = [
    ("Person", {"id": "eve", "name": "eve", "age": 151}, "151 is not in 0..150"),
    ("Person", {"id": "ada", "name": "ada", "age": 1}, "already"),
    ("Person", {"id": "eva", "name": "eve", "age": 1}, "does not match its key"),
    ("Knows", {"id": "k", "src": "nobody", "dst": "ada"}, "not found in Person"),
    ("Knows", {"id": "", "src": "ada", "dst": "ada"}, "id is empty"),
]


@pytest.mark.parametrize(
    ("type_name", "row", "why"), [*BAD[::2], *(pytest.param(*one, marks=pytest.mark.full) for one in BAD[1::2])]
)
def test_external_rows_that_break_a_rule_are_not_adopted(
    graph: Graph, type_name: str, row: dict[str, Any], why: str
) -> None:
    foreign_append(graph, type_name, row)
    foreign_append(graph, "City", {"id": "rom", "name": "rom"})
    done = graph.maintenance.repair(confirm=True, force=True)
    key = f"{'edge' if type_name == 'Knows' else 'node'}:{type_name}"
    assert (one(done, key).action, one(done, key).skipped) == ("refused", "breaks_rules")
    assert why in one(done, key).error
    assert one(done, "node:City").committed, "what is right is taken over all the same"
    assert [row.type_key for row in done.refused] == [key]
    assert kinds(graph) == [], "it was told"


@pytest.mark.parametrize("did", [delete, index])
def test_unadoptable_changes_are_reported_until_acknowledged(graph: Graph, did: Foreign) -> None:
    did(graph)
    for _ in range(2):
        assert kinds(graph) == [("drift", PERSON)], "a preview, or a repair without force, is none"
        again(graph).maintenance.repair(confirm=True)
    first = one(again(graph).maintenance.repair(confirm=True, force=True))
    assert first.action in ("refused", "no_effect")
    assert kinds(graph) == []
    assert again(graph).maintenance.operations.recoveries()[-1].kind == "seen"
    shown = one(again(graph).maintenance.repair(confirm=True))
    assert (shown.classification, shown.action) == (first.classification, shown.action)
    assert shown.action in ("no_op", "no_effect")
    before = files(graph)
    assert one(again(graph).maintenance.repair(confirm=True, force=True)).action == first.action
    assert files(graph) == before, "it is noted once"
    append(graph)
    assert kinds(graph) == [("drift", PERSON)], "something new is told"


def test_duplicate_external_row_is_reported(graph: Graph) -> None:
    append(graph)
    graph.maintenance.repair(confirm=True, force=True)
    append(graph)
    done = graph.maintenance.repair(confirm=True, force=True)
    assert "already" in one(done).error


def test_missing_external_version_is_unverifiable(graph: Graph) -> None:
    clean(graph)
    told = one(graph.maintenance.repair(confirm=True, force=True))
    assert (told.classification, told.action) == ("appended", "forced")  # version 1 is not needed
    for name in ("u", "v", "w"):
        foreign_append(graph, "Person", {"id": name, "name": name})
    newest = head(graph, "Person").version
    entry = graph.snapshot.tables[PERSON]
    middle = f"{entry.location}/_versions/{(1 << 64) - 1 - (newest - 1):020}.manifest"
    graph._handle.store.objects.remove(middle)
    told = one(graph.maintenance.repair(confirm=True, force=True))
    assert (told.classification, told.action) == ("unverifiable", "refused")
    assert f"version {newest - 1}" in told.error


def test_unnamed_operation_is_maintenance_only_without_changes(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    compact(graph)
    monkeypatch.setattr(heads, "_fragment_fingerprints", lambda table: [table.version])
    assert one(graph.maintenance.repair()).classification == "suspicious"


def test_compaction_that_changed_rows_is_not_maintenance(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    compact(graph)
    monkeypatch.setattr(heads, "rows_digest", lambda rows: str(id(rows)))
    assert one(graph.maintenance.repair()).classification == "suspicious"


def test_external_table_of_an_older_schema_is_not_adopted(graph: Graph) -> None:
    append(graph)
    graph.schema.apply(graph.schema.source.replace("age: I32?", "age: I32?  email: String?"))
    done = graph.maintenance.repair(confirm=True, force=True)
    assert one(done).action == "refused"
    assert "columns" in one(done).error


def test_force_requires_confirm_and_confirm_requires_a_writable_handle(graph: Graph) -> None:
    with pytest.raises(UsageError, match="'force' requires 'confirm'"):
        graph.maintenance.repair(force=True)
    with pytest.raises(ReadOnlyError):
        graph.at("HEAD").maintenance.repair(confirm=True)


def test_external_changes_on_other_branches_are_reported(graph: Graph) -> None:
    text = graph.schema.source + "node Extra { name: String @key }"
    side = graph.checkout("side")
    side.schema.apply(text)
    foreign_append(side, "Extra", {"id": "x", "name": "x"})
    row = one(graph.maintenance.repair(confirm=True, force=True), "node:Extra@side")
    assert (row.action, row.skipped) == ("preview", "other_branch")
    assert one(side.maintenance.repair(confirm=True, force=True), "node:Extra").committed


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.full)])
def test_interrupted_repair_adopts_every_row_once(graph: Graph, when: Any) -> None:
    append(graph)
    foreign_append(graph, "Knows", {"id": "k1", "src": "eve", "dst": "ada"})
    shown = names(graph)
    for at in range(1, 40):
        handle = again(graph)
        with suppress(OmnigraphError, OSError), handle._handle.store.effects.failing(Fault(at, when)):
            handle.maintenance.repair(confirm=True, force=True)
        now = names(graph)
        assert now in (shown, sorted([*shown, "eve"])), at
        if now != shown:
            break
    done = again(graph).maintenance.repair(confirm=True, force=True)
    assert not done.refused
    assert names(graph) == sorted([*shown, "eve"])
    kept = again(graph)
    assert kept.table("Knows").count_rows() == 2
    assert len([o for o in kept.maintenance.operations.recoveries() if o.kind == "repaired"]) == 1
    assert not kept.maintenance.check().findings


def test_concurrent_repairs_adopt_every_row_once(graph: Graph) -> None:
    append(graph)
    first, second = again(graph), again(graph)
    first.maintenance.repair(confirm=True, force=True)
    late = second.maintenance.repair(confirm=True, force=True)
    assert late.commit_id is None
    assert names(graph).count("eve") == 1
