"""Tags: created, listed, opened, deleted; interrupted creations are finished or discarded."""

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.errors import AlreadyExists, CommitNotFound, InputError, NotFound, StorageError
from omnigraph.history import refs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.tags import find_tag, list_tags, open_tag
from omnigraph.maintenance.copy import copy_graph
from omnigraph.publish import intent as intents
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.recover import recover
from omnigraph.publish.tag_lifecycle import create_tag, delete_tag
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import Store, open_store
from omnigraph.values.clock_and_ids import new_ulid
from tests.rig.invariants import files
from tests.rig.writes import PERSON, append, check_invariants, init_small, read_rows, write


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = init_small(tmp_path / "g")
    write(open_branch(store, "main"), append({"base": 0}))
    return store


def _main(store: Store) -> BranchState:
    return open_branch(store, "main")


def _people(store: Store, name: str) -> list[tuple[str, int]]:
    shown = open_tag(store, name)
    return read_rows(store, shown.tables[PERSON])


def test_a_tag_shows_what_its_branch_showed(store: Store) -> None:
    made = create_tag(store, " v1 ", _main(store), actor="ann", message="first")
    write(_main(store), append({"late": 1}))
    assert list_tags(store) == [made]
    assert find_tag(store, "v1") == made
    assert (made.branch, made.actor, made.message) == ("main", "ann", "first")
    assert _people(store, "v1") == [("base", 0)]
    shown = open_tag(store, "v1")
    assert (shown.commit_id, shown.commit.id) == (made.commit_id, made.commit_id)
    assert shown.manifest_version == 2
    assert list_branches(store) == ["main"]
    check_invariants(store.root.path)


def test_tag_of_a_past_commit_survives_the_deletion_of_its_branch(store: Store) -> None:
    side = create_branch(store, "side", _main(store))
    first = write(side, append({"one": 1}))
    write(side, append({"two": 2}))
    assert first is not None
    create_tag(store, "v1", _main(store), commit_id=first.id)
    delete_branch(store, "side")
    assert find_tag(store, "v1").branch == "side"
    assert _people(open_store(store.root.uri), "v1") == [("base", 0), ("one", 1)]


def test_tag_name_is_unique_and_reusable_after_deletion(store: Store) -> None:
    create_tag(store, "v1", _main(store))
    with pytest.raises(AlreadyExists, match="tag 'v1' already exists"):
        create_tag(store, "v1", _main(store))
    delete_tag(store, "v1")
    for gone in (find_tag, open_tag, delete_tag):
        with pytest.raises(NotFound, match="no tag 'v1'"):
            gone(store, "v1")
    write(_main(store), append({"late": 1}))
    create_tag(store, "v1", _main(store))
    assert _people(store, "v1") == [("base", 0), ("late", 1)]
    create_tag(store, "v1/a", _main(store))  # tags are no paths
    assert [one.name for one in list_tags(store)] == ["v1", "v1/a"]


@pytest.mark.parametrize("name", ["", "main", "a b", "__x", "a..b"])
def test_a_bad_name_is_refused_before_anything_is_written(store: Store, name: str) -> None:
    before = files(store)
    with pytest.raises(InputError):
        create_tag(store, name, _main(store))
    assert files(store) == before


def test_tag_of_an_unknown_commit_is_rejected(store: Store) -> None:
    with pytest.raises((CommitNotFound, NotFound)):
        create_tag(store, "v1", _main(store), commit_id=new_ulid())
    assert store.objects.list("__recovery") == []


def _overdue(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        patch.setattr(intents, "LEASE_DURATION", timedelta(seconds=-1000))
        return [one.kind for one in recover(store)]


@pytest.mark.parametrize(("at", "left"), [(1, []), (2, ["discarded"]), (3, ["finished"]), (4, ["finished"])])
def test_interrupted_tag_creation_is_finished_or_discarded(
    store: Store, monkeypatch: pytest.MonkeyPatch, at: int, left: list[str]
) -> None:
    """Effects: the intent, the verdict, the manifest, the name."""
    line = _main(store)
    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", lambda *_: None)
        with store.effects.failing(Fault(at, "before")), pytest.raises((OSError, StorageError)):
            create_tag(store, "v1", line, message="why")
    assert _overdue(store, monkeypatch) == left
    assert [one.message for one in list_tags(store)] == ["why"] * (left == ["finished"])
    check_invariants(store.root.path)


def test_recovery_does_not_restore_a_deleted_tag(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", lambda *_: None)  # cut off when all was done
        create_tag(store, "v1", _main(store))
    delete_tag(store, "v1")
    create_tag(store, "v1", _main(store))
    delete_tag(store, "v1")
    assert _overdue(store, monkeypatch) == []
    assert list_tags(store) == []


def test_interrupted_tag_deletion_is_finished_by_the_next_open(store: Store) -> None:
    create_tag(store, "v1", _main(store))
    with store.effects.failing(Fault(3, "before")), pytest.raises((OSError, StorageError)):
        delete_tag(store, "v1")
    with pytest.raises(NotFound):
        open_tag(open_store(store.root.uri), "v1")
    assert list_tags(store) == []
    create_tag(store, "v1", _main(store))
    assert refs.find_ref(store, "v1", "_refs/tags").number == 3


def test_copy_includes_tags(store: Store, tmp_path: Path) -> None:
    create_tag(store, "v1", _main(store))
    write(_main(store), append({"late": 1}))
    target = open_store(str(tmp_path / "copy"))
    assert copy_graph(store, target).branches == ("main",)
    assert _people(target, "v1") == [("base", 0)]
    assert list_tags(target) == list_tags(store)
