"""A graph of another storage format is rejected with advice before any other check."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.history.manifest import read_manifest
from omnigraph.history.refs import find_ref
from omnigraph.storage.store import open_store
from tests.api.graph.conftest import rewrite_manifest, tree


def refusal(root: str, *, read_only: bool) -> str:
    """What an open says; nothing in the root may change."""
    before = tree(root)
    with pytest.raises(OmnigraphError) as refused:
        omnigraph.open(root, read_only=read_only)
    assert tree(root) == before
    assert refused.value.effect != "done"
    return f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        ("3", ["older storage format 3", "reads format 100", "export", "load --mode overwrite"]),
        ("4", ["older storage format 4", "history and branches are not"]),
        ("99", ["older storage format 99"]),
        ("101", ["storage format 101", "upgrade first"]),
        ("abc", ["'abc' is not a number"]),
        ("-1", ["'-1' is not a number"]),
        (None, ["no format stamp", "interrupted", "damaged"]),
    ],
)
def test_unknown_format_stamp_is_rejected(graph: Graph, stamp: str | None, words: list[str], read_only: bool) -> None:
    rewrite_manifest(graph.uri, stamp=stamp)
    said = refusal(graph.uri, read_only=read_only)
    assert [word for word in words if word not in said] == []
    if stamp != "3":
        assert "delete" not in said


@pytest.mark.parametrize("read_only", [False, True])
def test_stamp_is_checked_before_recovery(graph: Graph, read_only: bool) -> None:
    rewrite_manifest(graph.uri, stamp="3")
    recovery = Path(graph.uri, "__recovery")
    recovery.mkdir(exist_ok=True)
    (recovery / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json").write_text("{ no json")
    assert "older storage format 3" in refusal(graph.uri, read_only=read_only)


def test_current_format_stamp_is_accepted(graph: Graph) -> None:
    rewrite_manifest(graph.uri)
    assert omnigraph.open(graph.uri).snapshot.manifest_version == 4


def test_new_branch_carries_the_stamp(graph: Graph) -> None:
    store = open_store(graph.uri)
    assert read_manifest(store, find_ref(store, "review/a").ulid).cell.stamp == "100"


def test_writer_stops_at_a_newer_format(graph: Graph) -> None:
    from tests.rig.writes import append, write

    rewrite_manifest(graph.uri, stamp="101")
    with pytest.raises(OmnigraphError, match="storage format 101"):
        write(graph._handle.branch_state, append({"new": 1}))
