"""One graph with blobs of every form, shared by the tests that only read it."""

import random
from pathlib import Path

import pytest

import omnigraph
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Doc { slug: String @key  note: String?  body: Blob?  body_media_type: String?  raw: Blob? }
edge Cites: Doc -> Doc { scan: Blob? }
"""
LARGE = random.Random(7).randbytes((4 << 20) + 77)  # more than Lance keeps inside a data file


@pytest.fixture(scope="module")
def shelf(graphs: GraphHost) -> omnigraph.Graph:
    """NULL, empty, small and large blobs, and one of an edge."""
    graph = graphs.init(SCHEMA)
    docs = [
        {"slug": "null"},
        {"slug": "empty", "body": b""},
        {"slug": "text", "body": b"hello world", "body_media_type": "text/x-greeting"},
        {"slug": "large", "body": LARGE},
    ]
    graph.load({"Doc": docs}, mode="append")
    graph.insert("Cites", {"id": "c1", "from": "text", "to": "large", "scan": b"%PDF-1.7"})
    return graph


def files_with(root: Path | str, content: bytes) -> list[Path]:
    """Return the files below a root that contain some bytes."""
    return [path for path in Path(root).rglob("*") if path.is_file() and content in path.read_bytes()]
