"""Long operations without their owner: published once or refused, decided and recorded once.

The owner and the one who finishes for it are two stores in one process; they share no line, since
their stores promise different durability.
"""

import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api import opening as graphs
from omnigraph.errors import (
    ConcurrentCommit,
    KeyConflict,
    ReadSetConflict,
    RecoveryRequired,
    StorageError,
    VersionConflict,
)
from omnigraph.history.branch_state import BranchState
from omnigraph.history.manifest import swap_state
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.publish import intent as intents
from omnigraph.publish import long_operations, recover
from omnigraph.publish import publish as publishing
from omnigraph.publish import swap as swapping
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import layout
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import PERSON, append, delete, init_small, line_at, plan, read_branch, update, write, write_long


@dataclass(frozen=True, slots=True)
class Two:
    """Two processes at one graph, as good as."""

    root: Path
    owner: BranchState
    other: BranchState

    def people(self) -> list[tuple[str, int]]:
        return read_branch(self.other)[PERSON]

    def kinds(self) -> list[str]:
        return [one.kind for one in list_recovery_records(self.other.store)]

    def recover(self) -> None:
        with overdue():
            recover.recover(self.other.store)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    """A small graph with one person, and two lines of its main branch."""
    root = tmp_path / "graph"
    init_small(root)
    owner, other = line_at(root, durability="os"), line_at(root, durability="fsync")
    assert owner is not other
    write(owner, append({"a": 1}))
    return Two(root, owner, other)


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: str, before: Callable[[], object]) -> None:
    """Let something happen once, right before the owner of an operation calls `intents.<name>`."""
    real: Callable[..., Any] = getattr(intents, name)
    owner = threading.current_thread()
    done: list[bool] = []

    def wrapped(*args: Any) -> Any:
        if not done and threading.current_thread() is owner:
            done.append(True)
            before()
        return real(*args)

    monkeypatch.setattr(intents, name, wrapped)


def confirmed(two: Two, rows: dict[str, int]) -> tuple[intents.Intent, PublishPlan]:
    """An operation that its owner confirmed and then forgot."""
    seen: list[PublishPlan] = []

    def stage(txn: WriteTxn) -> PublishPlan | None:
        staged = plan(txn, append(rows))
        if staged is not None:
            seen.append(staged)
        return staged

    # The intent, one staged table, the confirmation; the fourth effect is the verdict.
    with two.owner.store.effects.failing(Fault(4, "before")), pytest.raises(RecoveryRequired):
        long_operations.publish_long_operation(two.owner, "load", stage, CommitMetadata(actor="ann"))
    (pending,) = intents.list_intents(two.owner.store).pending
    assert pending.confirmed
    return pending.intent, seen[0]


def fence(line: BranchState) -> None:
    """What a collector does to a branch before it sweeps."""
    base = line.refresh()
    head = replace(base.state.head, gc_epoch=base.state.head.gc_epoch + 1, nonce=clock_and_ids.new_nonce())
    line.advance(swap_state(line.store, base, replace(base.state, head=head)))


