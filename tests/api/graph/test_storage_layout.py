"""The files of a new graph and the contents of its manifest."""

import json
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import CatalogError, InputError, OmnigraphError, StorageError
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.storage import layout
from omnigraph.values.table_key import TableKey
from tests.api.graph.conftest import people, rewrite_manifest
from tests.rig.writes import SCHEMA, append, write


def test_new_graph_has_exactly_the_expected_files(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    root = Path(graph.uri)
    assert sorted(one.name for one in root.iterdir()) == [
        "__manifest", "_schemas", "edges", "nodes",
    ]  # fmt: skip
    tables = {entry.location for entry in graph.snapshot.tables.values()}
    found = {str(one.relative_to(root)) for kind in ("nodes", "edges") for one in (root / kind).iterdir()}
    assert found == tables
    assert len(list((root / "_schemas").iterdir())) == 1


def test_first_manifest_version_is_complete(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    manifest = lance.dataset(f"{graph.uri}/__manifest")
    assert [one["version"] for one in manifest.versions()] == [1]
    rows = manifest.to_table().to_pylist()
    kinds = sorted(one["object_type"] for one in rows)
    assert kinds == ["checksum", "graph_commit", "graph_head", "schema", "table", "table", "table"]
    assert manifest.schema.metadata[layout.STAMP_KEY.encode()] == b"100"
    assert manifest.schema.names == [
        "object_id", "object_type", "location", "metadata", "base_objects",
        "table_key", "table_version", "table_branch", "row_count",
    ]  # fmt: skip
    first = graph.head
    assert (first.parent, first.actor, first.manifest_version) == (None, None, 1)
    assert first.message == "created"
    assert "verified" in str(first.note)


def test_every_dataset_has_the_same_settings(graph: Graph) -> None:
    places = [entry.location for entry in graph.snapshot.tables.values()]
    places += ["__manifest", *(f"__branches/{graph.branches[n].ulid}" for n in ("review/a",))]
    for place in places:
        dataset = lance.dataset(f"{graph.uri}/{place}")
        assert dataset.has_stable_row_ids
        assert dataset.data_storage_version == "2.2"
        assert not [key for key in dataset.config() if "auto_cleanup" in key]


@pytest.mark.parametrize(
    ("name", "digits"), [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("Knows", "602a25a3bd0b455b")]
)
def test_name_hash_is_stable(name: str, digits: str) -> None:
    assert layout.fnv1a64(name) == digits


def test_table_directory_is_name_hash_and_unique_id(tmp_path: Path) -> None:
    graphs = [omnigraph.init(tmp_path / name, SCHEMA) for name in "gh"]
    places = [one.snapshot.tables[TableKey("node:Person")].location for one in graphs]
    assert all(one.startswith("nodes/40d76f1f51639ec0-") for one in places)
    assert len(set(places)) == 2


def test_type_names_with_colliding_hashes_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "fnv1a64", lambda name: "0" * 16)
    with pytest.raises(InputError, match="'City' and 'Person'"):
        omnigraph.init(tmp_path / "g", "node Person { n: I64? }\nnode City { n: I64? }\n")
    assert not (tmp_path / "g").exists()
    omnigraph.init(tmp_path / "h", "node Same { n: I64? }\nedge Same: Same -> Same\n")


@pytest.mark.parametrize(
    "schema",
    [
        "node Person { _rowid: I64? }",
        "node Person { n: I64? }\nedge Knows: Person -> Person\nedge KNOWS: Person -> Person",
    ],
)
def test_unstorable_schema_is_rejected(tmp_path: Path, schema: str) -> None:
    with pytest.raises((CatalogError, OmnigraphError)):
        omnigraph.init(tmp_path / "g", schema)
    assert not (tmp_path / "g").exists()


def test_a_property_that_only_looks_reserved_is_accepted(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { _row_id: I64? _rowdy: I64? }")
    assert graph.table("Person").schema.names == ["id", "_row_id", "_rowdy"]


def test_dropped_table_stays_readable_in_the_past(graph: Graph) -> None:
    publish(
        graph._handle.branch_state, lambda _: PublishPlan("drop", dropped_tables=frozenset({TableKey("node:City")}))
    )
    before = graph.head
    assert "node:City" not in graph.refresh().snapshot.tables
    assert graph.head.tables == {"node:City": None}
    assert "node:City" in graph.at(before.id).snapshot.tables
    again = graph.at(before.id).snapshot.tables[TableKey("node:City")]
    publish(graph._handle.branch_state, lambda _: PublishPlan("add", new_tables={TableKey("node:City"): again}))
    assert graph.refresh().table("City").count_rows() == 0


@pytest.mark.parametrize("kind", ["graph_head", "schema"])
def test_manifest_without_a_head_row_is_rejected(graph: Graph, kind: str) -> None:
    rewrite_manifest(graph.uri, lambda rows: [r for r in rows if r["object_type"] != kind])
    with pytest.raises(StorageError, match="__manifest is damaged"):
        omnigraph.open(graph.uri, read_only=True)


def test_edited_manifest_fails_its_checksum(graph: Graph) -> None:
    place = f"{graph.uri}/__manifest"
    rows = lance.dataset(place).to_table()
    lance.write_dataset(rows.slice(0, rows.num_rows), place, mode="overwrite")
    with pytest.raises(StorageError, match="__manifest is damaged"):
        omnigraph.open(graph.uri)


def test_unknown_manifest_row_kind_is_ignored(graph: Graph) -> None:
    row = {"object_id": "checkpoint:x", "object_type": "checkpoint", "table_key": ""}
    rewrite_manifest(graph.uri, lambda rows: [*rows, row])
    assert people(omnigraph.open(graph.uri)) == people(graph)


def test_unknown_manifest_member_is_ignored(graph: Graph) -> None:
    def extended(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        for row in rows:
            if row["object_type"] == "graph_commit":
                row["metadata"] = json.dumps({**json.loads(str(row["metadata"])), "mood": "good"})
        return rows

    rewrite_manifest(graph.uri, extended)
    assert omnigraph.open(graph.uri).log() == graph.log()


def test_commit_row_without_metadata_is_damage(graph: Graph) -> None:
    def emptied(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        for row in rows:
            if row["object_type"] == "graph_commit":
                row["metadata"] = None
        return rows

    rewrite_manifest(graph.uri, emptied)
    with pytest.raises(StorageError, match="__manifest is damaged"):
        omnigraph.open(graph.uri)


def test_commits_of_external_writers_are_invisible(graph: Graph) -> None:
    place = f"{graph.uri}/{graph.snapshot.tables[TableKey.node('Person')].location}"
    before = people(graph)
    foreign = lance.dataset(place).schema.empty_table().from_pylist([{"id": "eve", "n": 9}])
    lance.write_dataset(foreign, place, mode="append")
    assert people(omnigraph.open(graph.uri)) == before
    write(graph._handle.branch_state, append({"dan": 4}))
    assert people(graph.refresh()) == {**before, "dan": 4}
