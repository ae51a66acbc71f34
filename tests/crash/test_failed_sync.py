"""A write whose sync failed is not acknowledged."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InitializationIndeterminate, RecoveryRequired, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage import written_files
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from tests.rig.writes import PERSON, SCHEMA, append, init_small, line_at, read_graph, write, write_long


@contextmanager
def refusing(monkeypatch: pytest.MonkeyPatch, part: str) -> Iterator[list[str]]:
    """Syncing a file of which the path holds `part` fails; gives the files that were synced."""
    real, synced = os.fsync, list[str]()

    def fsync(handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if part in path and path.endswith(".manifest"):
            raise OSError(errno.EIO, "Input/output error")
        synced.append(path)
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(written_files, "_sync_handle", fsync)
        yield synced


@pytest.fixture
def line(tmp_path: Path) -> BranchState:
    init_small(tmp_path / "g", durability="fsync")
    found = line_at(tmp_path / "g", durability="fsync")
    write(found, append({"a": 1}))
    return found


def people(line: BranchState) -> list[str]:
    return [name for name, _ in read_graph(line.store.root.path)["main"][PERSON]]


def test_unsynced_write_is_not_acknowledged(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    signature = CommitMetadata(idempotency_key="once", request_hash="r")
    with refusing(monkeypatch, "__manifest/_versions"), pytest.raises(StorageError) as caught:
        write(line, append({"b": 1}), signature=signature)
    assert (caught.value.effect, caught.value.reason) == ("unknown", "Input/output error")
    assert people(line) == ["a", "b"]  # there, as long as the machine runs
    assert write(line, append({"b": 1}), signature=signature) is not None
    assert write(line, append({"c": 1})) is not None
    assert people(line) == ["a", "b", "c"]


def test_repeated_key_of_an_unsynced_write_is_not_acknowledged(
    line: BranchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    signature = CommitMetadata(idempotency_key="once", request_hash="r")
    write(line, append({"b": 1}), signature=signature)
    with refusing(monkeypatch, "__manifest/_versions"), pytest.raises(StorageError) as caught:
        write(line, append({"b": 1}), signature=signature)
    assert caught.value.effect == "unknown"


def test_landed_swap_without_a_response_is_synced_before_acknowledgement(
    line: BranchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing(monkeypatch, "nowhere") as synced, line.store.effects.failing(Fault(4, "after", OSError("lost"))):
        assert write(line, append({"b": 1})) is not None
    assert any("__manifest/_versions" in one for one in synced)


def test_unsynced_long_operation_is_left_to_recovery(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing(monkeypatch, "__manifest/_versions"), pytest.raises(RecoveryRequired) as caught:
        write_long(line, append({"b": 1}))
    assert caught.value.effect == "unknown"


def test_unsynced_branch_gets_no_name(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing(monkeypatch, "__branches"), pytest.raises(StorageError) as caught:
        create_branch(line.store, "f", line)
    assert caught.value.effect == "unknown"
    assert list_branches(line.store) == ["main"]


def test_unsynced_deletion_is_not_acknowledged(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    create_branch(line.store, "f", line)
    with refusing(monkeypatch, "__branches"), pytest.raises(StorageError) as caught:
        delete_branch(line.store, "f")
    assert caught.value.effect == "unknown"


def test_unsynced_init_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing(monkeypatch, "__manifest/_versions"), pytest.raises(InitializationIndeterminate):
        omnigraph.init(tmp_path / "g", SCHEMA)
    assert omnigraph.open(tmp_path / "g").head.operation == "init"


def test_parent_directory_of_a_new_root_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, synced = os.fsync, set[str]()

    def fsync(handle: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    root = tmp_path / "new" / "deep" / "g"
    omnigraph.init(root, SCHEMA)
    assert {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "deep")} <= synced
    synced.clear()
    (tmp_path / "other").mkdir()
    omnigraph.init(tmp_path / "other", SCHEMA)
    assert str(tmp_path) in synced
    synced.clear()
    omnigraph.init(tmp_path / "fast", SCHEMA, durability="os")
    assert synced == set()


def test_new_root_below_an_unlistable_directory_is_created(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("everything can be listed by this user")
    (tmp_path / "closed" / "g").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o300)
    omnigraph.init(tmp_path / "closed" / "g", SCHEMA)
    assert open_store(str(tmp_path / "closed" / "g")).root.is_local
