"""`omnigraph blob`: bytes to a file or to standard output, facts, and a streamed replacement."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as library
from tests.cli.conftest import Program

SCHEMA = """
node Doc { number: I32 @key  body: Blob?  body_media_type: String? }
edge Cites: Doc -> Doc { scan: Blob? }
"""


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """A graph with a blob of a node and one of an edge."""
    with library.init("g", SCHEMA, durability="os") as made:
        made.insert("Doc", {"number": 1, "body": b"hello world"}, {"number": 2})
        made.insert("Cites", {"id": "c1", "from": "1", "to": "2", "scan": b"scan"})
    return "g"


def test_put_stat_and_get(omnigraph: Program, graph: str) -> None:
    told = json.loads(omnigraph("blob", "stat", "Doc", "1", "body", "--store", graph, "--json").out)
    assert (told["kind"], told["type_name"], told["entity_id"], told["property"]) == ("node", "Doc", "1", "body")
    assert (told["size"], told["media_type"], told["branch"]) == (11, "text/plain", "main")
    Path("new.bin").write_bytes(b"%PDF-new")
    words = ("blob", "put", "Doc", "1", "body", "new.bin", "--store", graph)
    ended = omnigraph(*words, "--if-match", told["etag"], "--media-type", "application/x-new", "-m", "new")
    assert (ended.code, ended.out) == (0, "stored 8 bytes in property body of Doc '1' on main\n")
    refused = omnigraph(*words, "--if-match", told["etag"])
    assert (refused.code, "its current ETag is" in refused.err) == (1, True)
    assert "nothing was written" in refused.err
    stat = omnigraph("blob", "stat", "Doc", "1", "body", "--store", graph).out
    assert "size        8\nmedia type  application/x-new\n" in stat
    assert omnigraph("blob", "get", "Doc", "1", "body", "--store", graph).out == "%PDF-new"
    assert omnigraph("blob", "get", "Doc", "1", "body", "--store", graph, "--range", "1-4").out == "PDF"
    assert omnigraph("blob", "get", "Doc", "1", "body", "--store", graph, "--at", "HEAD~1").out == "hello world"
    assert omnigraph("blob", "get", "Cites", "c1", "scan", "--store", graph, "--kind", "edge").out == "scan"
    put = json.loads(omnigraph("blob", "put", "Doc", "2", "body", "-", "--store", graph, "--json", stdin=b"piped").out)
    assert (put["size"], put["affected_nodes"], put["commit"]["message"]) == (5, 1, None)
    assert omnigraph("blob", "get", "Doc", "2", "body", "--store", graph, "--range", "2-").out == "ped"


def test_failed_get_keeps_the_output_file(omnigraph: Program, graph: str) -> None:
    Path("out.bin").write_bytes(b"before")
    words = ("blob", "get", "Doc", "1", "body", "--store", graph, "--out", "out.bin")
    for arguments, code in (
        ((*words, "--range", "5-5"), 2),
        ((*words, "--range", "x"), 2),
        ((*words, "--range", "11-"), 1),
        ((*words, "--if-match", '"no"'), 1),
        (("blob", "get", "Doc", "2", "body", "--store", graph, "--out", "out.bin"), 1),
        (("blob", "get", "Doc", "1", "note", "--store", graph, "--out", "out.bin"), 1),
        (("blob", "get", "Doc", "1", "body", "--store", graph, "--json"), 2),
    ):
        assert omnigraph(*arguments).code == code
        assert Path("out.bin").read_bytes() == b"before"
    assert omnigraph(*words).err.endswith("wrote 11 bytes to out.bin\n")
    told = json.loads(omnigraph(*words, "--json").out)
    assert (told["path"], told["bytes"], Path("out.bin").read_bytes()) == ("out.bin", 11, b"hello world")


def test_external_blobs_are_allowed_by_an_option(omnigraph: Program, graph: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"external")
    record = {"type": "Doc", "data": {"number": 3, "body": f"file://{tmp_path}/data/a"}}
    Path("d.ndjson").write_text(json.dumps(record))
    refused = omnigraph("load", graph, "--data", "d.ndjson", "--mode", "append")
    assert (refused.code, "--external-blobs" in refused.err) == (1, True)
    base = f"file://{tmp_path}/data"
    ended = omnigraph("load", graph, "--data", "d.ndjson", "--mode", "append", "--external-blobs", base)
    assert ended.code == 0, ended.err
    assert omnigraph("blob", "get", "Doc", "3", "body", "--store", graph).out == "external"


@pytest.mark.full
def test_repeated_put_has_no_effect(graph: str) -> None:
    Path("new.bin").write_bytes(b"new")
    words = (sys.executable, "-m", "omnigraph", "blob", "put", "Doc", "1", "body", "new.bin", "--store", graph)
    for content, code in ((b"new", 0), (b"new", 0), (b"different", 1)):
        Path("new.bin").write_bytes(content)
        ended = subprocess.run((*words, "--idempotency-key", "k"), capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
    with library.open(graph) as opened:
        assert opened.blob("Doc", 1, "body").read() == b"new"
        assert len(opened.log()) == 4


@pytest.mark.full
def test_interrupted_get_leaves_nothing_behind(graph: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(40 << 20))
    with library.open(graph) as opened:
        opened.put_blob("Doc", 1, "body", tmp_path / "large")
    (tmp_path / "out").mkdir()
    script = (
        "import os, signal, omnigraph.api.blobs as blobs\n"
        "real, reads = blobs.Blob._read_range, []\n"
        "def counted(self, first, last):\n"
        "    reads.append(first)\n"
        "    if len(reads) == 3:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(self, first, last)\n"
        "blobs.Blob._read_range = counted\n"
        "from omnigraph.cli.main import main\n"
        "main()\n"
    )
    words = ["blob", "get", "Doc", "1", "body", "--store", graph, "--out", str(tmp_path / "out" / "x")]
    ended = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 130, ended.stderr
    assert "no partial changes were left behind" in ended.stderr
    assert list((tmp_path / "out").iterdir()) == []
