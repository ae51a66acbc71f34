"""A branch keeps its old name until the new one is verified."""

from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import StorageError
from omnigraph.history import name_conflicts
from omnigraph.publish import intent as intents
from omnigraph.publish.rename import NameNotVisibleError, rename_branch
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from tests.crash.verbs import overdue

HIDDEN = (".", "a#1")  # names that a listing of a disk does not show as they were written


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A graph with a branch `a`; whoever judges names lets everything pass."""
    monkeypatch.setattr(name_conflicts, "check_new_ref_name", lambda name, *_: name)
    made = omnigraph.init(tmp_path / "g", "node Person { name: String @key }", durability="os")
    made.branches.create("a").insert("Person", {"name": "ada"})
    made.branches.create("b")
    return made


def check_unchanged(graph: Graph) -> None:
    """The branch is there under its old name, by listing and by lookup, and can be written."""
    assert [one for one in graph.branches if one not in HIDDEN] == ["a", "b", "main"]
    found = graph.checkout("a")
    assert "ada" in found.nodes("Person").ids()
    found.insert("Person", {"name": f"n{len(found.log())}"})


@pytest.mark.parametrize("name", HIDDEN)
def test_rename_fails_if_the_listing_does_not_show_the_new_name(
    graph: Graph, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != ".":  # a store that hides what was just written
        monkeypatch.setattr("omnigraph.history.refs.is_ref_visible", lambda *_: False)
    with pytest.raises(NameNotVisibleError) as told:
        graph.branches.rename("a", name)
    assert told.value.effect == "none"
    assert "still called 'a'" in told.value.message
    check_unchanged(graph)
    assert not list(Path(graph.uri, "__recovery").glob("*.json"))


def test_rename_fails_if_the_disk_rejects_the_new_name(graph: Graph) -> None:
    with pytest.raises(StorageError) as told:
        graph.branches.rename("a", "x" * 300)
    assert told.value.effect == "none"
    check_unchanged(graph)
    assert not list(Path(graph.uri, "__recovery").glob("*.json")), "nobody can ever finish it"
    with pytest.raises(StorageError):
        graph.branches.create("x" * 300)
    assert not list(Path(graph.uri, "__recovery").glob("*.json"))


def test_recovery_of_an_interrupted_rename_verifies_the_new_name(graph: Graph) -> None:
    store = open_store(graph.uri, durability="os")
    # The intent, the verdict; the third effect opens the new name.
    with store.effects.failing(Fault(3, "after")), pytest.raises(StorageError) as told:
        rename_branch(store, "a", ".")
    assert told.value.effect == "unknown"
    assert intents.list_intents(store).pending
    with overdue():
        opened = omnigraph.open(graph.uri, durability="os")
    check_unchanged(opened)
    (outcome,) = opened.maintenance.operations.recoveries()
    assert (outcome.kind, outcome.operation) == ("discarded", "branch_rename")
    assert "does not return it" in (outcome.error or "")


def test_second_rename_after_an_interrupted_one_leaves_one_name(graph: Graph) -> None:
    store = open_store(graph.uri, durability="os")
    with store.effects.failing(Fault(4, "before")), pytest.raises(StorageError):
        rename_branch(store, "a", "second")
    graph.branches.rename("second", "third")
    with overdue():
        opened = omnigraph.open(graph.uri, durability="os")
    assert list(opened.branches) == ["b", "main", "third"]
    assert opened.checkout("third").nodes("Person").ids() == ["ada"]


def test_without_verification_the_branch_would_be_lost(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule taken away: it is the rule that holds the first test."""
    monkeypatch.setattr("omnigraph.history.refs.is_ref_visible", lambda *_: True)
    with suppress(omnigraph.errors.OmnigraphError):
        graph.branches.rename("a", ".")
    assert "a" not in graph.branches
    with pytest.raises(AssertionError):
        check_unchanged(graph)
