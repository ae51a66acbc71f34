"""An export that contains large blobs can be loaded again, and the limits of a load can be changed."""

import base64
import gzip
import io
import json
import multiprocessing
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.ingest import streamed_blobs
from tests.api.blobs.test_blob_memory import memory_bytes

SCHEMA = "node Doc { slug: String @key  note: String?  tags: [String]?  body: Blob? }"
CONTENT = random.Random(3).randbytes(5000)
DIGITS = base64.b64encode(CONTENT).decode()


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> omnigraph.Graph:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.delenv("OMNIGRAPH_MAX_ROW_BYTES", raising=False)
    return omnigraph.init(tmp_path / "g", SCHEMA, durability="os")


@pytest.fixture
def streams_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_blobs, "STREAMED_DIGITS", 16)


def line(**data: Any) -> bytes:
    return json.dumps({"type": "Doc", "data": data}).encode() + b"\n"


def left_behind(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "temporary").glob("omnigraph-blobs-*"))


def test_export_with_a_blob_above_the_line_limit_is_loaded_again(graph: omnigraph.Graph, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT * (26 << 20 >> 12))
    graph.insert("Doc", {"slug": "a", "note": "first", "body": source}, {"slug": "b", "body": b"small"})
    graph.export(tmp_path / "all.ndjson")
    assert (tmp_path / "all.ndjson").stat().st_size > 32 << 20
    other = omnigraph.init(tmp_path / "other", SCHEMA, durability="os")
    other.load(tmp_path / "all.ndjson", mode="append", engine="local")
    assert other.blob("Doc", "a", "body").content_hash == graph.blob("Doc", "a", "body").content_hash
    assert other.blob("Doc", "b", "body").read() == b"small"
    head = other.head.id
    other.load(tmp_path / "all.ndjson", mode="merge", engine="local")
    assert other.head.id == head


@pytest.mark.usefixtures("streams_all")
@pytest.mark.parametrize("form", ["path", "bytes", "file", "gzip", "array", "typed", "escaped"])
def test_streamed_blob_equals_the_bytes(graph: omnigraph.Graph, tmp_path: Path, form: str) -> None:
    text = line(slug="a", note='a \\"base64:" word', body=f"base64:{DIGITS}") + line(slug="b", body=f"base64:{DIGITS}")
    path = tmp_path / "in.ndjson"
    sources: dict[str, Any] = {
        "path": text,
        "bytes": text,
        "file": text,
        "gzip": gzip.compress(text),
        "array": b"[" + text.strip().replace(b"\n", b",") + b"]",
        "escaped": text.replace(b"/", b"\\/").replace(b"+", b"\\u002B"),
        "typed": b"".join(json.dumps(json.loads(row)["data"]).encode() + b"\n" for row in text.splitlines()),
    }
    path.write_bytes(sources[form])
    if form == "bytes":
        data: Any = text
    elif form == "file":
        data = io.BytesIO(text)
    else:
        data = {"Doc": path} if form == "typed" else path
    graph.load(data, mode="append")
    assert [graph.blob("Doc", slug, "body").read() for slug in "ab"] == [CONTENT, CONTENT]
    assert graph.nodes("Doc").where(slug="a").to_dicts()[0]["note"] == 'a \\"base64:" word'
    assert left_behind(tmp_path) == []


@pytest.mark.usefixtures("streams_all")
def test_text_that_looks_like_a_blob_stays_text(graph: omnigraph.Graph) -> None:
    text = f"base64:{DIGITS}"
    graph.load(line(slug="a", note=text, tags=[text, "x"], body=text), mode="append")
    graph.load(line(slug=text), mode="append")
    (stored,) = graph.nodes("Doc").where(slug="a").to_dicts()
    assert (stored["note"], stored["tags"]) == (text, [text, "x"])
    assert graph.nodes("Doc").where(slug=text).count() == 1


@pytest.mark.usefixtures("streams_all")
@pytest.mark.parametrize(
    "digits", [DIGITS[:-1], DIGITS[:40] + "*" + DIGITS[40:], DIGITS + "=", "QUI=" + DIGITS, DIGITS + "\\u004"]
)
def test_malformed_digits_are_reported_with_their_line(graph: omnigraph.Graph, digits: str) -> None:
    text = line(slug="a") + b'{"type": "Doc", "data": {"slug": "b", "body": "base64:' + digits.encode() + b'"}}\n'
    report = graph.load(text + line(slug="c") + b"{", mode="append", on_error="report")
    assert isinstance(report, omnigraph.LoadReport)
    assert [problem.line for problem in report] == [2, 4]
    assert "malformed base64" in report.problems[0].reason


