"""Blobs survive compaction, merges, exports and copies, and erasing removes their bytes."""

import gc
import json
import tempfile
from binascii import a2b_base64
from pathlib import Path

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.storage import compact, large_blobs
from omnigraph.values.blobs import BlobDigest
from tests.api.blobs.conftest import LARGE, SCHEMA, files_with
from tests.rig.graph_hosts import GraphHost
from tests.rig.plugin import S3

OTHER = LARGE[::-1]


@pytest.fixture
def graph(graphs: GraphHost, shelf: omnigraph.Graph) -> omnigraph.Graph:
    """A copy of the shared graph, to be changed."""
    return graphs.copy(shelf)


def bodies(graph: omnigraph.Graph) -> dict[str, bytes | None]:
    slugs = [slug for (slug,) in graph.query("match { $d: Doc } return { $d.slug }").to_records()]
    return {slug: body(graph, slug) for slug in sorted(slugs)}


def body(graph: omnigraph.Graph, slug: str) -> bytes | None:
    try:
        return graph.blob("Doc", slug, "body").read()
    except errors.EntityNotFound:
        return None


@pytest.mark.parametrize("heavy", [pytest.param(False, marks=pytest.mark.full), True])
def test_compaction_and_erasing_keep_what_remains(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, heavy: bool
) -> None:
    if heavy:  # then the rows are rewritten in this process, without reading the blob into memory
        monkeypatch.setattr(compact, "_MAX_BLOB_BYTES_IN_MEMORY", 0)
    secret = OTHER[1000:1064]
    graph.insert("Doc", {"slug": "secret", "body": OTHER, "raw": b"s" * 70_000}, {"slug": "kept", "body": LARGE})
    for number in range(3):
        graph.insert("Doc", {"slug": f"small{number}", "body": b"x"})
    graph.delete("Doc", where="slug = 'secret'")
    before, etag = bodies(graph), graph.blob("Doc", "large", "body").etag
    graph.maintenance.optimize()
    fragments = [fragment.physical_rows for fragment in graph.table("Doc").get_fragments()]
    assert sum(fragments) == len(before)
    assert bodies(graph) == before
    assert graph.blob("Doc", "large", "body").etag == etag
    assert files_with(graph.uri, secret)
    graph.maintenance.cleanup(keep=1, older_than=0, grace=0, erase=True, confirm=True)
    assert files_with(graph.uri, secret) == []
    assert bodies(graph) == before
    assert not graph.maintenance.check().findings


def test_heavy_fragments_are_not_rewritten_without_need(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_blobs, "HEAVY_BLOB_BYTES", 4 << 20)
    blob_file = next(Path(graph.uri).rglob("*.blob"))
    for number in range(3):
        graph.insert("Doc", {"slug": f"small{number}", "body": b"x"})
    graph.maintenance.optimize()
    assert len(graph.table("Doc").get_fragments()) == 2
    assert list(Path(graph.uri).rglob("*.blob")) == [blob_file]


def test_merge_decides_blobs_by_property(graph: omnigraph.Graph) -> None:
    review = graph.branches.create("review")
    review.put_blob("Doc", "text", "raw", LARGE)
    graph.update("Doc", where="slug = 'text'", set={"note": "ours"})
    assert [change.changed for change in graph.diff("main...review")] == [("raw",)]
    graph.merge("review")
    assert (graph.blob("Doc", "text", "raw").read(), body(graph, "text")) == (LARGE, b"hello world")
    review.put_blob("Doc", "text", "body", b"theirs", media_type="text/x-theirs")
    graph.put_blob("Doc", "text", "body", b"ours", media_type="text/x-theirs")
    with pytest.raises(errors.MergeConflict) as caught:
        graph.merge("review")
    assert "body" in str(caught.value)
    assert body(graph, "text") == b"ours"
    graph.merge("review", strategy="theirs")
    assert body(graph, "text") == b"theirs"
    review.put_blob("Doc", "empty", "body", b"equal")
    graph.put_blob("Doc", "empty", "body", b"equal")
    graph.merge("review")  # equal bytes on both sides are no conflict
    assert body(graph, "empty") == b"equal"


def assert_same_blobs(graph: omnigraph.Graph, other: omnigraph.Graph) -> None:
    assert bodies(other) == bodies(graph)
    assert other.blob("Cites", "c1", "scan").etag == graph.blob("Cites", "c1", "scan").etag
    other.blob("Doc", "large", "body").verify()


