"""One write: what it reads, rejects, retries, and never changes."""

import threading
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ConcurrentCommit, KeyConflict, PreconditionFailed, ReadSetConflict, VersionConflict
from omnigraph.history import commit_log as logs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import read_manifest, swap_state
from omnigraph.publish import publish as publishing
from omnigraph.publish import swap as swapping
from omnigraph.publish.publish import publish
from omnigraph.publish.read_set import ReadSet
from omnigraph.publish.requirements import ExpectedHead
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown
from omnigraph.values import clock_and_ids
from tests.rig.independent_writers import apart, people, write_while
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import (
    CITY,
    PERSON,
    append,
    check_invariants,
    delete,
    init_small,
    plan,
    read_branch,
    rewrite,
    update,
    write,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    return tmp_path / "g"


def _lose(monkeypatch: pytest.MonkeyPatch, root: Path, times: int) -> list[int]:
    """The next swaps are lost to writers of another table; gives the counter of swaps tried."""
    real, tried = swap_state, list[int]()
    other = apart(root)

    def wrapped(*args: Any) -> Any:
        tried.append(len(tried))
        if len(tried) <= times:
            with monkeypatch.context() as patch:
                patch.setattr(swapping, "swap_state", real)
                write(other, append({f"c{len(tried)}": 1}), [CITY])
        return real(*args)

    monkeypatch.setattr(swapping, "swap_state", wrapped)
    return tried


def test_staged_plan_is_reused_for_five_attempts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, prepared = _lose(monkeypatch, root, 4), list[str]()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        prepared.append(txn.commit_id)
        return plan(txn, people(1))

    made = publish(apart(root), prepare)
    assert made is not None
    assert (len(tried), len(prepared)) == (5, 1)
    check_invariants(root, acknowledged=[made])


def test_write_that_always_loses_raises_and_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "MAX_PREPARATIONS", 2)
    tried = _lose(monkeypatch, root, 100)
    with pytest.raises(ConcurrentCommit) as caught:
        write(apart(root), people(1))
    assert caught.value.retryable == "fresh"
    assert len(tried) == 10
    assert read_branch(apart(root))[PERSON] == []
    check_invariants(root)


def test_retry_time_is_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PREPARATION_BUDGET_SECONDS", -1.0)
    tried = _lose(monkeypatch, root, 100)
    with pytest.raises(ConcurrentCommit):
        write(apart(root), people(1))
    assert len(tried) == 5


def test_lost_maintenance_is_replanned_and_restores_no_old_rows(root: Path) -> None:
    line = apart(root)
    for n in range(3):
        write(line, people(1, n))
    made = write_while(line, rewrite(), lambda: write(apart(root), update({"p1": 7})))
    assert made is not None
    assert read_branch(line)[PERSON] == [("p0", 0), ("p1", 7), ("p2", 2)]
    check_invariants(root, acknowledged=[made])


def test_maintenance_done_by_others_is_not_repeated(root: Path) -> None:
    line = apart(root)
    for n in range(3):
        write(line, people(1, n))
    assert write_while(line, rewrite(), lambda: write(apart(root), rewrite())) is None
    assert line.last_known().state.tables[PERSON].version == 5


def test_id_and_creation_time_survive_every_retry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line, seen = apart(root), list[tuple[str, int]]()
    _lose(monkeypatch, root, 6)

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        seen.append((txn.commit_id, txn.created_at))
        return plan(txn, people(1))

    made = publish(line, prepare, CommitMetadata("ada", "why"))
    assert made is not None
    assert len(seen) == 2
    assert set(seen) == {(made.id, made.created_at)}
    assert made.published_at > made.created_at
    assert (made.actor, made.message) == ("ada", "why")


@pytest.mark.parametrize("landed", [True, False])
def test_swap_without_a_response_is_verified(root: Path, monkeypatch: pytest.MonkeyPatch, landed: bool) -> None:
    real, lost = swap_state, [True]

    def wrapped(*args: Any) -> Any:
        if not lost:
            return real(*args)
        lost.clear()
        if landed:
            real(*args)
        raise SwapOutcomeUnknown

    monkeypatch.setattr(swapping, "swap_state", wrapped)
    made = write(apart(root), people(1))
    assert made is not None
    assert read_branch(apart(root))[PERSON] == [("p0", 0)]
    check_invariants(root, acknowledged=[made])


