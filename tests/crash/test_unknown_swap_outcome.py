"""A swap without a response: the caller learns the outcome, the write exists once or not at all."""

import errno
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches
from omnigraph.publish import swap as swapping
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage import root as roots
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import PERSON, append, init_small, line_at, read_branch, write

SWAP = "*__manifest/_versions/*"
PUBLISH = 4  # the effect of a one-table write that makes it visible


@pytest.fixture
def line(tmp_path: Path) -> BranchState:
    """The main line of a small graph on disk."""
    init_small(tmp_path / "graph")
    found = line_at(tmp_path / "graph")
    write(found, append({"a": 1}))
    return found


@pytest.fixture
def distant(s3: S3, monkeypatch: pytest.MonkeyPatch) -> BranchState:
    """The same behind the proxy, with a client that does not try again by itself."""
    monkeypatch.setitem(roots._DEFAULT_TIMEOUTS, "client_max_retries", "0")
    init_small(s3.url)
    found = line_at(s3.url)
    write(found, append({"a": 1}))
    return found


def people(line: BranchState) -> list[str]:
    """The ids in the table, as they are now."""
    return [row for row, _ in read_branch(line)[PERSON]]


def directly(s3: S3, monkeypatch: pytest.MonkeyPatch) -> BranchState:
    """Another process at the same graph, past the proxy."""
    with monkeypatch.context() as patch:
        for name, value in s3.server.environment.items():
            patch.setenv(name, value)
        return line_at(s3.url, durability="fsync")


@pytest.mark.parametrize("error", [OSError("lost"), TimeoutError(), RuntimeError("odd")])
def test_landed_swap_is_acknowledged_despite_an_error_response(line: BranchState, error: Exception) -> None:
    with line.store.effects.failing(Fault(PUBLISH, "after", error)):
        commit = write(line, append({"b": 2}))
    assert commit is not None
    assert people(line) == ["a", "b"]
    check_invariants(line.store.root.path, acknowledged=[commit])


def test_swap_rejected_by_the_disk_has_no_effect(line: BranchState) -> None:
    error = OSError(errno.EIO, "input/output error")
    with line.store.effects.failing(Fault(PUBLISH, "before", error)), pytest.raises(StorageError) as caught:
        write(line, append({"b": 2}))
    assert caught.value.effect == "none"
    assert people(line) == ["a"]
    assert write(line, append({"b": 2})) is not None
    check_invariants(line.store.root.path)


@pytest.mark.parametrize(("how", "left"), [("before", ["a"]), ("after", ["a", "b"])])
def test_interrupt_during_the_swap_reports_what_was_written(line: BranchState, how: Any, left: list[str]) -> None:
    with (
        line.store.effects.failing(Fault(PUBLISH, how, KeyboardInterrupt())),
        pytest.raises(KeyboardInterrupt) as caught,
    ):
        write(line, append({"b": 2}))
    assert people(line) == left
    (note,) = caught.value.__notes__
    if "b" in left:
        assert note == f"commit {line.last_known().state.head.commit_id} was written"
    else:  # a thread of Lance that nobody waits for any more could still do it
        assert "may still be written" in note
    assert write(line, append({"c": 3})) is not None
    check_invariants(line.store.root.path)


