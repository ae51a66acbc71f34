"""Missing, damaged or unreachable data: a typed error that states what happened."""

import socket
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import (
    BranchNotFound,
    GraphNotInitialized,
    HistoryReclaimed,
    OmnigraphError,
    ReadOnlyError,
    StorageError,
)
from omnigraph.history import commit_log, schemas
from omnigraph.storage.effects import Fault
from omnigraph.values.table_key import TableKey
from tests.api.graph.conftest import people, tree
from tests.rig.plugin import S3
from tests.rig.writes import SCHEMA, append, write


def version_file(graph: Graph, key: TableKey = TableKey("node:Person")) -> Path:
    entry = graph.snapshot.tables[key]
    return Path(graph.uri, entry.location, "_versions", f"d{entry.lance_version}.manifest")


def test_missing_files_of_the_head_are_reported_as_lost(graph: Graph) -> None:
    version_file(graph).unlink()
    for read_only in (False, True):
        fresh = omnigraph.open(graph.uri, read_only=read_only)
        with pytest.raises(StorageError, match="files for node:Person are missing") as told:
            fresh.table("Person")
        assert (told.value.kind, told.value.effect) == ("not_found", "none")
        assert fresh.table("City").count_rows() == 0
        assert people(fresh.at("HEAD~1")) == {"ada": 1, "bob": 2}


def test_missing_files_of_the_past_are_reported_as_reclaimed(graph: Graph) -> None:
    past = graph.at("HEAD~1")
    version_file(past).unlink()
    fresh = omnigraph.open(graph.uri)
    with pytest.raises(HistoryReclaimed) as told:
        fresh.at(past.head.id).table("Person")
    assert told.value.code == "HistoricalVersionReclaimed"
    assert len(people(fresh)) == 3


def test_missing_log_chunk_is_reported(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    for n in range(4):
        write(graph._handle.branch_state, append({f"new{n}": n}))
    chunks = list(Path(graph.uri, "_commits").iterdir())
    assert chunks
    for one in chunks:
        one.unlink()
    fresh = omnigraph.open(f"{Path(graph.uri).parent}/./g", read_only=True)
    assert len(people(fresh)) == 7
    with pytest.raises(HistoryReclaimed, match="the log chunk that ends at commit"):
        fresh.log()


def test_missing_schema_is_reported(graph: Graph) -> None:
    (place,) = Path(graph.uri, "_schemas").iterdir()
    before = place.read_bytes()
    schemas._schema_cache.clear()
    place.unlink()
    with pytest.raises(StorageError, match=r"schema for this revision of .* is missing"):
        _ = omnigraph.open(graph.uri).schema.source
    assert not place.exists()
    place.write_bytes(before.replace(b"I64", b"I32"))
    with pytest.raises(StorageError, match="schema for this revision"):
        _ = omnigraph.open(graph.uri).schema.source
    place.write_bytes(before)
    assert omnigraph.open(graph.uri).schema.source == SCHEMA


def test_corrupt_intent_is_kept_and_blocks_nothing(graph: Graph) -> None:
    intent = Path(graph.uri, "__recovery", "01ARZ3NDEKTSV4RRFFQ69G5FAV.json")
    intent.parent.mkdir(exist_ok=True)
    intent.write_text("{ no json")
    (waiting,) = omnigraph.open(graph.uri).maintenance.operations.set_aside()
    assert "not a JSON object" in waiting.error
    assert intent.read_text() == "{ no json"
    assert people(omnigraph.open(graph.uri, read_only=True)) == people(graph)


@pytest.mark.parametrize("branch", ["main", "review/a"])
def test_missing_graph_is_reported(tmp_path: Path, branch: str) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("gone", "empty"):
        for read_only in (False, True):
            with pytest.raises(GraphNotInitialized):
                omnigraph.open(tmp_path / name, branch=branch, read_only=read_only)
    assert tree(tmp_path) == {}


def test_a_read_only_open_writes_nothing(graph: Graph) -> None:
    graph.branches.create("gone")
    graph._handle.branch_state.store.objects.create_json("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.lease", {})
    before = tree(graph.uri)
    reader = omnigraph.open(graph.uri, read_only=True)
    people(reader)
    reader.log()
    people(reader.at("HEAD~1"))
    people(reader.checkout("review/a"))
    assert reader.branches.names() == ["gone", "main", "review/a"]
    assert reader.revisions.commit(graph.head.id) == graph.head
    for act in (
        lambda: reader.branches.create("new"),
        lambda: reader.branches.delete("gone", force=True),
        lambda: reader.at("HEAD~1").branches.create("new"),
        lambda: write(reader._handle.branch_state, append({"eve": 1})),
    ):
        with pytest.raises(ReadOnlyError):
            act()
    assert tree(graph.uri) == before


def test_reader_does_not_finish_an_interrupted_deletion(graph: Graph) -> None:
    effects = graph._handle.store.effects
    with effects.failing(Fault(3, "before", KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        graph.branches.delete("review/a", force=True)
    before = tree(graph.uri)
    with pytest.raises(BranchNotFound):
        omnigraph.open(graph.uri, branch="review/a", read_only=True)
    assert tree(graph.uri) == before
    with pytest.raises(BranchNotFound):
        omnigraph.open(graph.uri, branch="review/a")
    assert omnigraph.open(graph.uri).branches.names() == ["main"]


@pytest.mark.parametrize("reading", [True, pytest.param(False, marks=pytest.mark.full)])
def test_unreachable_server_is_reported_quickly(s3: S3, monkeypatch: pytest.MonkeyPatch, reading: bool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    with pytest.raises(StorageError) as told:
        omnigraph.open(s3.url, read_only=True) if reading else omnigraph.init(s3.url, SCHEMA)
    assert told.value.kind != "not_found"


def test_server_outage_loses_no_data(s3: S3) -> None:
    graph = omnigraph.init(s3.url, SCHEMA)
    write(graph._handle.branch_state, append({"ada": 1}))
    s3.proxy.cut(1, "PUT", "*/data/*", forward=False)
    with pytest.raises(OmnigraphError):
        write(graph._handle.branch_state, append({"bob": 2}))
    s3.proxy.heal()
    write(graph._handle.branch_state, append({"cy": 3}))
    assert people(omnigraph.open(s3.url)) == {"ada": 1, "cy": 3}
