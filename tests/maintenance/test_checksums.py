"""File checksums: recorded by every write, verified by check, copy, optimize and first use."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError, OmnigraphError, StorageError
from omnigraph.history import file_checksums
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.transfer import version_files
from omnigraph.values.table_key import TableKey
from tests.maintenance.conftest import again

PEOPLE = "match { $p: Person } return { $p.name } order { $p.name }"


def data_files(graph: Graph, key: TableKey = TableKey("node:Person")) -> list[Path]:
    """The data files of the newest version of a table."""
    entry = graph.refresh().snapshot.tables[key]
    names = version_files(graph._handle.store, entry.location, entry.lance_version).data_files
    return [Path(graph.uri, name) for name in names]


def change_value(graph: Graph, old: bytes, new: bytes) -> Path:
    """Change a stored text where Lance cannot notice it; return the file."""
    (path,) = [one for one in data_files(graph) if old in one.read_bytes()]
    path.write_bytes(path.read_bytes().replace(old, new))
    return path


def rotten(graph: Graph) -> Path:
    """A graph in which one name silently reads as another one."""
    graph.insert("Person", {"name": "walter", "age": 5})
    path = change_value(graph, b"walter", b"waiter")
    assert ["waiter"] in again(graph).query(PEOPLE).to_lists()
    return path


def names(graph: Graph) -> list[str]:
    return [name for (name,) in graph.query(PEOPLE).to_lists()]


def test_every_file_of_a_graph_has_a_checksum_and_matches_it(graph: Graph) -> None:
    read = graph.maintenance.check().read
    assert read["unrecorded"] == 0
    assert read["verified"] >= read["files"] > 10


def test_check_names_a_file_whose_content_changed(graph: Graph) -> None:
    path = rotten(graph)
    assert graph.maintenance.check(quick=True), "a quick check compares sizes only"
    checkup = graph.maintenance.check()
    assert not checkup
    told = [one for one in checkup.findings if one.name == path.relative_to(graph.uri).as_posix()]
    assert "does not match its checksum" in told[0].reason


def test_a_sample_verifies_some_files_and_reads_no_rows(graph: Graph) -> None:
    every = graph.maintenance.check().read["verified"]
    some = graph.maintenance.check(sample=0.3)
    assert some
    assert 0 < some.read["verified"] < every
    assert some.read["rows"] == 0
    assert graph.maintenance.check(sample=1.0).read["verified"] == every
    for share in (0.0, 1.5):
        with pytest.raises(InputError, match="greater than 0 and at most 1"):
            graph.maintenance.check(sample=share)


def test_optimize_does_not_rewrite_damaged_files(graph: Graph) -> None:
    path = rotten(graph)
    done = again(graph).maintenance.optimize()
    told = {one.type_key: one.error for one in done.damaged}
    assert list(told) == ["node:Person"]
    assert path.name in str(told[TableKey("node:Person")])
    assert path in data_files(graph)
    assert not graph.maintenance.check()


def test_an_erasure_refuses_to_rewrite_damaged_files(graph: Graph) -> None:
    path = rotten(graph)
    graph.delete("Person", where='name = "ada"')
    with pytest.raises(StorageError, match=path.name):
        again(graph).maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    assert path in data_files(graph)
    assert not graph.maintenance.check()


def test_unreadable_file_is_named(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data_files(graph)[0]
    real = LocalBackend.read_blocks

    def blocks(self: LocalBackend, name: str) -> Iterator[bytes] | None:
        if name.endswith(path.name):
            raise StorageError(kind="unknown", reason="Input/output error", effect="none")
        return real(self, name)

    monkeypatch.setattr(LocalBackend, "read_blocks", blocks)
    checkup = graph.maintenance.check(sample=1.0)
    told = [one for one in checkup.findings if one.name == path.relative_to(graph.uri).as_posix()]
    assert "the file cannot be read (Input/output error)" in told[0].reason


@pytest.mark.parametrize("step", [61, pytest.param(3, marks=pytest.mark.full)])
def test_flipped_bit_in_the_newest_manifest_loses_no_commit(graph: Graph, tmp_path: Path, step: int) -> None:
    """A version that was written to its end may have been acknowledged: it is never set aside."""
    graph.insert("Person", {"name": "walter"})
    newest = min(Path(graph.uri, "__manifest", "_versions").iterdir())
    for at in range(0, newest.stat().st_size, step):
        root = Path(shutil.copytree(graph.uri, tmp_path / f"at{at}"))
        path = root / newest.relative_to(graph.uri)
        body = bytearray(path.read_bytes())
        body[at] ^= 1 << (at % 8)
        path.write_bytes(bytes(body))
        try:
            opened = omnigraph.open(root, durability="os")
            opened.insert("Person", {"name": "new"})
        except OmnigraphError:
            assert path.exists()
        else:
            assert {"walter", "new"} <= set(names(opened)), at
        shutil.rmtree(root)


def test_verifying_handle_reads_tables_that_are_intact(graph: Graph) -> None:
    (ref,) = Path(graph.uri, "_refs", "tags").rglob("*.json")
    ref.write_bytes(ref.read_bytes()[:20])
    assert "ada" in names(omnigraph.open(graph.uri, verify=True))


def test_tail_compaction_does_not_rewrite_damaged_files(graph: Graph) -> None:
    path = rotten(graph)
    for number in range(12):
        graph.insert("Person", {"name": f"n{number}"})
    assert path in data_files(graph)
    assert not graph.maintenance.check()


def test_undamaged_files_are_compacted_by_the_same_writes(graph: Graph) -> None:
    graph.insert("Person", {"name": "walter", "age": 5})
    before = set(data_files(graph))
    for number in range(12):
        graph.insert("Person", {"name": f"n{number}"})
    assert not before <= set(data_files(graph))
    assert graph.maintenance.check().read["unrecorded"] == 0


def test_copy_verifies_checksums(graph: Graph, tmp_path: Path) -> None:
    path = rotten(graph)
    with pytest.raises(StorageError, match=f"{path.name} is damaged"):
        graph.maintenance.copy_to(tmp_path / "copy")
    with pytest.raises(OmnigraphError):
        omnigraph.open(tmp_path / "copy")
    graph.maintenance.copy_to(tmp_path / "rescued", verify=False)
    rescued = omnigraph.open(tmp_path / "rescued")
    assert "waiter" in names(rescued)
    assert not rescued.maintenance.check()


def test_a_copy_keeps_the_checksums(graph: Graph, tmp_path: Path) -> None:
    graph.maintenance.copy_to(tmp_path / "copy")
    read = omnigraph.open(tmp_path / "copy").maintenance.check().read
    assert read["unrecorded"] == 0
    assert read["verified"] == graph.maintenance.check().read["verified"]


def test_files_are_verified_before_first_use_on_request(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rotten(graph)
    with pytest.raises(DamagedError, match=f"{path.name} is damaged"):
        omnigraph.open(graph.uri, verify=True).query(PEOPLE)
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "1")
    with pytest.raises(DamagedError, match=path.name):
        again(graph).query(PEOPLE)
    assert "waiter" in names(omnigraph.open(graph.uri, verify=False))


def test_a_verifying_handle_follows_other_writers(graph: Graph) -> None:
    careful = omnigraph.open(graph.uri, verify=True)
    assert "ada" in names(careful)
    graph.insert("Person", {"name": "walter"})
    assert "walter" in names(careful.refresh())
    graph.insert("Person", {"name": "xerxes"})
    change_value(graph, b"xerxes", b"xerxas")
    with pytest.raises(DamagedError):
        names(careful.refresh())


def test_bulk_write_stores_checksums_in_an_object(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(file_checksums, "MAX_INLINE_FILES", 1)
    graph.insert("Person", {"name": "walter"})
    (sealed,) = Path(graph.uri, "_checksums").iterdir()
    assert graph.head.files == {"sealed": f"_checksums/{sealed.name}"}
    assert again(graph).maintenance.check().read["unrecorded"] == 0
    graph.maintenance.copy_to(tmp_path / "copy")
    assert omnigraph.open(tmp_path / "copy").maintenance.check().read["unrecorded"] == 0
    sealed.unlink()
    checkup = again(graph).maintenance.check()
    assert [one.kind for one in checkup.findings if one.severity == "error"][:1] == ["log"]
    assert "walter" in names(again(graph))


def test_checksums_survive_merges_schema_changes_and_optimize(graph: Graph) -> None:
    graph.merge("side")
    graph.schema.apply(graph.schema.source.replace("age: I32?", "age: I32?  extra: String?"))
    graph.maintenance.optimize()
    graph.insert("Person", {"name": "walter", "extra": "x"})
    checkup = graph.maintenance.check()
    assert checkup
    assert checkup.read["unrecorded"] == 0


def test_graph_without_checksums_is_valid_and_reported(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.maintenance.check.read_checksums", lambda *_: {})
    checkup = graph.maintenance.check()
    assert checkup
    assert checkup.findings == ()
    assert checkup.read["verified"] == 0
    assert checkup.read["unrecorded"] >= checkup.read["files"] > 10