def test_a_finished_operation_is_not_published_again_by_its_owner(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def finished_and_built_on() -> None:
        two.recover()
        write(two.other, append({"later": 3}))

    meanwhile(monkeypatch, "decide", finished_and_built_on)
    commit = write_long(two.owner, append({"big": 2}))
    assert commit is not None
    assert two.people() == [("a", 1), ("big", 2), ("later", 3)]
    assert two.kinds() == ["finished"]
    check_invariants(two.root, acknowledged=[commit])


def test_late_owner_finds_the_commit_of_the_finisher(two: Two) -> None:
    intent, staged = confirmed(two, {"big": 2})
    assert intents.decide(two.owner.store, intent, "publish") == "publish"
    two.recover()
    write(two.other, append({"later": 3}))
    commit = long_operations.finish_confirmed(two.owner, intent, lambda _: staged)
    assert (commit.id, commit.actor, commit.created_at) == (intent.commit_id, "ann", intent.created_at)
    assert two.people() == [("a", 1), ("big", 2), ("later", 3)]
    check_invariants(two.root, acknowledged=[commit])


def test_skipping_the_commit_lookup_duplicates_rows(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule above, with the rule taken away: it is the rule that holds it."""
    intent, staged = confirmed(two, {"big": 2})
    two.recover()
    monkeypatch.setattr(long_operations, "find_intent_commit", lambda *_: None)
    naive = replace(staged, requirements=())  # ids are fresh: nobody looks for them
    with pytest.raises(ConcurrentCommit):
        long_operations.finish_confirmed(two.owner, intent, lambda _: naive)
    assert [row for row, _ in two.people()].count("big") == 2


def test_finisher_rechecks_requirements_on_the_current_state(two: Two) -> None:
    confirmed(two, {"big": 2})
    write(two.other, append({"big": 9}))
    two.recover()
    assert two.people() == [("a", 1), ("big", 9)]
    assert two.kinds() == ["refused"]
    assert two.other.refresh().state.tail[-1].operation == "refused"
    check_invariants(two.root)


def test_owner_rechecks_requirements_on_the_current_state(two: Two) -> None:
    def stage(txn: WriteTxn) -> PublishPlan | None:
        staged = plan(txn, append({"big": 2}))
        write(two.other, append({"big": 9}))
        return staged

    with pytest.raises(KeyConflict):
        long_operations.publish_long_operation(two.owner, "load", stage, CommitMetadata())
    assert two.people() == [("a", 1), ("big", 9)]
    check_invariants(two.root)


def test_refused_operation_is_not_published_by_a_late_finisher(two: Two) -> None:
    intent, staged = confirmed(two, {"ghost": 2})
    assert intents.decide(two.owner.store, intent, "publish") == "publish"
    write(two.other, append({"ghost": 9}))
    with pytest.raises(KeyConflict):
        long_operations.finish_confirmed(two.owner, intent, lambda _: staged)
    # What it clashed with goes, and only then the finisher wakes.
    write(two.other, delete(["ghost"]))
    with pytest.raises(ReadSetConflict):
        long_operations.finish_confirmed(two.other, intent, lambda _: staged)
    assert two.people() == [("a", 1)]
    check_invariants(two.root)


def test_skipping_the_refusal_record_publishes_a_failed_operation(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule above, with the rule taken away."""
    intent, staged = confirmed(two, {"ghost": 2})
    write(two.other, append({"ghost": 9}))
    with monkeypatch.context() as patch:
        patch.setattr(long_operations, "publish_refusal", lambda *_: None)
        with pytest.raises(KeyConflict):
            long_operations.finish_confirmed(two.owner, intent, lambda _: staged)
    write(two.other, delete(["ghost"]))
    long_operations.finish_confirmed(two.other, intent, lambda _: staged)
    assert ("ghost", 2) in two.people()


def test_refusal_of_a_published_operation_returns_its_commit(two: Two) -> None:
    intent, staged = confirmed(two, {"big": 2})
    commit = long_operations.finish_confirmed(two.other, intent, lambda _: staged)
    assert long_operations.publish_refusal(two.owner, intent) == commit
    assert two.people() == [("a", 1), ("big", 2)]
    check_invariants(two.root, acknowledged=[commit])


def test_a_discarded_operation_is_not_revived_by_a_new_verdict(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def discard() -> None:
        (one,) = intents.list_intents(two.other.store).pending
        store = two.other.store
        store.objects.create_json(layout.intent_name(one.intent.id, "verdict"), {"verdict": "discard"})
        intents.retire(store, one.intent)

    meanwhile(monkeypatch, "decide", discard)
    with pytest.raises(ConcurrentCommit, match="abandoned"):
        write_long(two.owner, append({"big": 2}))
    assert two.people() == [("a", 1)]
    check_invariants(two.root)


def test_an_intent_is_removed_before_its_verdict(two: Two) -> None:
    with two.owner.store.effects.recording() as seen:
        write_long(two.owner, append({"big": 2}))
    removed = [one.target.rpartition(".")[2] for one in seen if one.kind == "remove"]
    assert removed == ["json", "confirmed", "lease", "verdict"]


@pytest.mark.parametrize("who", ["owner", "finisher"])
def test_fence_does_not_block_a_confirmed_operation(two: Two, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fence before the operation is taken up to be published, one right before its swap."""
    collector = two.owner if who == "finisher" else two.other
    swaps: list[int] = []

    def swap(*args: Any) -> Any:
        if not swaps:
            swaps.append(1)
            fence(collector)
        return swap_state(*args)

    def stage(txn: WriteTxn) -> PublishPlan | None:
        staged = plan(txn, append({"big": 2}))
        fence(collector)
        return staged

    if who == "finisher":
        confirmed(two, {"big": 2})
        fence(collector)
        monkeypatch.setattr(swapping, "swap_state", swap)
        two.recover()
    else:
        monkeypatch.setattr(swapping, "swap_state", swap)
        long_operations.publish_long_operation(two.owner, "load", stage, CommitMetadata())
    assert two.people() == [("a", 1), ("big", 2)]
    check_invariants(two.root)


def test_fencing_confirmed_operations_would_discard_them(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule above, when files count as lost after a fence even under their own intent."""
    confirmed(two, {"big": 2})
    fence(two.owner)

    def literal(_: PublishPlan, txn: WriteTxn, intent: intents.Intent) -> None:
        if txn.base.state.head.gc_epoch != 0:
            raise ReadSetConflict(member="tables", expected=intent.base_commit)

    with monkeypatch.context() as patch:
        patch.setattr(long_operations, "_check_still_applies", literal)
        with pytest.raises(AssertionError):
            _finished(two)


def _finished(two: Two) -> None:
    two.recover()
    assert two.people() == [("a", 1), ("big", 2)]


def test_operation_is_retried_on_a_busy_branch(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (publishing, swapping):
        monkeypatch.setattr(module, "MAX_SWAP_ATTEMPTS", 1)
    real = swap_state
    lost: list[int] = []

    def busy(*args: Any) -> Any:
        if threading.current_thread().name == "MainThread" and len(lost) < 3:
            lost.append(1)
            base = two.other.refresh()
            head = replace(base.state.head, nonce=clock_and_ids.new_nonce())
            two.other.advance(real(two.other.store, base, replace(base.state, head=head)))
        return real(*args)

    monkeypatch.setattr(swapping, "swap_state", busy)
    assert write_long(two.owner, append({"big": 2})) is not None
    assert two.people() == [("a", 1), ("big", 2)]


def test_concurrent_finishers_write_one_commit_and_one_record(two: Two) -> None:
    confirmed(two, {"big": 2})
    failed: list[BaseException] = []

    def finish(store: Store) -> None:
        try:
            recover.recover(store)
        except BaseException as error:
            failed.append(error)

    with overdue():
        stores = [two.owner.store, two.other.store, two.owner.store, two.other.store]
        threads = [threading.Thread(target=finish, args=(one,)) for one in stores]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert failed == []
    assert two.people() == [("a", 1), ("big", 2)]
    assert two.kinds() == ["finished"]
    check_invariants(two.root)


def test_an_operation_on_a_deleted_branch_is_discarded(two: Two) -> None:
    line = create_branch(two.owner.store, "side", two.owner)
    confirmed(replace(two, owner=line), {"big": 2})
    delete_branch(two.other.store, "side")
    two.recover()
    assert two.kinds() == ["discarded"]
    assert "side" not in graphs.open(two.root).branches
    check_invariants(two.root)


def test_an_operation_on_a_dropped_table_is_refused(two: Two) -> None:
    from omnigraph.publish.publish import publish

    confirmed(two, {"big": 2})
    publish(two.other, lambda _: PublishPlan("schema", dropped_tables=frozenset({PERSON})))
    two.recover()
    assert two.kinds() == ["refused"]
    assert intents.list_intents(two.other.store).pending == ()


def test_operation_with_a_live_owner_is_not_recovered(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents, "RENEWAL_SECONDS", 0.001)

    def stage(txn: WriteTxn) -> PublishPlan | None:
        (before,) = intents.list_intents(txn.store).pending
        old = before.alive_at.timestamp() - 3600
        os.utime(two.root / layout.intent_name(before.intent.id), (old, old))
        while not (two.root / layout.intent_name(before.intent.id, "lease")).exists():
            threading.Event().wait(0.001)
        assert recover.recover(two.other.store) == []
        return plan(txn, append({"big": 2}))

    assert long_operations.publish_long_operation(two.owner, "load", stage, CommitMetadata()) is not None
    check_invariants(two.root)


def test_owner_with_an_expired_lease_is_discarded_and_notified(two: Two) -> None:
    def stage(txn: WriteTxn) -> PublishPlan | None:
        staged = plan(txn, append({"big": 2}))
        two.recover()
        return staged

    with pytest.raises(ConcurrentCommit, match="abandoned"):
        long_operations.publish_long_operation(two.owner, "load", stage, CommitMetadata())
    assert two.people() == [("a", 1)]
    assert two.kinds() == ["discarded"]


def test_a_failure_while_staging_leaves_nothing(two: Two) -> None:
    with pytest.raises(ZeroDivisionError):
        long_operations.publish_long_operation(two.owner, "load", lambda _: 1 / 0, CommitMetadata())  # type: ignore[arg-type, return-value]
    check_invariants(two.root)


@pytest.mark.parametrize(("at", "effect"), [(2, "none"), (3, "none")])
def test_a_store_that_fails_while_staging_is_a_typed_failure(two: Two, at: int, effect: str) -> None:
    with two.owner.store.effects.failing(Fault(at, "after")), pytest.raises(StorageError, match="fault") as caught:
        write_long(two.owner, append({"big": 2}))
    assert caught.value.effect == effect
    assert two.people() == [("a", 1)]
    check_invariants(two.root)


def test_confirmed_operation_that_cannot_be_discarded_has_unknown_outcome(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("gone", kind="transient")

    monkeypatch.setattr(intents, "decide", fail)
    with two.owner.store.effects.failing(Fault(3, "after")), pytest.raises(StorageError, match="fault") as caught:
        write_long(two.owner, append({"big": 2}))
    assert caught.value.effect == "unknown"
    monkeypatch.undo()
    two.recover()
    assert two.people() == [("a", 1), ("big", 2)]


def test_an_intent_that_cannot_be_written_aborts_the_operation(two: Two) -> None:
    with two.owner.store.effects.failing(Fault(1, "before")), pytest.raises(StorageError, match="fault") as caught:
        write_long(two.owner, append({"big": 2}))
    assert caught.value.effect == "none"
    assert write(two.owner, append({"next": 1})) is not None
    check_invariants(two.root)


def test_an_intent_that_cannot_be_removed_is_a_warning(two: Two, caplog: pytest.LogCaptureFixture) -> None:
    # The intent, the rows, the confirmation, the verdict, the table, the state, the swap.
    with caplog.at_level(logging.WARNING), two.owner.store.effects.failing(Fault(8, "before")):
        commit = write_long(two.owner, append({"big": 2}))
    assert commit is not None
    assert "could not be removed" in caplog.text
    two.recover()
    assert two.kinds() == ["finished"]
    check_invariants(two.root, acknowledged=[commit])


def test_a_failure_after_the_confirmation_says_that_recovery_decides(two: Two) -> None:
    with two.owner.store.effects.failing(Fault(5, "before")), pytest.raises(RecoveryRequired) as caught:
        write_long(two.owner, append({"big": 2}))
    assert (caught.value.effect, caught.value.retryable) == ("unknown", "after_recovery")
    assert two.people() == [("a", 1)]
    two.recover()
    assert two.people() == [("a", 1), ("big", 2)]
    check_invariants(two.root)


def damage(root: Path, body: bytes) -> Path:
    """An unfinished operation whose record is not what it should be."""
    path = root / layout.intent_name("01J00000000000000000000000")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    return path


BAD = {
    "torn": b"",
    "no object": b"[]",
    "cut": b'{"schema_version": 1, "operation_id',
    "members missing": b'{"schema_version": 1, "operation_id": "01J00000000000000000000000"}',
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_a_corrupt_intent_is_set_aside_and_kept(two: Two, body: bytes) -> None:
    path = damage(two.root, body)
    with overdue():
        graph = graphs.open(two.root)
    assert [one.id for one in graph.maintenance.operations.set_aside()] == [path.stem]
    assert two.kinds() == ["set_aside"]
    assert path.read_bytes() == body
    before = files(two.owner.store)
    assert graphs.open(two.root, read_only=True).table("Person").count_rows() == 1
    assert files(two.owner.store) == before


def test_an_intent_of_a_newer_release_is_set_aside_for_it(two: Two) -> None:
    body = json.dumps({"schema_version": 99, "operation_id": "01J00000000000000000000000"})
    path = damage(two.root, body.encode())
    with overdue():
        (waiting,) = graphs.open(two.root).maintenance.operations.set_aside()
    assert "newer release" in waiting.error
    assert waiting.needs == {"schema_version": 99}
    assert path.read_text() == body
    assert graphs.open(two.root, read_only=True).table("Person").count_rows() == 1


def test_a_damaged_confirmation_is_set_aside_and_kept(two: Two) -> None:
    intent, _ = confirmed(two, {"big": 2})
    path = two.root / layout.intent_name(intent.id, "confirmed")
    path.write_bytes(b'{"operation": "load"}')
    with overdue():
        (waiting,) = graphs.open(two.root).maintenance.operations.set_aside()
    assert "cannot be read" in waiting.error
    assert path.exists()


def test_old_intent_parts_without_an_intent_are_removed(two: Two) -> None:
    store = two.owner.store
    for part in ("confirmed", "lease", "verdict"):
        store.objects.create_json(layout.intent_name("01J00000000000000000000000", part), {})
    store.objects.create_bytes(f"{layout.INTENTS}/clock-01J00000000000000000000000.tick", b"")
    (two.root / layout.INTENTS / "notes.txt").write_text("not ours")
    recover.recover(store)
    assert len(store.objects.list(layout.INTENTS)) == 5
    two.recover()
    assert [one.name for one in store.objects.list(layout.INTENTS)] == ["__recovery/notes.txt"]


def test_recovery_check_runs_at_open_and_then_periodically(two: Two) -> None:
    with clock_and_ids.deterministic_ids() as clock, overdue():
        graph = graphs.open(two.root, durability="fsync")
        confirmed(two, {"big": 2})
        write(graph._handle.branch_state, append({"one": 1}))
        assert two.kinds() == []
        clock.advance(seconds=recover.RECOVERY_INTERVAL_SECONDS - 0.1)
        write(graph._handle.branch_state, append({"two": 2}))
        assert two.kinds() == []
        clock.advance(seconds=0.2)
        write(graph._handle.branch_state, append({"three": 3}))
        assert two.kinds() == ["finished"]
    check_invariants(two.root)


def test_failed_recovery_listing_raises_and_is_retried(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StorageError("no listing", kind="transient", effect="none")

    with clock_and_ids.deterministic_ids() as clock:
        graph = graphs.open(two.root, durability="fsync")
        clock.advance(minutes=1)
        with monkeypatch.context() as patch:
            patch.setattr(intents, "list_intents", fail)
            for _ in range(2):
                with pytest.raises(StorageError, match="no listing"):
                    write(graph._handle.branch_state, append({"one": 1}))
            with pytest.raises(StorageError, match="no listing"):
                graphs.open(two.root)
        assert write(graph._handle.branch_state, append({"one": 1})) is not None


def test_repeated_long_operation_returns_the_commit_of_its_key(two: Two) -> None:
    signature = CommitMetadata(idempotency_key="once", request_hash="r")
    first = write_long(two.owner, append({"big": 2}), signature=signature)
    again = write_long(two.other, append({"bigger": 2}), signature=signature)
    assert first == again
    assert two.people() == [("a", 1), ("big", 2)]
    check_invariants(two.root)


def test_strict_operations_are_refused_after_a_logical_change(two: Two) -> None:
    def stage(txn: WriteTxn) -> PublishPlan | None:
        staged = plan(txn, update({"a": 5}))
        write(two.other, append({"b": 2}))
        return staged

    with pytest.raises(VersionConflict):
        long_operations.publish_long_operation(two.owner, "load", stage, CommitMetadata())
    assert two.people() == [("a", 1), ("b", 2)]
    check_invariants(two.root)