def test_interrupt_during_verification_reports_a_possible_write(
    line: BranchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(swapping, "is_newest", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            write(line, append({"b": 2}))
    (note,) = caught.value.__notes__
    assert "may still be written" in note
    assert write(line, append({"c": 3})) is not None
    assert people(line) == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["before", "after"])
def test_interrupted_branch_deletion_is_atomic(line: BranchState, how: Any) -> None:
    create_branch(line.store, "side", line)
    told = pytest.raises(KeyboardInterrupt) if how == "before" else nullcontext()
    with line.store.effects.failing(Fault(2, how, KeyboardInterrupt())), told:
        delete_branch(line.store, "side")
    if how == "before":
        delete_branch(line.store, "side")
    create_branch(line.store, "side", line)
    assert list_branches(line.store) == ["main", "side"]
    check_invariants(line.store.root.path)


def test_full_disk_is_not_reported_as_contention(line: BranchState) -> None:
    create_branch(line.store, "side", line)
    real = line.store.effects.run

    def full(kind: Any, target: str, action: Callable[[], Any]) -> Any:
        if kind == "publish":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(kind, target, action)

    line.store.effects.run = full  # type: ignore[method-assign]
    with pytest.raises(StorageError) as caught:
        delete_branch(line.store, "side")
    assert (caught.value.kind, caught.value.effect) == ("configuration", "none")
    line.store.effects.run = real  # type: ignore[method-assign]
    delete_branch(line.store, "side")


def test_swap_with_a_lost_response_on_s3_is_acknowledged(s3: S3, distant: BranchState) -> None:
    rule = s3.proxy.drop("PUT", SWAP)
    commit = write(distant, append({"b": 2}))
    assert rule.hit.is_set()
    assert commit is not None
    assert people(distant) == ["a", "b"]
    check_invariants(s3.url, acknowledged=[commit])


@pytest.mark.parametrize("landed", [True, pytest.param(False, marks=pytest.mark.full)])
def test_swap_on_an_unreachable_s3_has_unknown_outcome(s3: S3, distant: BranchState, landed: bool) -> None:
    rule = s3.proxy.cut(1, "PUT", SWAP, forward=landed)
    signature = CommitMetadata(idempotency_key="once", request_hash="r")
    with pytest.raises(StorageError) as caught:
        write(distant, append({"b": 2}), signature=signature)
    assert rule.hit.is_set()
    assert caught.value.effect == "unknown"
    s3.proxy.heal()
    assert people(distant) == (["a", "b"] if landed else ["a"])
    # Who is not sure tries again with the same key.
    commit = write(distant, append({"b": 2}), signature=signature)
    assert commit is not None
    assert people(distant) == ["a", "b"]
    check_invariants(s3.url, acknowledged=[commit])


@pytest.mark.full
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("times", [1, 3])
def test_swap_with_an_error_response_on_s3_is_verified(
    s3: S3, distant: BranchState, status: int, forward: bool, times: int
) -> None:
    rule = s3.proxy.answer(status, "PUT", SWAP, forward=forward, times=times)
    commit = write(distant, append({"b": 2}))
    assert rule.hit.is_set()
    assert commit is not None
    assert people(distant) == ["a", "b"]
    check_invariants(s3.url, acknowledged=[commit])


@pytest.mark.parametrize("deleted", [True, pytest.param(False, marks=pytest.mark.full)])
def test_delayed_swap_into_a_freed_version_number_is_retried(
    s3: S3, distant: BranchState, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    other = directly(s3, monkeypatch)
    rule = s3.proxy.hold("PUT", SWAP)
    done: list[Any] = []
    writer = threading.Thread(target=lambda: done.append(write(distant, append({"b": 2}))))
    writer.start()
    assert rule.hit.wait(PATIENCE)
    for number in range(3):
        write(other, append({f"o{number}": 0}))
    if deleted:
        # The number that the held swap wants is free again, far below the newest.
        store = open_store(s3.url)
        versions = store.objects.list("__manifest/_versions")
        for one in versions[1:]:  # the newest comes first by name
            other.store.objects.remove(one.name)
    rule.release()
    writer.join()
    (commit,) = done
    assert people(other) == ["a", "b", "o0", "o1", "o2"]
    check_invariants(s3.url, acknowledged=[commit])


@pytest.mark.full
def test_swap_that_times_out_and_lands_later_on_s3_exists_once(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    init_small(s3.url)
    # One request is held until the client gives up; the others must not need that long.
    monkeypatch.setitem(roots._DEFAULT_TIMEOUTS, "client_max_retries", "0")
    monkeypatch.setitem(roots._DEFAULT_TIMEOUTS, "timeout", "5s")
    line = line_at(s3.url)
    rule = s3.proxy.hold("PUT", SWAP)
    commit = write(line, append({"b": 2}))
    rule.release()
    assert commit is not None
    assert people(line) == ["b"]
    assert write(line, append({"c": 2})) is not None
    check_invariants(s3.url, acknowledged=[commit])