def test_swap_conflict_with_own_commit_is_recognised(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, lost = swap_state, [True]

    def wrapped(*args: Any) -> Any:
        opened = real(*args)
        if lost:
            lost.clear()
            raise SwapConflict
        return opened

    monkeypatch.setattr(swapping, "swap_state", wrapped)
    assert write(apart(root), people(1)) is not None
    assert len(read_branch(apart(root))[PERSON]) == 1


def _long_log(root: Path, monkeypatch: pytest.MonkeyPatch) -> BranchState:
    line = apart(root)
    with monkeypatch.context() as patch:
        patch.setattr(logs, "CHUNK_COMMITS", 2)
        for n in range(10):
            write(line, people(1, n))
    assert line.last_known().state.chunks
    return line


def test_verification_reads_only_new_log_chunks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = _long_log(root, monkeypatch)
    for one in line.last_known().state.chunks:
        line.store.objects.remove(one.name)
    stale = apart(root)
    stale.reload()
    made = write_while(stale, people(1, 20), lambda: write(apart(root), append({"c": 1}), [CITY]))
    assert made is not None


def test_verification_reloads_after_chunks_were_merged_and_swept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = _long_log(root, monkeypatch)
    stale = apart(root)
    old = stale.reload().state.chunks
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    monkeypatch.setattr(logs, "MERGE_FAN_IN", 2)
    for n in range(10, 16):
        write(line, people(1, n))
    kept = {one.name for one in line.last_known().state.chunks}
    for one in old:
        if one.name not in kept:
            line.store.objects.remove(one.name)
    assert len(stale.last_known().state.tail) == 3  # the next publish seals, and reads what is gone
    made = write(stale, people(1, 20))
    assert made is not None
    assert len(list(HistoryLog(line.store, stale.last_known().state).first_parents(made.id))) == 18


def test_condition_is_checked_on_the_newest_state(root: Path) -> None:
    stale = apart(root)
    stale.reload()
    made = write(apart(root), people(1))
    assert made is not None
    assert write(stale, people(1, 1), conditions=[ExpectedHead(made.id)]) is not None
    with pytest.raises(PreconditionFailed):
        write(stale, people(1, 2), conditions=[ExpectedHead(made.id)])


def test_rejection_is_confirmed_on_the_newest_state(root: Path) -> None:
    write(apart(root), append({"a": 1}))
    stale = apart(root)
    stale.reload()
    write(apart(root), delete(["a"]))

    def insert(txn: WriteTxn) -> PublishPlan | None:
        made = plan(txn, append({"a": 2}))
        assert made is not None
        for one in made.requirements:
            one.check(txn)
        return made

    assert publish(stale, insert) is not None
    with pytest.raises(KeyConflict):
        publish(stale, insert)


def test_empty_plan_is_confirmed_on_the_newest_state(root: Path) -> None:
    stale = apart(root)
    stale.reload()
    write(apart(root), append({"a": 1}))
    assert write(stale, delete(["a"])) is not None
    version = stale.last_known().version
    assert write(stale, delete(["a"])) is None
    assert apart(root).last_known().version == version


def test_state_that_references_swept_files_is_reloaded(root: Path) -> None:
    write(apart(root), append({"a": 1}))
    stale = apart(root)
    gone = stale.reload().state.tables[PERSON]
    write(apart(root), append({"b": 1}))
    (root / gone.location / "_versions" / f"d{gone.lance_version}.manifest").unlink()
    assert write(stale, delete(["a"])) is not None
    assert read_branch(stale)[PERSON] == [("b", 1)]


def test_branch_state_never_moves_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow reader does not make the line forget what a writer learned meanwhile."""
    from omnigraph.history import branch_state as lines

    line = apart(root)
    line.reload()
    real, read = read_manifest, threading.Event()
    go_on = threading.Event()

    def slow(*args: Any) -> Any:
        opened = real(*args)
        read.set()
        assert go_on.wait(PATIENCE)
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(lines, "read_manifest", slow)
        reader = threading.Thread(target=line.reload)
        reader.start()
        assert read.wait(PATIENCE)
    made = write(line, people(1))
    go_on.set()
    reader.join()
    assert made is not None
    assert line.last_known().state.head.commit_id == made.id


def test_recreated_graph_is_detected(root: Path, tmp_path: Path) -> None:
    import shutil

    line = apart(root)
    for n in range(3):
        write(line, people(1, n))
    shutil.rmtree(root)
    init_small(root)
    with pytest.raises(ReadSetConflict):
        line.refresh()
    assert apart(root).last_known().state.tables[PERSON].row_count == 0


def _strict(line: BranchState, shown: ReadSet, n: int) -> Any:
    watch = shown.require_unchanged([PERSON])
    made = write(line, update({"a": n}), conditions=[watch])
    assert made is not None
    shown.record_write(made, watch)
    return made


def test_a_handle_follows_its_own_writes_and_maintenance(root: Path) -> None:
    line = apart(root)
    write(line, append({"a": 0}))
    shown = ReadSet(line.last_known().state.tables)
    _strict(line, shown, 1)
    write(apart(root), append({"c": 1}), [CITY])
    write(apart(root), rewrite())
    _strict(line, shown, 2)
    _strict(line, shown, 3)


def test_handle_does_not_advance_over_unseen_changes(root: Path) -> None:
    line = apart(root)
    write(line, append({"a": 0}))
    shown = ReadSet(line.last_known().state.tables)
    write(apart(root), append({"foreign": 0}))
    watch = shown.require_unchanged()  # an insert is not strict: it lands on the foreign row
    made = write(line, append({"mine": 0}), conditions=[watch])
    assert made is not None
    shown.record_write(made, watch)
    with pytest.raises(VersionConflict):
        _strict(line, shown, 1)
    shown.record_read(line.last_known().state.tables)
    _strict(line, shown, 1)


def test_publish_does_not_depend_on_the_clock(root: Path) -> None:
    first = write(apart(root), people(1, 0))
    with clock_and_ids.deterministic_ids(seed=1):  # a process whose clock stands at 1970
        second = write(apart(root), people(1, 1))
    third = write(apart(root), people(1, 2))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (second.parent, third.parent) == (first.id, second.id)
    line = apart(root)
    log = HistoryLog(line.store, line.last_known().state)
    assert [one.id for one in log.first_parents(third.id)][:3] == [third.id, second.id, first.id]
