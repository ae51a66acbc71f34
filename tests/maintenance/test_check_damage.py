"""Lost and corrupt files of every kind are named, with the newest readable commit."""

import shutil
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import GraphNotInitialized, IndexUnreadable, StorageError
from omnigraph.history import commit_log
from omnigraph.maintenance import check
from omnigraph.maintenance.check import check_graph
from omnigraph.maintenance.finding import Checkup
from omnigraph.maintenance.repair import repair_graph
from omnigraph.storage.effects import Effects
from omnigraph.storage.store import open_store
from omnigraph.storage.transfer import version_files
from omnigraph.values.table_key import TableKey
from tests.maintenance.conftest import again, files, foreign_append, head, kinds, names, path_of

PERSON = TableKey("node:Person")
FULL = pytest.mark.full
Spoil = Callable[[Path], object]


def lose(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scramble(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[: len(body) - 4] = bytes(one ^ 0x5A for one in body[: len(body) - 4])
    path.write_bytes(bytes(body))


def look(graph: Graph, *, quick: bool = False) -> Checkup:
    return check_graph(open_store(graph.uri, effects=Effects(read_only=True)), quick=quick)


def data_file(graph: Graph, key: str = PERSON) -> Path:
    """The newest data file of a table."""
    entry = graph.snapshot.tables[TableKey(key)]
    found = version_files(graph._handle.store, entry.location, entry.lance_version).data_files
    return Path(graph.uri, found[-1])


def version_file(graph: Graph, key: str = PERSON) -> Path:
    entry = graph.snapshot.tables[TableKey(key)]
    return Path(graph.uri, entry.location, "_versions", f"d{entry.lance_version}.manifest")


def deletion_file(graph: Graph) -> Path:
    entry = graph.snapshot.tables[PERSON]
    (found,) = version_files(graph._handle.store, entry.location, entry.lance_version).deletion_files
    return Path(graph.uri, found)


def test_healthy_graph_has_no_findings_and_check_writes_nothing(graph: Graph) -> None:
    before = files(graph)
    found = look(graph)
    assert found
    assert found.findings == ()
    assert not found.damage
    assert found.readable["main"] == graph.head.id
    assert set(found.readable) == {"main", "side", "tag v1"}
    assert found.read["rows"] > 0
    assert found.read["commits"] > 5
    assert files(graph) == before
    assert "healthy" in repr(found)


@pytest.mark.parametrize(
    ("place", "spoil"),
    [
        (data_file, lose),
        (version_file, empty),
        (deletion_file, scramble),
        pytest.param(data_file, empty, marks=FULL),
        pytest.param(data_file, scramble, marks=FULL),
        pytest.param(version_file, lose, marks=FULL),
        pytest.param(version_file, scramble, marks=FULL),
        pytest.param(deletion_file, lose, marks=FULL),
        pytest.param(deletion_file, empty, marks=FULL),
    ],
)
def test_missing_files_of_the_head_are_errors(graph: Graph, spoil: Spoil, place: Callable[[Graph], Path]) -> None:
    path = place(graph)
    spoil(path)
    found = look(graph)
    assert not found
    told = [one for one in found.damage if one.branch == "main"]
    name = str(path.relative_to(graph.uri))
    assert any(one.name == name or name in one.reason for one in told), [str(o) for o in told]
    assert {one.type_key for one in told} == {PERSON}
    newest = found.readable["main"]
    assert newest is not None
    assert newest == graph.head.parent
    assert found.readable["side"] == graph.checkout("side").head.id
    told_again = repair_graph(open_store(graph.uri, effects=Effects(read_only=True)), graph._handle.branch_state)
    assert told_again.damage or spoil is scramble


def test_damage_found_only_by_reading_is_named(graph: Graph) -> None:
    path = data_file(graph)
    body = bytearray(path.read_bytes())
    body[:16] = b"\xff" * 16
    path.write_bytes(bytes(body))
    assert look(graph, quick=True), "a quick look does not read rows"
    # What the first bytes hold decides whether Lance notices; a rule does in any case.
    assert not look(graph)


def test_lost_file_is_one_finding_with_all_its_users(graph: Graph) -> None:
    shutil.rmtree(Path(graph.uri, graph.snapshot.tables[PERSON].location))
    found = look(graph)
    names_told = [one.name for one in found.findings]
    assert len(names_told) == len(set(names_told)) > 1
    assert {branch for one in found.findings for branch in one.all_branches} == {"main", "side", "tag v1"}
    assert not any("another program" in one.reason for one in found.findings)
    (row,) = (one for one in graph.maintenance.repair().datasets if one.type_key == PERSON)
    assert (row.classification, row.action, row.skipped) == ("unverifiable", "preview", "damaged")
    assert "omnigraph check" in (row.error or "")


def test_file_shared_by_branches_is_one_finding(graph: Graph) -> None:
    path = data_file(graph, "node:City")
    path.unlink()
    (found,) = look(graph).findings
    assert found.branches == ("main", "side", "tag v1")
    assert found.severity == "error"
    assert "(main, side, tag v1 node:City)" in str(found)


def test_lost_past_version_is_reported(graph: Graph) -> None:
    old = version_file(graph)
    graph.mutate('update Person set { age: 51 } where name = "bob"')
    old.unlink()
    (found,) = look(graph).findings
    assert (found.severity, found.name) == ("warning", str(old.relative_to(graph.uri)))
    assert "which the history needs" in found.reason


def test_files_removed_by_cleanup_are_not_damage(graph: Graph) -> None:
    for number in range(3):
        graph.load({"Person": [{"name": "ada", "age": number}]}, mode="merge")
    graph.tags.delete("v1")
    graph.branches.delete("side", force=True)
    assert graph.maintenance.cleanup(keep=1, grace=timedelta(0), confirm=True).old_versions_removed > 3
    assert look(graph).findings == ()


def test_lost_file_of_the_past_is_a_warning(graph: Graph) -> None:
    mid = graph.mutate('update Person set { age: 50 } where name = "bob"')
    old = data_file(graph)
    graph.mutate('update Person set { age: 51 } where name = "bob"')
    assert mid is not None
    assert data_file(graph) != old
    old.unlink()
    found = look(graph)
    assert found
    assert [one.severity for one in found.damage] == ["warning"]
    assert "which the history needs" in found.damage[0].reason
    assert found.readable["main"] == graph.head.id


@pytest.mark.parametrize("spoil", [lose, empty])
def test_quick_check_detects_missing_files(graph: Graph, spoil: Spoil) -> None:
    spoil(data_file(graph))
    assert not look(graph, quick=True)


@pytest.mark.parametrize("spoil", [lose, pytest.param(empty, marks=FULL)])
def test_a_lost_index_is_named_and_answers_stay_right(graph: Graph, spoil: Spoil) -> None:
    entry = graph.snapshot.tables[PERSON]
    places = version_files(graph._handle.store, entry.location, entry.lance_version).index_directories
    for place in places:
        for one in Path(graph.uri, place).iterdir():
            spoil(one)
    found = look(graph)
    told = [one for one in found.findings if one.branch == "main"]
    assert [(one.kind, one.name) for one in told] == [("index", one) for one in places]
    assert "ensure-indices" in (found.findings[0].hint or "")
    assert (found.damage, found.readable["main"]) == ((), graph.head.id), "all rows are there"
    with pytest.warns(IndexUnreadable, match="ensure-indices"):
        again(graph).upsert("Person", {"name": "bob", "age": 40}, {"name": "eva", "age": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(graph).upsert("Person", {"name": "fay", "age": 41})  # the same was told before
    assert names(graph) == ["ada", "bob", "cid", "eva", "fay"]
    again(graph).maintenance.ensure_indices()
    assert "main" not in {one.branch for one in look(graph).findings}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(graph).update("Person", where="name = $n", set={"age": 7}, n="bob")


def test_broken_index_does_not_fail_queries(graph: Graph) -> None:
    for place in _index_places(graph):
        for one in place.iterdir():
            scramble(one)
    fresh = again(graph)
    with pytest.warns(IndexUnreadable):
        fresh.upsert("City", {"name": "oslo"}, {"name": "rom"})
    assert len(list(fresh.query("match { $c: City } return { $c.name }"))) == 2
    told = [one for one in look(graph).findings if one.kind == "index"]
    assert {one.type_key for one in told} == {"node:City"}
    assert "has a damaged file" in told[0].reason


def test_lost_rows_are_a_typed_failure(graph: Graph) -> None:
    deletion_file(graph).unlink()
    with pytest.raises(StorageError) as told:
        names(graph)
    assert told.value.effect == "none"
    assert "check" in (told.value.hint or "")


def test_wrong_index_answers_are_found(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of an index over other values, in the place of the right ones."""
    other = omnigraph.init(tmp_path / "other", graph.schema.source, durability="os")
    other.load({"City": [{"name": "rom"}]}, mode="append")
    other.maintenance.ensure_indices()
    for ours, theirs in zip(_index_places(graph), _index_places(other), strict=True):
        for file in theirs.iterdir():
            (ours / file.name).write_bytes(file.read_bytes())
    by_checksum = [one for one in look(graph).findings if one.kind == "index"]
    assert {one.type_key for one in by_checksum} == {"node:City"}
    assert "has a damaged file" in by_checksum[0].reason
    monkeypatch.setattr(check, "read_checksums", lambda *_: {})  # as of a graph without checksums
    by_answers = [one for one in look(graph).findings if one.kind == "index"]
    assert {one.type_key for one in by_answers} == {"node:City"}
    assert "1 missing" in by_answers[0].reason
    assert "ensure-indices" in (by_answers[0].hint or "")
    assert look(graph, quick=True)


def _index_places(graph: Graph) -> list[Path]:
    from omnigraph.storage.table import open_table

    entry = graph.snapshot.tables[TableKey("node:City")]
    dataset = open_table(graph._handle.store, entry.location, entry.lance_version).dataset
    found = sorted(dataset.describe_indices(), key=lambda one: one.field_names)
    segments = [one.uuid for index in found for one in index.segments]
    return [Path(graph.uri, entry.location, "_indices", str(one)) for one in segments]


@pytest.mark.parametrize("spoil", [lose, pytest.param(scramble, marks=FULL)])
def test_lost_log_chunks_are_reported(graph: Graph, spoil: Spoil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 4)
    for number in range(9):
        graph.load({"Person": [{"name": f"n{number}"}]}, mode="append")
    chunk = sorted(Path(graph.uri, "_commits").iterdir())[0]
    spoil(chunk)
    found = look(graph)
    assert not found
    assert {one.kind for one in found.findings} == {"log"}
    assert any(one.name == f"_commits/{chunk.name}" for one in found.findings)
    assert found.readable["main"] == graph.refresh().head.id


@pytest.mark.parametrize("spoil", [pytest.param(lose, marks=FULL), pytest.param(empty, marks=FULL), scramble])
def test_damaged_manifests_refs_schemas_and_intents_are_reported(graph: Graph, spoil: Spoil) -> None:
    ref = next(Path(graph.uri, "_refs", "branches", "side").iterdir())
    if spoil is not lose:
        body = ref.read_bytes()
        spoil(ref)
        assert [(one.kind, one.branch) for one in look(graph).findings] == [("ref", "side")]
        ref.write_bytes(body)
    intent = Path(graph.uri, "__recovery", "01J00000000000000000000000.json")
    intent.parent.mkdir(exist_ok=True)
    intent.write_bytes(b"{")
    assert "intent" in [one.kind for one in look(graph).findings]
    intent.unlink()
    (schema,) = Path(graph.uri, "_schemas").iterdir()
    body = schema.read_bytes()
    spoil(schema)
    found = look(graph)
    assert {one.kind for one in found.findings} == {"schema"}
    assert set(found.readable.values()) == {None}
    schema.write_bytes(body)
    newest = min(Path(graph.uri, "__manifest", "_versions").iterdir())
    spoil(newest)
    found = look(graph)
    if spoil is lose:  # nobody can know that there was one more
        assert found.readable["main"] != graph.head.id
    else:
        assert [(one.kind, one.branch) for one in found.findings] == [("manifest", "main")]
        assert found.readable["main"] == graph.head.parent


def test_check_without_a_graph_raises(tmp_path: Path) -> None:
    with pytest.raises(GraphNotInitialized):
        check_graph(open_store(str(tmp_path / "nothing")))


def test_table_removed_by_external_tools_is_reported(graph: Graph) -> None:
    """Lance does not see our versions: its cleanup takes their files."""
    graph.tags.delete("v1")
    foreign_append(graph, "Person", {"id": "eve", "name": "eve"})
    head(graph, "Person").cleanup_old_versions(timedelta(0), delete_unverified=True)
    found = look(graph)
    assert ("drift", PERSON) in [(one.kind, one.type_key) for one in found.findings]
    assert {one.type_key for one in found.damage} == {PERSON}
    assert any("the file is missing" in one.reason for one in found.damage)
    assert found.readable["main"] != graph.head.id
    told = graph.maintenance.repair(confirm=True, force=True)
    assert told.damage, "what is lost is told beside what was appended"
    (row,) = told.refused
    assert (row.type_key, row.skipped, row.committed) == (PERSON, "damaged", False)


def test_missing_directory_is_reported(graph: Graph) -> None:
    import shutil

    shutil.rmtree(path_of(graph, "Person"))
    found = look(graph)
    assert not found
    assert {one.type_key for one in found.damage} == {PERSON}
    assert set(found.readable.values()) <= {None, *(c.id for c in graph.log())}
    assert kinds(graph, quick=True)