@pytest.mark.usefixtures("streams_all")
def test_unfinished_blob_ends_at_its_line(graph: omnigraph.Graph) -> None:
    text = b'{"type": "Doc", "data": {"slug": "b", "body": "base64:' + DIGITS.encode() + b"\n" + line(slug="c")
    report = graph.load(text, mode="append", on_error="report")
    assert isinstance(report, omnigraph.LoadReport)
    assert [problem.line for problem in report] == [1]


@pytest.mark.usefixtures("streams_all")
@pytest.mark.parametrize("size", range(1, 60, 7))
def test_blob_is_found_at_every_cut(graph: omnigraph.Graph, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.ingest.files._PIECE_BYTES", size)
    rows = [line(slug=str(number), body="base64:" + DIGITS[: 4 * number]) for number in range(12)]
    graph.load(b"".join(rows), mode="append")
    for number in range(12):
        assert graph.blob("Doc", str(number), "body").read() == CONTENT[: 3 * number]


def load_export(folder: Path, sender: Any) -> None:
    graph = omnigraph.open(folder / "g")
    graph.load(line(slug="warm", body="base64:AAAA"), mode="append")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = memory_bytes("VmRSS")
    graph.load(folder / "all.ndjson", mode="append", engine="local")
    sender.send(memory_bytes("VmHWM") - before)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize("size", [48 << 20, pytest.param(300 << 20, marks=pytest.mark.full)])
def test_streamed_blob_is_not_held_in_memory(graph: omnigraph.Graph, tmp_path: Path, size: int) -> None:
    with (tmp_path / "all.ndjson").open("wb") as file:
        file.write(b'{"type": "Doc", "data": {"slug": "a", "body": "base64:')
        for _ in range(size // (3 << 18)):
            file.write(base64.b64encode(bytes(3 << 18)))
        file.write(b'"}}\n')
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=load_export, args=(tmp_path, sender))
    process.start()
    sender.close()
    growth = receiver.recv()
    process.join()
    assert growth < 40 << 20, growth
    assert graph.refresh().blob("Doc", "a", "body").size == size // (3 << 18) * (3 << 18)


@pytest.mark.usefixtures("streams_all")
def test_transaction_accepts_streamed_blobs(graph: omnigraph.Graph, tmp_path: Path) -> None:
    with graph.transaction() as transaction:
        transaction.load(line(slug="a", body=f"base64:{DIGITS}"), mode="append")
        transaction.insert("Doc", {"slug": "b", "body": b"small"})
        assert transaction.blob("Doc", "a", "body").read() == CONTENT
    assert graph.blob("Doc", "a", "body").read() == CONTENT
    assert left_behind(tmp_path) == []


def test_row_limit_is_an_option_and_a_variable(graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    long = line(slug="a", note="x" * 3000)
    with pytest.raises(errors.ResourceLimitExceeded) as caught:
        graph.load(long, mode="append", max_row_bytes=2000)
    assert (caught.value.limit, caught.value.actual) == (2000, 2001)
    assert "max_row_bytes" in str(caught.value.hint)
    assert "--max-row-bytes" in str(caught.value.hint)
    monkeypatch.setenv("OMNIGRAPH_MAX_ROW_BYTES", "2000")
    with pytest.raises(errors.ResourceLimitExceeded):
        graph.load(long, mode="append")
    graph.load(long, mode="append", max_row_bytes=4000)
    assert graph.nodes("Doc").count() == 1
    monkeypatch.setenv("OMNIGRAPH_MAX_ROW_BYTES", "many")
    with pytest.raises(errors.ConfigError, match="OMNIGRAPH_MAX_ROW_BYTES"):
        graph.load(long, mode="merge")
    for wrong in (0, -1, "5", True):
        with pytest.raises(errors.UsageError, match="max_row_bytes"):
            graph.load(long, mode="merge", max_row_bytes=wrong)  # type: ignore[arg-type]


def test_row_limit_includes_streamed_blobs_if_it_is_given(graph: omnigraph.Graph, tmp_path: Path) -> None:
    digits = base64.b64encode(bytes(3 << 20)).decode()
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(line(slug="a", body=f"base64:{digits}")))
    with pytest.raises(errors.ResourceLimitExceeded) as caught:
        graph.load(tmp_path / "zeros.gz", mode="append", format="ndjson", max_row_bytes=2 << 20)
    assert caught.value.limit == 2 << 20
    graph.load(tmp_path / "zeros.gz", mode="append", format="ndjson")
    assert graph.blob("Doc", "a", "body").size == 3 << 20
    assert left_behind(tmp_path) == []


def test_row_with_many_values_needs_the_option(graph: omnigraph.Graph) -> None:
    many = line(slug="a", tags=["x"] * 140_000)
    with pytest.raises(errors.ResourceLimitExceeded, match="slots") as caught:
        graph.load(many, mode="append")
    assert "max_row_bytes" in str(caught.value.hint)
    graph.load(many, mode="append", max_row_bytes=64 << 20)
    assert graph.nodes("Doc").count() == 1
