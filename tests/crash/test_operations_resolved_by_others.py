"""Operations resolved by another process while their owner slept: the owner gets the outcome."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import InputError, ReadSetConflict, RecoveryRequired, StorageError
from omnigraph.history import commit_log as logs
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import swap_state
from omnigraph.publish import intent as intents
from omnigraph.publish import publish as publishing
from omnigraph.publish import swap as swapping
from omnigraph.publish.recover import recover
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.store import open_store
from tests.rig.writes import PERSON, append, init_small, line_at, read_branch, write, write_long

EXPIRED = timedelta(seconds=-1000)


@pytest.fixture
def root(tmp_path: Path) -> str:
    place = str(tmp_path / "g")
    init_small(place)
    return place


def test_a_refusal_is_never_acknowledged_as_a_write(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, other = line_at(root, durability="os"), line_at(root, durability="fsync")
    write(owner, append({"a": 1}))
    real = swap_state
    slept: list[bool] = []

    def sleepy(store: Any, base: Any, state: Any) -> Any:
        if store is owner.store and not slept:
            slept.append(True)
            write(other, append({"x": 99}))
            with monkeypatch.context() as patch:
                patch.setattr(intents, "LEASE_DURATION", EXPIRED)
                assert [one.kind for one in recover(other.store)] == ["refused"]
        return real(store, base, state)

    monkeypatch.setattr(swapping, "swap_state", sleepy)
    with pytest.raises(ReadSetConflict):
        write_long(owner, append({"x": 1}))
    assert ("x", 99) in read_branch(other)[PERSON]
    assert ("x", 1) not in read_branch(other)[PERSON]


def test_operation_that_cannot_land_does_not_block_open(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = line_at(root, durability="fsync")
    write(line, append({"a": 1}), signature=CommitMetadata(idempotency_key="K", request_hash="r1"))
    with pytest.raises(InputError, match="a different request"):
        write_long(line, append({"b": 1}), signature=CommitMetadata(idempotency_key="K", request_hash="r2"))
    assert not intents.list_intents(line.store).pending
    monkeypatch.setattr(intents, "LEASE_DURATION", EXPIRED)
    assert omnigraph.open(root).head.operation == "refused"


def test_busy_branch_leaves_a_confirmed_operation_to_recovery(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = line_at(root, durability="fsync")
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "MAX_PREPARATIONS", 0)
        with pytest.raises(RecoveryRequired):
            write_long(line, append({"b": 1}))
    assert len(intents.list_intents(line.store).pending) == 1
    monkeypatch.setattr(intents, "LEASE_DURATION", EXPIRED)
    assert [one.kind for one in recover(line.store)] == ["finished"]
    assert ("b", 1) in read_branch(line)[PERSON]


def test_failed_chunk_read_is_retried_by_threads_sharing_a_log(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 4)
    line = line_at(root, durability="os")
    for number in range(20):
        write(line, append({f"a{number}": number}))
    state = line.refresh().state
    log = HistoryLog(open_store(root), state)  # a store that remembers no chunks
    real = logs._read_chunk_object
    failed: list[bool] = []

    def blip(store: Any, chunk: Any) -> Any:
        if not failed:
            failed.append(True)
            raise StorageError("a blip", kind="transient")
        return real(store, chunk)

    monkeypatch.setattr(logs, "_read_chunk_object", blip)
    with pytest.raises(StorageError):
        log.ancestors(state.head.commit_id)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(log.ancestors(state.head.commit_id)))) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [21] * 4
