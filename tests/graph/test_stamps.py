"""A graph of another storage format is refused, with advice, before anything else is looked at."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.history.manifest import read_manifest
from omnigraph.history.refs import find_ref
from omnigraph.storage.store import open_store
from tests.graph.conftest import rewrite_manifest, tree


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
        ("3", ["older storage format 3", "reads 100", "export", "load --mode overwrite"]),
        ("4", ["older storage format 4", "history and branches do not"]),
        ("99", ["older storage format 99"]),
        ("101", ["storage format 101", "upgrade first"]),
        ("abc", ["'abc' is not a number"]),
        ("-1", ["'-1' is not a number"]),
        (None, ["no format stamp", "interrupted", "damaged"]),
    ],
)
def test_another_stamp_is_refused(graph: Graph, stamp: str | None, words: list[str], read_only: bool) -> None:
    rewrite_manifest(graph.uri, stamp=stamp)
    said = refusal(graph.uri, read_only=read_only)
    assert [word for word in words if word not in said] == []
    if stamp != "3":
        assert "delete" not in said


@pytest.mark.parametrize("read_only", [False, True])
def test_the_stamp_is_looked_at_before_unfinished_operations(graph: Graph, read_only: bool) -> None:
    rewrite_manifest(graph.uri, stamp="3")
    recovery = Path(graph.uri, "__recovery")
    recovery.mkdir(exist_ok=True)
    (recovery / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json").write_text("{ no json")
    assert "older storage format 3" in refusal(graph.uri, read_only=read_only)


def test_the_right_stamp_is_opened(graph: Graph) -> None:
    rewrite_manifest(graph.uri)
    assert omnigraph.open(graph.uri).snapshot.manifest_version == 4


def test_a_branch_has_the_stamp_from_the_start(graph: Graph) -> None:
    store = open_store(graph.uri)
    assert read_manifest(store, find_ref(store, "review/a").ulid).cell.stamp == "100"


def test_a_writer_meets_a_newer_format_and_stops(graph: Graph) -> None:
    from tests.rig.writes import append, write

    rewrite_manifest(graph.uri, stamp="101")
    with pytest.raises(OmnigraphError, match="storage format 101"):
        write(graph._handle.branch_state, append({"new": 1}))
