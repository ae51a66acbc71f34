"""Control objects that reappear after a power loss change nothing and decide nothing."""

import os
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api import opening as graphs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.publish import intent as intents
from omnigraph.publish import recover
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.intent import INTENT_PARTS
from omnigraph.storage import layout
from omnigraph.storage.store import open_store
from tests.crash.matrix import shape
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import append, init_small, line_at, write, write_long

Deed = Callable[[BranchState], object]


def long_append(line: BranchState) -> None:
    write_long(line, append({"long": 1}))


def create(line: BranchState) -> None:
    create_branch(line.store, "side", line)


def create_and_delete(line: BranchState) -> None:
    create_branch(line.store, "side", line)
    delete_branch(line.store, "side")


def create_write_and_delete_again(line: BranchState) -> None:
    create_and_delete(line)
    write(create_branch(line.store, "side", line), append({"second": 1}))


DEEDS: list[Deed] = [long_append, create, create_and_delete, create_write_and_delete_again]
SUBSETS = [kept for count in range(1, 5) for kept in combinations(INTENT_PARTS, count)]


@pytest.fixture
def line(tmp_path: Path) -> BranchState:
    init_small(tmp_path / "graph")
    found = line_at(tmp_path / "graph")
    write(found, append({"a": 1}))
    return found


def buried(line: BranchState, deed: Deed, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Do something, and give the control objects of its first intent as they were removed."""
    seen: dict[str, bytes] = {}
    real = intents.retire

    def remember(store: Any, intent: Any, *parts: Any) -> None:
        intents.renew(store, intent)
        for part in INTENT_PARTS:
            body = store.objects.read(layout.intent_name(intent.id, part))
            if body is not None and not any(intent.id not in name for name in seen):
                seen[layout.intent_name(intent.id, part)] = body
        real(store, intent, *parts)
        store.objects.remove(layout.intent_name(intent.id, "lease"))

    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", remember)
        deed(line)
    return seen


@pytest.mark.parametrize("deed", DEEDS)
def test_reappearing_intent_part_changes_nothing(
    line: BranchState, deed: Deed, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(line.store.root.path)
    gone = buried(line, deed, monkeypatch)
    before, names = shape(root), list_branches(line.store)
    for parts in SUBSETS:
        for name, body in gone.items():
            if name.rpartition(".")[2] in parts:
                (root / name).write_bytes(body)
        with overdue():
            graphs.open(root, durability="os")
            assert recover.recover(line.store) == []
        assert list_branches(line.store) == names, parts
        assert shape(root) == before, parts
        assert [one for one in files(line.store) if one.startswith(layout.INTENTS)] == []
    assert write(line, append({"next": 1})) is not None
    check_invariants(root)


def test_reappearing_creation_intent_does_not_restore_a_deleted_branch(
    line: BranchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", lambda *_: None)
        create_branch(line.store, "side", line)
    other = open_store(line.store.root.path)
    delete_branch(other, "side")
    with overdue():
        recover.recover(other)
    assert list_branches(other) == ["main"]
    assert intents.list_intents(other).pending == ()


def test_reappearing_intent_does_not_take_a_reused_name(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", lambda *_: None)
        create_branch(line.store, "side", line)
    delete_branch(line.store, "side")
    theirs = create_branch(line.store, "side", line)
    with overdue():
        recover.recover(line.store)
    assert open_branch(line.store, "side").ulid == theirs.ulid


def test_creation_with_a_torn_manifest_is_repeated(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", lambda *_: None)
        made = create_branch(line.store, "side", line)
    place = Path(line.store.root.path, layout.manifest_directory(made.ulid), "_versions")
    (version,) = place.iterdir()
    version.write_bytes(b"")
    with overdue():
        (outcome, *_) = recover.recover(line.store)
    assert outcome.kind == "finished"
    found = open_branch(open_store(line.store.root.path), "side")
    assert found.ulid == made.ulid
    assert found.last_known().state.tables == line.last_known().state.tables


def test_intent_removal_is_durable_before_its_verdict_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power loss could leave an intent without its verdict, and it would be decided anew."""
    init_small(tmp_path / "graph", durability="fsync")
    line = line_at(tmp_path / "graph", durability="fsync")
    place, events = tmp_path / "graph" / layout.INTENTS, []
    unlink, sync = Path.unlink, os.fsync

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        there = path.exists()
        unlink(path, missing_ok)
        if there and path.parent == place and "#" not in path.name:
            events.append(path.suffix)

    def synced(handle: int) -> None:
        sync(handle)
        if Path(f"/proc/self/fd/{handle}").readlink() == place:
            events.append("synced")

    monkeypatch.setattr(Path, "unlink", unlinked)
    monkeypatch.setattr(os, "fsync", synced)
    write_long(line, append({"long": 1}))
    first = events.index(".json")
    assert events[first:] == [".json", "synced", ".confirmed", "synced", ".verdict", "synced"]


OLD = 2 * 60 * 60


def test_old_temporary_files_of_dead_processes_are_removed(line: BranchState) -> None:
    root = Path(line.store.root.path)
    create_branch(line.store, "side", line)
    names = [
        "__init_claim.json#1",
        "__recovery/01J00000000000000000000000.lease#2",
        "_refs/branches/side/0000000002.json#3",
        "_audit/01J00000000000000000000000.json#4",
    ]
    for name in names:
        for path in (root / name, root / f"{name}9"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"{")
        back = (root / name).stat().st_mtime - OLD
        os.utime(root / name, (back, back))
    graphs.open(root, read_only=True)
    assert all((root / name).exists() for name in names)
    graphs.open(root, durability="os")
    assert [name for name in names if (root / name).exists()] == []
    assert all((root / f"{name}9").exists() for name in names)
    assert open_branch(line.store, "side").name == "side"
