"""Renaming a branch: open handles continue, the old name is not found."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import AlreadyExists, BranchNotFound, InputError, ReadOnlyError
from omnigraph.history import refs
from omnigraph.publish import intent as intents
from omnigraph.publish.rename import rename_branch
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from tests.crash.verbs import overdue

SCHEMA = "node Person { name: String @key  age: I64? }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os", actor="ann")
    made.insert("Person", {"name": "ada", "age": 1})
    return made


def test_renamed_branch_continues_under_its_new_name(graph: Graph) -> None:
    held = graph.branches.create("draft")
    held.insert("Person", {"name": "bob"})
    renamed = graph.branches.rename("draft", "review/spring")
    assert list(graph.branches) == ["main", "review/spring"]
    assert renamed.branch_name == "review/spring"
    with pytest.raises(BranchNotFound):
        graph.checkout("draft")
    # The handle from before is on the same branch, and knows what it is called now.
    held.insert("Person", {"name": "cy"})
    assert held.branch_name == "review/spring"
    assert sorted(renamed.nodes("Person").ids()) == ["ada", "bob", "cy"]
    assert renamed.refresh().head.branch == "review/spring"
    assert graph.merge("review/spring").outcome == "fast_forward"


def test_the_old_name_is_free_for_another_branch(graph: Graph) -> None:
    held = graph.branches.create("draft")
    graph.branches.rename("draft", "kept")
    graph.branches.create("draft").insert("Person", {"name": "new"})
    held.insert("Person", {"name": "old"})
    assert graph.checkout("draft").nodes("Person").ids() == ["ada", "new"]
    assert graph.checkout("kept").nodes("Person").ids() == ["ada", "old"]


def test_branch_can_be_renamed_below_its_old_name_and_back(graph: Graph) -> None:
    graph.branches.create("review")
    graph.branches.rename("review", "review/a")
    graph.branches.rename("review/a", "review")
    graph.branches.rename("review", "other")
    graph.branches.rename("other", "review")
    assert list(graph.branches) == ["main", "review"]
    graph.branches.delete("review", force=True)
    assert list(graph.branches) == ["main"]


def test_invalid_renames_are_rejected(graph: Graph) -> None:
    graph.branches.create("a")
    graph.branches.create("b/c")
    for old, new, error in (
        ("main", "x", InputError),
        ("a", "main", InputError),
        ("a", "no blanks", InputError),
        ("a", "a", AlreadyExists),
        ("a", "b/c", AlreadyExists),
        ("a", "b", AlreadyExists),
        ("a", "b/c/d", AlreadyExists),
        ("missing", "x", BranchNotFound),
    ):
        with pytest.raises(error):
            graph.branches.rename(old, new)
    with pytest.raises(ReadOnlyError):
        graph.revisions.pin().branches.rename("a", "x")
    assert list(graph.branches) == ["a", "b/c", "main"]
    assert not list(Path(graph.uri, "__recovery").glob("*.json"))


def test_concurrent_renames_leave_one_name(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.branches.create("a")
    store = open_store(graph.uri, durability="os")
    other = open_store(graph.uri, durability="os")
    claim = refs.create_ref_object

    def overtaken(*given: Any) -> None:
        claim(*given)
        monkeypatch.setattr(refs, "create_ref_object", claim)
        rename_branch(other, "a", "theirs")

    monkeypatch.setattr(refs, "create_ref_object", overtaken)
    with pytest.raises(BranchNotFound):
        rename_branch(store, "a", "ours")
    assert list(graph.branches) == ["main", "theirs"]
    graph.checkout("theirs").insert("Person", {"name": "bob"})


def test_interrupted_rename_is_finished_by_recovery(graph: Graph) -> None:
    graph.branches.create("a")
    store = open_store(graph.uri, durability="os")
    with store.effects.failing(Fault(4, "before")), pytest.raises(omnigraph.errors.StorageError):
        rename_branch(store, "a", "b")
    assert list(graph.branches) == ["a", "b", "main"]
    with overdue():
        assert intents.list_intents(store).pending
        opened = omnigraph.open(graph.uri, durability="os")
    assert list(opened.branches) == ["b", "main"]
    assert [one.kind for one in opened.maintenance.operations.recoveries()] == ["finished"]


def test_branch_deleted_during_an_interrupted_rename_stays_deleted(graph: Graph) -> None:
    graph.branches.create("a")
    store = open_store(graph.uri, durability="os")
    with store.effects.failing(Fault(4, "before")), pytest.raises(omnigraph.errors.StorageError):
        rename_branch(store, "a", "b")
    graph.branches.delete("b", force=True)
    with overdue():
        opened = omnigraph.open(graph.uri, durability="os")
        for name in ("a", "b"):
            with pytest.raises(BranchNotFound):
                opened.checkout(name)
    assert list(opened.branches) == ["main"]
