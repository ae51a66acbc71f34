"""A blob is read in ranges, in chunks, as a file and to a path, at the commit it was opened at."""

import asyncio
import hashlib
import io
import os
import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.api.async_graph import AsyncGraph
from tests.api.blobs.conftest import LARGE, SCHEMA
from tests.rig.graph_hosts import GraphHost
from tests.rig.plugin import S3


def test_blob_tells_its_size_type_and_hash(shelf: omnigraph.Graph) -> None:
    blob = shelf.blob("Doc", "text", "body")
    digest = f"sha256:{hashlib.sha256(b'hello world').hexdigest()}"
    assert (blob.size, blob.media_type, blob.content_hash, blob.etag) == (11, "text/x-greeting", digest, f'"{digest}"')
    assert (blob.kind, blob.type_name, blob.entity_id, blob.property_name) == ("node", "Doc", "text", "body")
    assert blob.commit_id == shelf.head.id
    assert shelf.blob("Cites", "c1", "scan").media_type == "application/pdf"
    assert shelf.blob("Doc", "large", "body").media_type == "application/octet-stream"


def test_ranges_are_half_open_and_end_at_the_end(shelf: omnigraph.Graph) -> None:
    blob, large, empty = (shelf.blob("Doc", slug, "body") for slug in ("text", "large", "empty"))
    assert (blob.read(), blob.read(6), blob.read(0, 5), blob.read(6, 999)) == (
        b"hello world",
        b"world",
        b"hello",
        b"world",
    )
    assert large.read(4 << 20) == LARGE[4 << 20 :]
    assert (empty.read(), empty.read(0, 5), list(empty.iter_chunks())) == (b"", b"", [])


@pytest.mark.parametrize(("start", "stop"), [(11, None), (11, 12), (-1, 3), (3, 3), (5, 2), (99, None)])
def test_range_without_a_byte_is_refused(shelf: omnigraph.Graph, start: int, stop: int | None) -> None:
    blob = shelf.blob("Doc", "text", "body")
    with pytest.raises(errors.RangeNotSatisfiable) as caught:
        blob.read(start, stop)
    assert (caught.value.start, caught.value.length) == (start, 11)
    with pytest.raises(errors.RangeNotSatisfiable):
        blob.iter_chunks(start=start, stop=stop)


