"""The schedules of the cleanup model on a real graph: pauses in collector, writer and namer."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ConcurrentCommit, HistoryReclaimed
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.tags import list_tags, open_tag
from omnigraph.maintenance.retention import claim, collect_garbage
from omnigraph.maintenance.retention.collect_garbage import cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish import branch_lifecycle
from omnigraph.publish import intent as intents
from omnigraph.publish import swap as swapping
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.tag_lifecycle import create_tag
from omnigraph.storage.store import Store, open_store
from omnigraph.values import clock_and_ids
from tests.rig.independent_writers import apart
from tests.rig.writes import (
    TABLES,
    append,
    check_invariants,
    init_small,
    overwrite,
    read_branch,
    read_graph,
    read_rows,
    write,
    write_long,
)

POLICY = RetentionPolicy(keep=1, grace=timedelta())
Pause = Callable[[], object]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = init_small(tmp_path / "g")
    line = open_branch(store, "main")
    for n in range(4):
        write(line, overwrite({f"p{n}": n}), TABLES)
    return tmp_path / "g"


@pytest.fixture(autouse=True)
def _no_courtesy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "CLAIM_LEASE", timedelta(seconds=-1000))


def elsewhere(root: Path) -> Store:
    return open_store(str(root), durability="os")


def pause(patch: pytest.MonkeyPatch, module: Any, name: str, then: Pause, *, after: bool) -> None:
    """Let something happen around the first call of a function."""
    real, done = getattr(module, name), list[int]()

    def wrapped(*args: Any, **options: Any) -> Any:
        if not after and not done:
            done.append(1)
            then()
        found = real(*args, **options)
        if after and not done:
            done.append(1)
            then()
        return found

    patch.setattr(module, name, wrapped)


def commits(root: Path, branch: str = "main") -> list[str]:
    line = apart(root, branch)
    state = line.refresh().state
    found = HistoryLog(line.store, state).first_parents(state.head.commit_id)
    return [one.id for one in found]


def test_writer_that_staged_before_the_delete_queue_restages(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fence it would name files that are swept."""
    line = apart(root)
    with monkeypatch.context() as patch:
        pause(patch, swapping, "swap_state", lambda: cleanup(elsewhere(root), POLICY), after=False)
        made = write(line, append({"late": 1}), TABLES)
    assert made is not None
    assert "late" in dict(read_graph(root)["main"]["node:Person"])
    assert line.refresh().state.head.gc_epoch == 1
    check_invariants(root, acknowledged=[made])


