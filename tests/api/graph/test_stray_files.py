"""Stray files in a root, left by systems and editors, are ignored."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import StorageError

STRAYS = [
    "_refs/branches/.DS_Store",
    "_refs/branches/side/.nfs000123",
    "_refs/branches/side/0000000001.json~",
    "_refs/branches/side/backup/0000000009.json",
    "__manifest/_versions/.DS_Store",
    "__recovery/.DS_Store",
    "_audit/.DS_Store",
]


@pytest.mark.parametrize("name", STRAYS)
def test_stray_file_is_ignored(graph: Graph, tmp_path: Path, name: str) -> None:
    graph.branches.create("side")
    stray = Path(graph.uri, name)
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_text("?")
    again = omnigraph.open(graph.uri, branch="side", durability="os")
    assert again.branches.names() == ["main", "review/a", "side"]
    assert again.maintenance.operations.recoveries() == []
    again.branches.create("next")
    again.branches.delete("next", force=True)
    assert again.maintenance.copy_to(tmp_path / "copy").branches == ("main", "review/a", "side")
    assert stray.read_text() == "?"


def test_damaged_ref_object_is_reported(graph: Graph, tmp_path: Path) -> None:
    graph.branches.create("side")
    name = "_refs/branches/side/0000000001.json"
    Path(graph.uri, name).write_text("{}")
    for deed in (
        lambda: omnigraph.open(graph.uri, branch="side"),
        lambda: graph.maintenance.copy_to(tmp_path / "copy"),
    ):
        with pytest.raises(StorageError, match="damaged") as told:
            deed()
        assert (told.value.effect, name in str(told.value.hint)) == ("none", True)