def test_chunks_and_file_hold_the_same_bytes(shelf: omnigraph.Graph) -> None:
    large = shelf.blob("Doc", "large", "body")
    chunks = list(large.iter_chunks(1_000_000))
    assert b"".join(chunks) == LARGE
    assert {len(chunk) for chunk in chunks[:-1]} == {1_000_000}
    with large.open() as file:
        assert file.seek(-77, io.SEEK_END) == 4 << 20
        assert file.read() == LARGE[-77:]
        assert (file.seek(5), file.read(3), file.tell(), file.seek(len(LARGE) + 5), file.read()) == (
            5,
            LARGE[5:8],
            8,
            len(LARGE) + 5,
            b"",
        )
    with pytest.raises(errors.UsageError):
        large.iter_chunks(0)


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        (("Doc", "null", "body"), errors.EntityNotFound, "and a value for 'body'"),
        (("Doc", "nobody", "body"), errors.EntityNotFound, "has the id 'nobody'"),
        (("Doc", "text", "note"), errors.InputError, "Doc.note is not a blob; available blob properties: body, raw"),
        (("Doc", "text", "bodi"), errors.InputError, "did you mean `body`"),
        (("Cites", "c1", "body"), errors.InputError, "available blob properties: scan"),
        (("Dog", "text", "body"), errors.InputError, "unknown type 'Dog'"),
    ],
)
def test_address_without_a_blob_is_explained(
    shelf: omnigraph.Graph, address: tuple[str, str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        shelf.blob(*address)


def test_etag_is_a_precondition(shelf: omnigraph.Graph) -> None:
    blob = shelf.blob("Doc", "text", "body")
    assert shelf.blob("Doc", "text", "body", if_match=blob.etag).read() == b"hello world"
    assert shelf.blob("Doc", "text", "body", if_match="*").size == 11
    with pytest.raises(errors.BlobPreconditionFailed) as caught:
        shelf.blob("Doc", "text", "body", if_match='"sha256:00"')
    assert caught.value.etag == blob.etag


def test_save_writes_into_pipes_and_through_links(shelf: omnigraph.Graph, tmp_path: Path) -> None:
    """A pipe, a device or a link is never replaced by a file."""
    large = shelf.blob("Doc", "large", "body")
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert large.save(pipe, stop=3) == 3
    assert pipe.is_fifo()
    assert os.read(reader, 10) == LARGE[:3]
    os.close(reader)
    link.symlink_to(target.name)
    assert large.save(link, stop=3) == 3
    assert (str(link.readlink()), target.read_bytes()) == (target.name, LARGE[:3])
    link.unlink()
    link.symlink_to(os.devnull)
    assert large.save(link) == len(LARGE)
    assert str(link.readlink()) == os.devnull
    link.unlink()
    link.symlink_to("/dev/full")
    with pytest.raises(errors.InputError, match="No space left on device"):
        large.save(link)


def test_save_replaces_a_file_at_once_or_not_at_all(shelf: omnigraph.Graph, tmp_path: Path) -> None:
    target, large = tmp_path / "out.bin", shelf.blob("Doc", "large", "body")
    target.write_bytes(b"before")
    reports: list[tuple[int, int]] = []

    def interrupt(done: int, total: int) -> None:
        reports.append((done, total))
        assert target.read_bytes() == b"before"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        large.save(target, progress=interrupt)
    assert reports == [(4 << 20, len(LARGE))]
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]
    assert large.save(target) == len(LARGE)
    assert target.read_bytes() == LARGE
    assert large.save(target, start=1, stop=4) == 3
    assert target.read_bytes() == LARGE[1:4]
    with pytest.raises(errors.InputError, match="cannot write"):
        large.save(tmp_path / "missing" / "out.bin")


def test_blob_stays_at_its_commit_until_cleanup(graphs: GraphHost) -> None:
    graph = graphs.init(SCHEMA)
    graph.insert("Doc", {"slug": "a", "body": b"one"})
    first, opened = graph.head.id, graph.blob("Doc", "a", "body")
    graph.update("Doc", where="slug = 'a'", set={"body": b"two"})
    graph.delete("Doc", where="slug = 'a'")
    assert (opened.read(), graph.at(first).blob("Doc", "a", "body").read()) == (b"one", b"one")
    assert graph.at("HEAD~1").blob("Doc", "a", "body").read() == b"two"
    with pytest.raises(errors.EntityNotFound):
        graph.blob("Doc", "a", "body")
    graph.insert("Doc", {"slug": "b", "body": LARGE})
    kept = graph.blob("Doc", "b", "body")
    graph.delete("Doc", where="slug = 'b'")
    graph.insert("Doc", {"slug": "c"})
    graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    with pytest.raises(errors.HistoryReclaimed):
        list(kept.iter_chunks())


def test_asynchronous_blob_reads_the_same(shelf: omnigraph.Graph, tmp_path: Path) -> None:
    async def read() -> None:
        blob = await AsyncGraph(shelf).blob("Doc", "large", "body")
        assert (blob.size, await blob.read(0, 9)) == (len(LARGE), LARGE[:9])
        assert b"".join([chunk async for chunk in blob.iter_chunks()]) == LARGE
        assert await blob.etag() == blob.sync.etag == f'"{await blob.content_hash()}"'
        assert await blob.media_type() == "application/octet-stream"
        assert await blob.save(tmp_path / "x", stop=5) == 5
        await blob.verify()

    asyncio.run(read())


def test_damaged_blob_is_never_returned_as_whole(shelf: omnigraph.Graph, tmp_path: Path) -> None:
    shutil.copytree(shelf.uri, tmp_path / "g")
    graph = omnigraph.open(tmp_path / "g", durability="os")
    blob = graph.blob("Doc", "large", "body")
    blob.verify()
    (file,) = (tmp_path / "g").rglob("*.blob")
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    graph.branches.create("review")
    for opened in (blob, graph.at("review").blob("Doc", "large", "body")):
        with pytest.raises(errors.BlobIntegrityError, match="does not match its checksum"):
            opened.verify()
    with pytest.raises(errors.StorageError, match="does not match its checksum"):
        omnigraph.open(tmp_path / "g", verify=True).blob("Doc", "large", "body")
    etag = blob.etag
    os.truncate(file, 1000)
    assert graph.blob("Doc", "large", "body").etag == etag  # the bytes are read once per process
    with pytest.raises(errors.BlobIntegrityError, match=f"1000 of {len(LARGE)} bytes"):
        blob.save(tmp_path / "out")
    file.unlink()
    with pytest.raises(errors.BlobIntegrityError, match="missing"):
        graph.blob("Doc", "large", "body").read()
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.full
def test_read_from_a_store_that_disappears_is_a_typed_error(s3: S3, tmp_path: Path) -> None:
    graph = omnigraph.init(s3.url, SCHEMA)
    source = tmp_path / "source"
    source.write_bytes(LARGE * 4)
    graph.insert("Doc", {"slug": "a", "body": source})
    blob, target = graph.blob("Doc", "a", "body"), tmp_path / "out"
    assert blob.save(target) == len(LARGE) * 4
    assert target.read_bytes() == LARGE * 4
    target.write_bytes(b"before")
    s3.proxy.cut(2, "GET", "*.blob", forward=False)
    with pytest.raises(errors.StorageError):
        blob.save(target)
    assert target.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]
    s3.proxy.heal()
    assert graph.blob("Doc", "a", "body").save(target) == len(LARGE) * 4
    assert graph.update("Doc", where="slug = 'a'", set={"note": "x"}).affected_nodes == 1
    assert graph.blob("Doc", "a", "body").read() == LARGE * 4