def test_export_keeps_blobs(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.export(tmp_path / "all.ndjson")
    loaded = omnigraph.init(tmp_path / "loaded", SCHEMA, durability="os")
    loaded.load(tmp_path / "all.ndjson", mode="append")
    assert_same_blobs(graph, loaded)


def test_copy_keeps_blobs(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.maintenance.copy_to(tmp_path / "copied")
    assert_same_blobs(graph, omnigraph.open(tmp_path / "copied"))


def test_conflicts_show_large_blobs_by_their_digest(graph: omnigraph.Graph) -> None:
    review = graph.branches.create("review")
    review.put_blob("Doc", "text", "body", OTHER)
    graph.put_blob("Doc", "text", "body", b"ours" * 30_000)
    expected = BlobDigest(len(OTHER), review.blob("Doc", "text", "body").content_hash)
    (conflict,) = graph.merge("review", dry_run=True).conflicts
    assert conflict.ours is not None
    assert conflict.theirs is not None
    assert (conflict.ours["body"], conflict.theirs["body"]) == (b"ours" * 30_000, expected)
    assert f"{len(OTHER)} bytes" in conflict.message
    assert conflict.to_json()["theirs"]["body"] == expected.to_json()


def test_a_digest_stands_for_the_bytes(graph: omnigraph.Graph) -> None:
    review = graph.branches.create("review")
    review.put_blob("Doc", "text", "body", OTHER)
    graph.put_blob("Doc", "text", "body", b"ours" * 30_000)
    graph.merge("review", strategy=lambda conflict: {"body": (conflict.theirs or {})["body"]})
    assert body(graph, "text") == OTHER


def test_a_merge_session_decides_between_large_blobs(graph: omnigraph.Graph) -> None:
    review = graph.branches.create("review")
    review.put_blob("Doc", "text", "body", OTHER)
    graph.put_blob("Doc", "text", "body", LARGE)
    session = graph.branches.merge_session("review", into="main")
    (conflict,) = session.conflicts
    assert conflict.theirs is not None
    session.resolve(0, {"body": conflict.theirs["body"]})
    result = session.commit()
    assert body(graph, "text") == OTHER
    (change,) = result.delta
    assert ((change.before or {})["body"], (change.after or {})["body"]) == (LARGE, OTHER)


def test_the_changes_of_a_merge_contain_bytes(graph: omnigraph.Graph) -> None:
    review = graph.branches.create("review")
    review.insert("Doc", {"slug": "new", "body": OTHER})
    graph.insert("Doc", {"slug": "ours", "body": LARGE})
    previewed = graph.merge("review", dry_run=True)
    assert [(change.after or {})["body"] for change in previewed.delta] == [OTHER]
    result = graph.merge("review")
    assert [(change.after or {})["body"] for change in result.delta] == [OTHER]
    reverted = graph.revisions.revert(graph.head.id, mainline=1)
    assert [(change.before or {})["body"] for change in reverted.delta] == [OTHER]
    assert body(graph, "new") is None


def test_lines_with_streamed_blobs_are_whole(graph: omnigraph.Graph, tmp_path: Path) -> None:
    """Streaming splits a line into parts in a file, but an iterator returns whole lines."""
    count = graph.export(tmp_path / "all.ndjson")
    lines = list(graph.export())
    assert (tmp_path / "all.ndjson").read_bytes() == b"".join(lines)
    assert count == len(lines) == sum(line.endswith(b"\n") for line in lines)
    records = [json.loads(line) for line in lines]
    blobs = {record["data"]["slug"]: record["data"]["body"] for record in records if record.get("type") == "Doc"}
    assert a2b_base64(blobs["large"].removeprefix("base64:")) == body(graph, "large")


@pytest.mark.full
def test_merges_and_exports_stream_blobs_of_an_object_store(s3: S3, tmp_path: Path) -> None:
    """Blobs that are not in a local file are copied to a temporary folder, which is removed."""
    graph = omnigraph.init(f"{s3.url}/blobs", SCHEMA)
    graph.insert("Doc", {"slug": "first", "body": b"x"})
    review = graph.branches.create("review")
    review.insert("Doc", {"slug": "theirs", "body": OTHER, "raw": b"r" * 70_000})
    graph.insert("Doc", {"slug": "ours", "body": LARGE})
    result = graph.merge("review")
    assert bodies(graph) == {"first": b"x", "ours": LARGE, "theirs": OTHER}
    assert [(change.after or {})["body"] for change in result.delta] == [OTHER]
    graph.export(tmp_path / "all.ndjson")
    assert (tmp_path / "all.ndjson").read_bytes() == b"".join(graph.export())
    graph.maintenance.optimize()
    assert bodies(graph) == {"first": b"x", "ours": LARGE, "theirs": OTHER}


def test_temporary_folders_do_not_outlive_the_result_of_a_merge(
    graph: omnigraph.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    review = graph.branches.create("review")
    review.insert("Doc", {"slug": "theirs", "body": OTHER})
    graph.insert("Doc", {"slug": "ours", "body": LARGE})
    result = graph.merge("review")
    assert result.outcome == "merged"
    del result
    gc.collect()
    assert list((tmp_path / "temporary").iterdir()) == []
