"""A cleanup interrupted at any effect keeps retained data, and the next one finishes it."""

import multiprocessing
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.collect_garbage import cleanup, preview_cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.recover import recover
from omnigraph.publish.tag_lifecycle import create_tag, delete_tag
from omnigraph.storage.effects import Fault
from omnigraph.storage.stage_rows import stage_append
from omnigraph.storage.store import open_store
from omnigraph.storage.table import open_table
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants
from tests.rig.writes import PERSON, TABLES, append, init_small, read_branch, read_rows, shaped, update, write

POLICY = RetentionPolicy(keep=2, grace=timedelta())
_SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with something of every kind to remove."""
    root = tmp_path_factory.mktemp("cuts") / "start"
    store = init_small(root)
    line = open_branch(store, "main")
    write(line, append({"a": 1, "b": 2}), TABLES)
    gone = create_branch(store, "gone", line)
    write(gone, append({"g": 1}))
    delete_branch(store, "gone")
    create_branch(store, "gone", line)
    side = create_branch(store, "side", line)
    write(side, append({"s": 1}))
    create_tag(store, "v0", line)
    delete_tag(store, "v0")
    create_tag(store, "v1", line)
    for n in range(3):
        write(line, update({"a": n}), TABLES)
    entry = line.refresh().state.tables[PERSON]
    table = open_table(store, entry.location, entry.lance_version)
    stage_append(store, table, shaped(table, {"lost": 1}))
    return root


Shown = dict[str, object]


def shown(root: Path | str) -> Shown:
    """Everything that must stay readable: heads, the commits kept below them, tags."""
    store = open_store(str(root))
    found: Shown = {}
    for name in list_branches(store):
        line = open_branch(store, name)
        state = line.refresh().state
        commits = [one.id for one in HistoryLog(store, state).first_parents(state.head.commit_id)]
        found |= {f"{name} {one}": read_branch(line, one) for one in commits[: POLICY.keep]}
    for tag in list_tags(store):
        tables = open_tag(store, tag.name).tables
        found[tag.name] = {key: read_rows(store, one) for key, one in tables.items()}
    return found


def copied(start: Path, place: Path) -> str:
    """A copy at a place of its own: what this process knows of a root goes by its name."""
    return str(shutil.copytree(start, place))


def effects(start: Path, place: Path) -> int:
    """How many effects a whole cleanup has; after it there is nothing left to do."""
    store = open_store(copied(start, place), durability="os")
    with store.effects.recording() as seen:
        cleanup(store, POLICY)
    assert preview_cleanup(store, POLICY).datasets == ()
    assert store.objects.list("__gc") == []
    return len(seen)


def judge(root: str, expected: Shown, handle: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is retained is there; whoever had the graph open goes on; the next cleanup ends it."""
    assert shown(root) == expected
    made = write(handle, append({"next": 0}))
    assert made is not None
    with monkeypatch.context() as patch:
        patch.setattr(claim, "CLAIM_LEASE", timedelta(seconds=-10))
        store = open_store(root, durability="os")
        assert not cleanup(store, POLICY).failed
    assert store.objects.list("__gc") == []
    assert preview_cleanup(store, POLICY).datasets == ()
    kept = {name: rows for name, rows in shown(root).items() if name in expected}
    assert kept == {name: expected[name] for name in kept}
    with overdue():
        recover(store)
    check_invariants(root, acknowledged=[made])


def cut(start: Path, place: Path, at: int, how: str, patch: pytest.MonkeyPatch) -> None:
    expected = shown(start)
    root = copied(start, place)
    handle = open_branch(open_store(root, durability="os"), "main")
    if how == "exit":
        child = _SPAWN.Process(target=end_after, args=(root, at))
        child.start()
        child.join()
        assert child.exitcode == 9
    else:
        store = open_store(root, durability="os")
        with store.effects.failing(Fault(at, how)):  # type: ignore[arg-type]
            try:
                told = cleanup(store, POLICY)
            except (OmnigraphError, OSError):
                pass
            else:
                assert told.failed or how == "after" or at > 2
    judge(root, expected, handle, patch)
    shutil.rmtree(root)


def end_after(root: str, at: int) -> None:
    """Run a cleanup that ends its process right after one effect."""
    store = open_store(root, durability="os")
    with store.effects.failing(Fault(at, "exit")):
        cleanup(store, POLICY)
    os._exit(0)


@pytest.mark.parametrize("how", ["before", "after"])
def test_failed_effect_keeps_retained_files(
    start: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = effects(start, tmp_path / "whole")
    first = {"before": 12, "after": 5}[how]
    for at in range(first, count + 1, 27):
        cut(start, tmp_path / f"cut-{at}-{how}", at, how, monkeypatch)


def test_killed_cleanup_keeps_retained_files(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(start, tmp_path / "cut", 20, "exit", monkeypatch)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("how", ["before", "after", "exit"])
def test_cleanup_interrupted_at_every_effect_keeps_retained_files(
    start: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(1, effects(start, tmp_path / "whole") + 1):
        cut(start, tmp_path / f"cut-{at}-{how}", at, how, monkeypatch)
