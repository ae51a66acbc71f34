"""Erase: no trace of the deleted data remains, and everything else still works."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError, StorageError

SCHEMA = """
node Person { name: String @key  bio: String?  photo: Blob? }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""
WHO = "ada-lovelace-1815"
PHOTO = "base64:" + "QUJD" * 40_000


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    people = [{"name": name, "bio": f"about {name}"} for name in (WHO, "bob", "cy", "di")]
    graph.load([{"type": "Person", "data": one} for one in people], mode="append")
    graph.load([{"type": "City", "data": {"name": "rome"}}], mode="append")
    graph.load(
        [
            {"edge": "Knows", "from": WHO, "to": "bob"},
            {"edge": "Knows", "from": "bob", "to": "cy"},
            {"edge": "LivesIn", "from": WHO, "to": "rome"},
            {"edge": "LivesIn", "from": "bob", "to": "rome"},
        ],
        mode="append",
    )
    graph.maintenance.ensure_indices()
    return graph


def names(graph: Graph) -> list[str]:
    rows = graph.query("query q() { match { $p: Person } return { $p.name } }").to_dicts()
    return sorted(one["p.name"] for one in rows)


def known(graph: Graph) -> list[dict[str, str]]:
    text = "query q() { match { $p: Person  $p knows $q } return { $p.name, $q.name } }"
    return graph.query(text).to_dicts()


def delete(graph: Graph) -> None:
    graph.mutate(f'query d() {{ delete Person where name = "{WHO}" }}')


def test_erased_values_are_absent_from_every_file(graph: Graph, tmp_path: Path) -> None:
    graph.tag("v1")
    graph.branches.create("side")
    delete(graph)
    kinds = {one.kind for one in graph.maintenance.check_absent("Person", WHO).traces}
    assert kinds >= {"row", "index"}
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    assert not graph.maintenance.check_absent("Person", WHO)  # a branch and a tag still have her
    assert names(graph.at("v1")) == sorted([WHO, "bob", "cy", "di"])
    # What the branches have in common must not hold her either: a later merge would need it.
    graph.merge("main", into="side")
    graph.tags.delete("v1")
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    found = graph.maintenance.check_absent("Person", WHO)
    assert found, found.traces
    assert found.to_json()["absent"]
    for one in (graph, omnigraph.open(tmp_path / "g"), omnigraph.open(tmp_path / "g").checkout("side")):
        assert names(one) == ["bob", "cy", "di"]
        assert known(one) == [{"p.name": "bob", "q.name": "cy"}]
        assert one.node("Person", "bob") is not None
    assert graph.maintenance.check_absent("City", WHO)
    assert not graph.maintenance.check_absent("Person", "bob")


def test_values_of_a_dropped_property_are_erased(graph: Graph, tmp_path: Path) -> None:
    """Dropping it only hides them: the files were written with all columns together."""
    graph.schema.apply(SCHEMA.replace("bio: String?  ", ""))
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    held = [one for one in Path(tmp_path, "g").rglob("*") if one.is_file()]
    assert [one for one in held if b"about bob" in one.read_bytes()]
    foretold = graph.maintenance.cleanup(keep=1, grace=0, erase=True)
    assert foretold.bytes_removed > 0
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    held = [one for one in Path(tmp_path, "g").rglob("*") if one.is_file()]
    assert not [one for one in held if b"about bob" in one.read_bytes()]
    assert names(omnigraph.open(tmp_path / "g")) == sorted([WHO, "bob", "cy", "di"])
    files = {one.name for one in held if one.suffix == ".lance"}
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    assert {one.name for one in Path(tmp_path, "g").rglob("data/*.lance")} & files


def test_traces_in_other_places_are_reported(graph: Graph, tmp_path: Path) -> None:
    delete(graph)
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    rejects = tmp_path / "rejects"
    rejects.mkdir()
    (rejects / "part-0.jsonl").write_text(f'{{"name": "{WHO}"}}\n')
    graph.load([{"type": "City", "data": {"name": "oslo"}}], mode="append", message=f"for {WHO}")
    found = graph.maintenance.check_absent("Person", WHO, also=[rejects])
    assert {one.kind for one in found.traces} == {"bytes", "log"}
    assert any("part-0.jsonl" in one.name for one in found.traces)
    with pytest.raises(InputError, match="unknown type 'Nobody'"):
        graph.maintenance.check_absent("Nobody", WHO)


def test_absence_check_searches_additional_places_and_rejects_missing_ones(graph: Graph, tmp_path: Path) -> None:
    """A path that is taken letter by letter, or not at all, would be a false proof."""
    delete(graph)
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "all.txt").write_text(WHO)
    assert graph.maintenance.check_absent("Person", WHO)
    for also in (str(tmp_path / "out"), tmp_path / "out", [tmp_path / "out" / "all.txt"]):
        assert not graph.maintenance.check_absent("Person", WHO, also=also)
    with pytest.raises(InputError, match="no such file or folder"):
        graph.maintenance.check_absent("Person", WHO, also=[tmp_path / "nowhere"])


def test_commit_message_with_an_erased_value_is_reported(graph: Graph) -> None:
    graph.mutate(f'query d() {{ delete Person where name = "{WHO}" }}', message=f"{WHO} left")
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    assert graph.head.id == omnigraph.open(graph.uri).head.id
    assert {one.kind for one in graph.maintenance.check_absent("Person", WHO).traces} == {"log"}


def test_lost_file_stops_an_erase(graph: Graph) -> None:
    delete(graph)
    for one in Path(graph.uri).glob("nodes/*/data/*.lance"):
        one.unlink()
    with pytest.raises(StorageError, match="are missing"):
        graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)


def test_traces_in_compressed_files_are_reported(graph: Graph, tmp_path: Path) -> None:
    """What a refused load wrote is Parquet: no byte of it need be that of an id."""
    lines = [json.dumps({"type": "Person", "data": {"name": f"x{n}", "bio": 7}}) for n in range(999)]
    lines.insert(500, json.dumps({"type": "Person", "data": {"name": WHO, "bio": 7}}))
    data = tmp_path / "bad.ndjson.gz"
    data.write_bytes(gzip.compress("\n".join(lines).encode()))
    rejects = tmp_path / "rejects"
    graph.load(data, mode="merge", on_error="report", rejects=rejects)
    (rejects / "rejects.ndjson").unlink()
    delete(graph)
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    packed = tmp_path / "export.zst"
    with pa.CompressedOutputStream(pa.OSFile(str(packed), "wb"), "zstd") as out:
        out.write("\n".join(lines).encode())
    found = graph.maintenance.check_absent("Person", WHO, also=[rejects, data, packed])
    assert {Path(one.name).name for one in found.traces} >= {
        "rejects.parquet", "bad.ndjson.gz", "export.zst"
    }  # fmt: skip
    assert graph.maintenance.check_absent("Person", "x-not-there", also=[rejects, data, packed])


def test_blobs_and_indexes_survive_a_cleanup(graph: Graph, tmp_path: Path) -> None:
    """Everything unmarked is swept with no grace; then every column and index still answers."""
    graph.load([{"type": "Person", "data": {"name": "eve", "photo": PHOTO}}], mode="merge")
    for n in range(3):
        graph.load([{"type": "Person", "data": {"name": "bob", "bio": f"b{n}"}}], mode="merge")
    graph.maintenance.ensure_indices()
    before = list(graph.export())
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    fresh = omnigraph.open(tmp_path / "g")
    assert list(fresh.export()) == before
    assert fresh.node("Person", "eve") is not None
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    assert sorted(omnigraph.open(tmp_path / "g").export()) == sorted(before)