@pytest.mark.parametrize("place", ["_stage_and_confirm", "decide"])
def test_files_staged_by_a_long_operation_are_kept(root: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    from omnigraph.publish import long_operations

    line = apart(root)
    module: Any = long_operations if place == "_stage_and_confirm" else intents
    with monkeypatch.context() as patch:
        pause(patch, module, place, lambda: cleanup(elsewhere(root), POLICY), after=False)
        made = write_long(line, append({"late": 1}), TABLES)
    assert made is not None
    assert "late" in dict(read_graph(root)["main"]["node:Person"])
    check_invariants(root, acknowledged=[made])


def test_queued_file_referenced_before_the_recheck_leaves_the_delete_queue(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer staged before the list and publishes before the fence."""
    line = apart(root)
    swapped: list[object] = []

    def then() -> None:
        pause(monkeypatch, collect_garbage, "raise_fences", land, after=False)
        cleanup(elsewhere(root), POLICY)

    def land() -> None:
        swapped.append(real(*held[0]))

    real, held = vars(swapping)["swap_state"], list[Any]()

    def swap(*args: Any) -> Any:
        held.append(args)
        if len(held) == 1:
            then()
            return swapped[0]
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(swapping, "swap_state", swap)
        made = write(line, append({"late": 1}), TABLES)
    assert made is not None
    assert swapped
    assert "late" in dict(read_graph(root)["main"]["node:Person"])
    check_invariants(root, acknowledged=[made])


def test_branch_from_a_queued_commit_is_rejected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = commits(root)[2]
    told: list[str] = []

    def fork() -> None:
        line = apart(root)
        with pytest.raises(ConcurrentCommit, match="a cleanup is about to remove"):
            create_branch(line.store, "f", line, commit_id=old)
        told.append("refused")

    with monkeypatch.context() as patch:
        pause(patch, collect_garbage, "raise_fences", fork, after=True)
        cleanup(elsewhere(root), POLICY)
    assert told == ["refused"]
    line = apart(root)
    with pytest.raises(HistoryReclaimed):
        create_branch(line.store, "f", line, commit_id=old)
    assert list_branches(elsewhere(root)) == ["main"]
    check_invariants(root)


@pytest.mark.parametrize("names", ["create_branch", "create_tag"])
def test_file_referenced_before_the_recheck_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    """The namer read the lists before there was one, and goes on when the collector looks."""
    old = commits(root)[2]
    line = apart(root)
    before = read_branch(line, old)
    make: Any = {"create_branch": create_branch, "create_tag": create_tag}[names]
    with monkeypatch.context() as patch:
        pause(patch, branch_lifecycle, "check_state_retained", lambda: cleanup(elsewhere(root), POLICY), after=True)
        make(line.store, "f", line, commit_id=old)
    cleanup(elsewhere(root), POLICY)
    store = elsewhere(root)
    tables = open_branch(store, "f").refresh().state.tables if names == "create_branch" else open_tag(store, "f").tables
    assert {key: read_rows(store, one) for key, one in tables.items()} == before
    check_invariants(root)


def test_files_passed_between_branches_during_a_recheck_are_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an intent to a branch, from the branch to another one, while a collector looks.

    The second one names the head of a branch that no look has seen: it must read the lists, too.
    """
    old, line = commits(root)[2], apart(root)
    real, carry_out = vars(collect_garbage)["mark_intents"], branch_lifecycle.execute_creation
    looks, held = list[str](), list[Any]()

    def arm_first() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(branch_lifecycle, "execute_creation", lambda *args: held.append(args))
            create_branch(line.store, "first", line, commit_id=old)

    def looking(marking: Any) -> Any:
        looks.append("")
        if len(looks) == 2:  # heads were read, intents are next
            carry_out(*held[0])
        found = real(marking)
        if len(looks) == 1:  # marked; the list comes next
            arm_first()
        else:
            source = apart(root, "first")
            with pytest.raises(ConcurrentCommit, match="about to remove"):
                create_branch(source.store, "second", source)
            delete_branch(elsewhere(root), "first")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(collect_garbage, "mark_intents", looking)
        cleanup(elsewhere(root), POLICY)
    assert len(looks) == 2
    check_invariants(root)


def test_suspended_collector_finds_its_run_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result is of no use any more: what it found may be named by now."""
    old = commits(root)[2]
    line = apart(root)
    armed: list[Any] = []

    def overtake() -> None:
        """A tag arms its intent, another collector ends this run, the tag is made."""
        real = vars(branch_lifecycle)["check_state_retained"]

        def sleeping(*args: Any) -> None:
            if not armed:
                armed.append(1)
                cleanup(elsewhere(root), POLICY)
            real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(branch_lifecycle, "check_state_retained", sleeping)
            create_tag(line.store, "v1", line, commit_id=old)

    with monkeypatch.context() as patch:
        pause(patch, collect_garbage, "_recheck_after_fence", overtake, after=True)
        cleanup(elsewhere(root), POLICY)
    store = elsewhere(root)
    assert [one.name for one in list_tags(store)] == ["v1"]
    for entry in open_tag(store, "v1").tables.values():
        read_rows(store, entry)
    assert store.objects.list("__gc") == []
    check_invariants(root)


def test_collected_branch_stops_a_late_writer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.errors import ReadSetConflict

    side = create_branch(elsewhere(root), "side", apart(root))
    line = BranchState(elsewhere(root), "side", side.ulid)
    line.refresh()

    def gone() -> None:
        delete_branch(elsewhere(root), "side")
        for _ in range(2):
            cleanup(elsewhere(root), POLICY)

    with monkeypatch.context() as patch:
        pause(patch, swapping, "swap_state", gone, after=False)
        with pytest.raises(ReadSetConflict, match="was deleted"):
            write(line, append({"late": 1}))
    check_invariants(root)


def test_intent_of_another_release_keeps_every_table(root: Path) -> None:
    store = elsewhere(root)
    name = f"__recovery/{clock_and_ids.new_ulid()}.json"
    store.objects.create_json(name, {"schema_version": 99, "operation_id": "x"})
    before = read_graph(root)
    tables = {one.name for kind in ("nodes", "edges") for one in store.objects.list(kind)}
    report = cleanup(store, POLICY)
    assert any("no table files are removed" in one for one in report.held_by)
    assert tables <= {one.name for kind in ("nodes", "edges") for one in store.objects.list(kind)}
    assert read_graph(root) == before
