"""Blobs are given as bytes, paths, files and URIs, and large ones never pass through memory."""

import io
import os
import tempfile
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import errors
from tests.api.blobs.conftest import LARGE, SCHEMA
from tests.rig.graph_hosts import GraphHost, open_again


@pytest.fixture
def graph(graphs: GraphHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> omnigraph.Graph:
    """An empty graph; temporary files go to an own folder, which must be empty after every write."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS", raising=False)
    return graphs.init(SCHEMA)


def left_behind(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "temporary").glob("omnigraph-blobs-*"))


class Unseekable(io.RawIOBase):
    """A file that can be read once, as a pipe."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._content.readinto(buffer)


def test_blobs_are_bytes_paths_and_files_in_every_write(graph: omnigraph.Graph, tmp_path: Path) -> None:
    strange = tmp_path / "a b#%20ü.bin"
    strange.write_bytes(LARGE)
    graph.insert("Doc", {"slug": "path", "body": strange, "raw": b"r"}, {"slug": "file", "body": io.BytesIO(b"file")})
    graph.upsert("Doc", {"slug": "pipe", "body": Unseekable(LARGE + b"!")}, {"slug": "view", "body": memoryview(b"v")})
    graph.load({"Doc": [{"slug": "loaded", "body": strange}]}, mode="merge")
    graph.mutate('query q($b: Blob) { insert Doc { slug: "mutated", body: $b } }', b=io.BytesIO(b"mutated"))
    graph.update("Doc", where="slug = 'view'", set={"body": strange})
    with graph.transaction() as tx:
        tx.insert("Doc", {"slug": "tx", "body": Unseekable(b"in a transaction")})
        tx.update("Doc", where="slug = 'file'", set={"body": Unseekable(b"changed")})
        assert tx.query("match { $d: Doc } return { count($d) as n }").scalar() == 7
    expected = {"path": LARGE, "pipe": LARGE + b"!", "loaded": LARGE, "mutated": b"mutated", "view": LARGE}
    expected |= {"tx": b"in a transaction", "file": b"changed"}
    assert {slug: graph.blob("Doc", slug, "body").read() for slug in expected} == expected
    assert graph.blob("Doc", "path", "raw").read() == b"r"
    assert not graph.maintenance.check().findings
    assert left_behind(tmp_path) == []


def test_transaction_reads_its_own_blobs(graph: omnigraph.Graph) -> None:
    graph.insert("Doc", {"slug": "a", "body": b"before"}, {"slug": "b", "body": b"other"})
    with graph.transaction() as tx:
        assert tx.blob("Doc", "a", "body").read() == b"before"
        tx.update("Doc", where="slug = 'a'", set={"body": Unseekable(LARGE)})
        changed = tx.blob("Doc", "a", "body")
        open_again(graph).put_blob("Doc", "b", "body", b"changed meanwhile")
    assert (changed.read(), graph.blob("Doc", "a", "body").read()) == (LARGE, LARGE)
    with pytest.raises(errors.ReadSetConflict):
        write_after_a_lost_race(graph)
    assert graph.nodes("Doc").where(slug="a").to_dicts()[0]["note"] is None


def write_after_a_lost_race(graph: omnigraph.Graph) -> None:
    with graph.transaction() as tx:
        assert tx.blob("Doc", "b", "body").read() == b"changed meanwhile"
        open_again(graph).put_blob("Doc", "b", "body", b"again")
        tx.update("Doc", where="slug = 'a'", set={"note": "based on b"})


def test_transaction_stores_a_file_as_it_was_when_given(graph: omnigraph.Graph, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(LARGE)
    with graph.transaction() as tx:
        tx.insert("Doc", {"slug": "a", "body": source})
        source.write_bytes(b"second")
        tx.insert("Doc", {"slug": "b", "body": source})
        tx.update("Doc", where="slug = 'b'", set={"raw": source})
        source.unlink()
    assert [graph.blob("Doc", slug, "body").read() for slug in ("a", "b")] == [LARGE, b"second"]
    assert graph.blob("Doc", "b", "raw").read() == b"second"
    assert left_behind(tmp_path) == []


def test_unchanged_file_is_not_written_again(graph: omnigraph.Graph, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(LARGE)
    graph.upsert("Doc", {"slug": "a", "body": source})
    head = graph.head.id
    assert graph.upsert("Doc", {"slug": "a", "body": source}).commit is None
    assert graph.head.id == head
    assert graph.upsert("Doc", {"slug": "a", "body": LARGE}).commit is None
    assert graph.upsert("Doc", {"slug": "a", "body": io.BytesIO(LARGE[:-1])}).commit is not None


def test_pipe_is_read_once(graph: omnigraph.Graph, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"through a pipe",))
    writer.start()
    graph.insert("Doc", {"slug": "a", "body": tmp_path / "pipe"})
    writer.join()
    assert graph.blob("Doc", "a", "body").read() == b"through a pipe"


def test_unusable_source_is_refused(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.insert("Doc", {"slug": "a"})
    values: list[tuple[Any, str]] = [
        (Path("/does/not/exist"), "cannot read /does/not/exist: No such file"),
        (Path("/"), "cannot read /: Is a directory"),
        (io.StringIO("text"), "binary mode"),
        (7, "Blob"),
    ]
    for value, words in values:
        with pytest.raises(errors.ClientError, match=words):
            graph.insert("Doc", {"slug": "b", "body": value})
        with pytest.raises(errors.ClientError, match=words):
            graph.put_blob("Doc", "a", "body", value)
        report = graph.load({"Doc": [{"slug": "b", "body": value}, {"slug": "c"}]}, mode="append", on_error="report")
        assert isinstance(report, omnigraph.LoadReport)
        assert [problem.line for problem in report.problems] == [1]
    assert left_behind(tmp_path) == []


def test_value_above_the_limit_names_the_way_out(graph: omnigraph.Graph) -> None:
    with pytest.raises(errors.ResourceLimitExceeded) as caught:
        graph.insert("Doc", {"slug": "a", "body": bytes((32 << 20) + 1)})
    assert "pathlib.Path" in str(caught.value.hint)


@pytest.mark.full
def test_large_blob_is_not_held_in_memory(graph: omnigraph.Graph, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(LARGE * 4)
    graph.insert("Doc", {"slug": "first", "body": b"small"})  # imports what every write needs
    graph.blob("Doc", "first", "body").save(tmp_path / "first")
    graph.delete("Doc", where="slug = 'first'")
    tracemalloc.start()
    try:
        graph.insert("Doc", {"slug": "a", "body": source}, {"slug": "b", "body": b"small"})
        graph.update("Doc", where="slug in ['a', 'b']", set={"note": "carried"})
        blob = graph.blob("Doc", "a", "body")
        hashed = blob.content_hash
        blob.save(tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 3 * len(LARGE)  # of 4
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out").read_bytes() == LARGE * 4
    assert graph.blob("Doc", "b", "body").read() == b"small"
    os.truncate(source, 0)  # the graph has a copy of its own
    assert graph.blob("Doc", "a", "body").content_hash == hashed
    assert left_behind(tmp_path) == []
    assert not graph.maintenance.check().findings


def test_put_replaces_a_blob_that_is_as_expected(graph: omnigraph.Graph) -> None:
    graph.insert("Doc", {"slug": "a"})
    with pytest.raises(errors.BlobPreconditionFailed, match="NULL"):
        graph.put_blob("Doc", "a", "body", b"x", if_match="*")
    receipt = graph.put_blob("Doc", "a", "body", b"one", media_type="text/x-one", message="put")
    assert receipt.commit is not None
    assert receipt.commit.message == "put"
    first = graph.blob("Doc", "a", "body")
    assert (first.read(), first.media_type) == (b"one", "text/x-one")
    graph.put_blob("Doc", "a", "body", b"two", if_match=first.etag)
    second = graph.blob("Doc", "a", "body")
    assert (second.read(), second.media_type) == (b"two", "text/plain")
    head = graph.head.id
    with pytest.raises(errors.BlobPreconditionFailed) as caught:
        graph.put_blob("Doc", "a", "body", b"three", if_match=first.etag)
    assert (caught.value.etag, graph.head.id) == (second.etag, head)
    review = graph.branches.create("review")
    graph.put_blob("Doc", "a", "body", b"other", branch="review", if_match=second.etag)
    assert (review.blob("Doc", "a", "body").read(), graph.blob("Doc", "a", "body").read()) == (b"other", b"two")
    with pytest.raises(errors.EntityNotFound):
        graph.put_blob("Doc", "z", "body", b"x")
    with pytest.raises(errors.InputError, match="raw_media_type"):
        graph.put_blob("Doc", "a", "raw", b"x", media_type="a/b")
    with pytest.raises(errors.InputError, match="is not a media type"):
        graph.put_blob("Doc", "a", "body", b"x", media_type="png")
    reports: list[tuple[int, int]] = []
    graph.put_blob("Doc", "a", "body", io.BytesIO(LARGE), progress=lambda *done: reports.append(done))
    assert (reports[0], reports[-1]) == ((1 << 20, 1 << 20), (len(LARGE), len(LARGE)))


def test_put_of_nothing_deletes_a_blob(graph: omnigraph.Graph) -> None:
    graph.insert("Doc", {"slug": "a", "body": b"one"})
    graph.put_blob("Doc", "a", "body", None)
    with pytest.raises(errors.EntityNotFound):
        graph.blob("Doc", "a", "body")


def test_put_with_etag_loses_against_a_change_in_between(graph: omnigraph.Graph) -> None:
    graph.insert("Doc", {"slug": "a", "body": b"one"})
    etag = graph.blob("Doc", "a", "body").etag

    class Racing(io.BytesIO):
        """A file whose first read lets another writer in."""

        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() == 0:
                open_again(graph).put_blob("Doc", "a", "body", b"theirs")
            return super().read(size)

    with pytest.raises(errors.Conflict):
        graph.put_blob("Doc", "a", "body", Racing(b"ours"), if_match=etag)
    assert graph.blob("Doc", "a", "body").read() == b"theirs"
