"""Rebuilding a graph in another storage format, as its page describes."""

import sys
from pathlib import Path

import omnigraph
from tests.api.graph.conftest import rewrite_manifest, tree
from tests.contract.page_examples import agrees, run, steps

BINARIES = Path(sys.executable).parent
SCHEMA = """
node Doc { slug: String @key  day: Date?  at: DateTime?  big: U64?  v: Vector(2)?  raw: Blob? }
node Note { text: String }
edge Cites: Doc -> Doc { weight: F32? }
"""
ROWS = [
    {"slug": "a", "day": "2024-01-01", "at": "2024-01-01T00:00:00.123Z", "big": 2**64 - 1},
    {"slug": "b'\"\\\n%", "v": [0.1, -2.5], "raw": "base64:AAEC"},
    {"slug": "🙂"},
]


def test_graph_of_another_format_is_exported_and_rebuilt(checkout: Path, tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "old.omni", SCHEMA, durability="os") as old:
        old.insert("Doc", ROWS)
        old.insert("Note", {"text": "no key"}, {"text": "no key"})
        old.connect_nodes("Cites", [("a", "🙂", {"weight": 0.5}), ("a", "a")])
        kept = b"".join(old.export())
    page = (checkout / "docs" / "how-to" / "rebuild.md").read_text()
    export, refuse, rebuild, compare = steps(page)
    run(export, BINARIES, tmp_path)  # with the build that made it
    rewrite_manifest(tmp_path / "old.omni", stamp="99")  # from here on it is another build's
    before = tree(tmp_path / "old.omni")
    refusal = run(refuse, BINARIES, tmp_path)
    assert "older storage format 99" in refusal
    assert "load --mode overwrite" in refusal
    assert refusal.endswith("exit code 1\n")
    run(rebuild, BINARIES, tmp_path)
    assert agrees(compare, run(compare, BINARIES, tmp_path))
    assert tree(tmp_path / "old.omni") == before
    new = omnigraph.open(tmp_path / "new.omni", read_only=True)
    assert b"".join(new.export()) == kept
    assert new.schema.source == SCHEMA
    assert new.head.message == "rebuilt from main"
