"""External blobs are read only below allowed locations, and their bytes are copied."""

import json
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.storage.external_blobs import parse_location, read_external
from tests.api.blobs.conftest import SCHEMA
from tests.api.blobs.test_blob_memory import memory_bytes
from tests.rig.plugin import S3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one object, a neighbor with a similar name, and a graph `g`."""
    tmp_path = tmp_path_factory.mktemp("external")
    for name in ("data", "data2"):
        (tmp_path / name / "in ner").mkdir(parents=True)
        (tmp_path / name / "in ner" / "a.txt").write_bytes(name.encode())
    (tmp_path / "data" / "link").symlink_to(tmp_path / "data2")
    os.mkfifo(tmp_path / "data" / "pipe")
    omnigraph.init(tmp_path / "g", SCHEMA, durability="os").insert("Doc", {"slug": "first"})
    return tmp_path


def open_graph(folder: Path, *bases: str) -> omnigraph.Graph:
    return omnigraph.open(folder / "g", durability="os", external_blobs=bases)


def test_external_blobs_are_refused_unless_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"file://{folder}/data/in%20ner/a.txt"
    with pytest.raises(errors.ExternalBlobPolicyError) as caught:
        open_graph(folder).insert("Doc", {"slug": "a", "body": uri})
    assert f"external_blobs=['file://{folder}/data/in%20ner']" in str(caught.value.hint)
    graph = open_graph(folder, f"file://{folder}/data/")
    graph.insert("Doc", {"slug": "a", "body": uri})
    graph.mutate("query q($u: Blob) { update Doc set { raw: $u } where slug = 'a' }".replace("'", '"'), u=uri)
    (folder / "data" / "in ner" / "a.txt").write_bytes(b"changed later")
    assert (graph.blob("Doc", "a", "body").read(), graph.blob("Doc", "a", "raw").read()) == (b"data", b"data")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", f"s3://bucket file://{folder}/data2")
    other = omnigraph.open(folder / "g", durability="os")
    line = {"type": "Doc", "data": {"slug": "b", "body": f"file://{folder}/data2/in%20ner/a.txt"}}
    other.load(json.dumps(line).encode(), mode="overwrite")
    assert other.blob("Doc", "b", "body").read() == b"data2"
    assert pickle.loads(pickle.dumps(graph))._handle.external_blobs == graph._handle.external_blobs


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("file://{}/data/../data2/in%20ner/a.txt", "'.' or '..'"),
        ("file://{}/data/%2e%2e/data2/in%20ner/a.txt", "'.' or '..'"),
        ("file://{}/data/./in%20ner/a.txt", "'.' or '..'"),
        ("file://{}/data//in%20ner/a.txt", "empty component"),
        ("file://{}/data%2F..%2Fdata2/a.txt", "encoded separator"),
        ("file://{}/data\\..\\data2", "control character"),
        ("file://{}/data/a.txt?x=1", "control character"),
        ("file://{}/data2/in%20ner/a.txt", "not under an allowed location"),
        ("file://{}/data/link/in%20ner/a.txt", "symbolic link"),
        ("file://localhost{}/data/a.txt", "must not contain a host"),
        ("FILE://{}/data/a.txt", "begins with"),
        ("https://example.com/a.txt", "begins with"),
        ("cover.png", "begins with"),
        ("s3://key:secret@bucket/a", "without credentials"),
        ("s3://bucket/a", "not under an allowed location"),
        ("file://{}/" + "x" * 70_000, "at most 65536 bytes"),
    ],
)
def test_uri_that_leaves_its_base_is_refused(folder: Path, uri: str, words: str) -> None:
    with pytest.raises(errors.ExternalBlobPolicyError, match=words) as caught:
        open_graph(folder, f"file://{folder}/data").insert("Doc", {"slug": "a", "body": uri.format(folder)})
    assert "secret" not in str(caught.value)


def test_unreadable_sources_are_refused(folder: Path) -> None:
    graph = open_graph(folder, f"file://{folder}/data")
    for name, words in (("none.txt", "No such file"), ("in%20ner", "directory"), ("pipe", "not a regular file")):
        with pytest.raises(errors.ExternalBlobSourceError, match=words):
            graph.insert("Doc", {"slug": "a", "body": f"file://{folder}/data/{name}"})


def test_source_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    for size in (3 << 20, 4 << 20, 5 << 20):
        path.write_bytes(bytes(4 << 20))
        blocks = read_external(path.as_uri(), parse_location(path.as_uri()), {})
        next(blocks)
        os.utime(path, (1, 1))
        os.truncate(path, size)
        with pytest.raises(errors.ExternalBlobSourceError, match="changed while it was being read"):
            list(blocks)


def insert_external(folder: Path, names: list[str], sender: Any) -> None:
    graph = open_graph(folder, f"file://{folder}/data")
    graph.insert("Doc", {"slug": "warm", "body": f"file://{folder}/data/in%20ner/a.txt"})
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = memory_bytes("VmRSS")
    graph.insert("Doc", *({"slug": name, "body": f"file://{folder}/data/{name}"} for name in names))
    sender.send(memory_bytes("VmHWM") - before)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize("size", [30 << 20, pytest.param(200 << 20, marks=pytest.mark.full)])
def test_large_external_blobs_are_not_held_in_memory(tmp_path: Path, size: int) -> None:
    """Two sparse files, which together are larger than 32 MiB."""
    (tmp_path / "data" / "in ner").mkdir(parents=True)
    (tmp_path / "data" / "in ner" / "a.txt").write_bytes(b"a")
    omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    for name in ("one", "two"):
        with (tmp_path / "data" / name).open("wb") as file:
            file.write(name.encode())
            file.truncate(size)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=insert_external, args=(tmp_path, ["one", "two"], sender))
    process.start()
    sender.close()
    growth = receiver.recv()
    process.join()
    assert growth < 24 << 20, growth
    graph = omnigraph.open(tmp_path / "g")
    for name in ("one", "two"):
        blob = graph.blob("Doc", name, "body")
        assert (blob.size, blob.read(0, 4)) == (size, name.encode() + b"\0")


@pytest.mark.parametrize("base", ["file:///", "data", "file://{}/data/..", "s3://", "https://example.com"])
def test_malformed_base_is_refused(folder: Path, base: str) -> None:
    with pytest.raises(errors.InputError, match="cannot be used as an allowed location"):
        open_graph(folder, base.format(folder))
    with pytest.raises(errors.InputError, match="must be a list"):
        omnigraph.open(folder / "g", external_blobs="file:///data")


@pytest.mark.full
def test_external_blobs_are_read_from_s3(folder: Path, s3: S3) -> None:
    bucket, _, prefix = s3.url.removeprefix("s3://").partition("/")
    source = omnigraph.init(f"{s3.url}/source", "node A { k: String @key }")
    (name,) = source._handle.store.objects.backend.list_level("_schemas")[1]
    graph = open_graph(folder, f"s3://{bucket}/{prefix}/source")
    uri = f"s3://{bucket}/{prefix}/source/{name.name}"
    graph.insert("Doc", {"slug": "a", "body": uri})
    assert graph.blob("Doc", "a", "body").read() == source._handle.store.objects.read(name.name)
    with pytest.raises(errors.ExternalBlobSourceError, match="does not exist"):
        graph.insert("Doc", {"slug": "b", "body": f"{uri}x"})
    with pytest.raises(errors.ExternalBlobPolicyError):
        graph.insert("Doc", {"slug": "b", "body": f"s3://{bucket}/{prefix}/source2/x"})
