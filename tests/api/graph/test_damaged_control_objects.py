"""Damaged control objects: a typed error, and nothing is changed."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import StorageError
from omnigraph.history import commit_log
from omnigraph.publish import intent as intents
from omnigraph.publish.long_operations import _build_intent
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.layout import COMMITS
from tests.api.graph.conftest import tree
from tests.rig.writes import append, write


@pytest.mark.parametrize("left", [b"", b"ARROW1", None])
def test_damaged_log_chunk_is_reported(graph: Graph, monkeypatch: pytest.MonkeyPatch, left: bytes | None) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    for n in range(4):
        write(graph._handle.branch_state, append({f"n{n}": n}))
    for piece in Path(graph.uri, COMMITS).iterdir():
        piece.write_bytes(piece.read_bytes()[:-40] if left is None else left)
    before = tree(graph.uri)
    with pytest.raises(StorageError, match=r"log chunk \S+ is damaged") as told:
        omnigraph.open(graph.uri, read_only=True).log()
    assert (told.value.kind, told.value.effect) == ("permanent", "none")
    assert tree(graph.uri) == before


@pytest.mark.parametrize("body", ['{"verdict": "perhaps"}', "{}", "[]", ""])
def test_damaged_verdict_is_ignored(graph: Graph, body: str) -> None:
    line = graph._handle.branch_state
    intent = _build_intent(line, line.last_known(), "load", CommitMetadata(), ())
    intents.arm(line.store, intent)
    Path(graph.uri, f"__recovery/{intent.id}.verdict").write_text(body)
    with pytest.raises(StorageError) as told:
        intents.decide(line.store, intent, "publish")
    assert (told.value.kind, told.value.effect) == ("permanent", "none")
    assert [one.intent.id for one in intents.list_intents(line.store).pending] == [intent.id]
