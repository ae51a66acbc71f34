"""A copy is complete, whatever is removed from the source meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import BranchNotFound, HistoryReclaimed, StorageError
from omnigraph.history import commit_log
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches
from omnigraph.history.commit import TableEntry
from omnigraph.maintenance import copy as copying
from omnigraph.maintenance.copy import copy_graph
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.storage import layout
from omnigraph.storage import transfer as transferring
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import open_table
from tests.rig.independent_writers import once
from tests.rig.invariants import check_invariants
from tests.rig.writes import PERSON, append, delete, init_small, line_at, overwrite, read_graph, write


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BranchState:
    """A graph with a sealed piece of its log."""
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    init_small(tmp_path / "graph")
    found = line_at(tmp_path / "graph")
    for n in range(6):
        write(found, append({f"p{n}": n, f"x{n}": n}))
    write(found, delete(["x1"]))
    assert found.last_known().state.chunks
    return found


@pytest.fixture
def target(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "copy"), durability="os")


def entry_of(line: BranchState) -> TableEntry:
    return line.last_known().state.tables[PERSON]


def version_file(line: BranchState, entry: TableEntry) -> Path:
    place = Path(line.store.root.path, entry.location, "_versions")
    return place / f"d{entry.lance_version}.manifest"


def data_files(line: BranchState, entry: TableEntry) -> list[Path]:
    fragments = open_table(line.store, entry.location, entry.lance_version).dataset.get_fragments()
    place = Path(line.store.root.path, entry.location, "data")
    return [place / one.path for f in fragments for one in f.metadata.files]


def deletion_files(line: BranchState, entry: TableEntry) -> list[Path]:
    return list(Path(line.store.root.path, entry.location, "_deletions").iterdir())


def after_capture(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Let something happen once, between the reading of the states and the listing of files."""
    real, happen = copying._capture_branches, once(action)

    def capture(source: Store) -> Any:
        found = real(source)
        happen()
        return found

    monkeypatch.setattr(copying, "_capture_branches", capture)


TAKEN: dict[str, Callable[[BranchState, TableEntry], list[Path]]] = {
    "the version": lambda line, entry: [version_file(line, entry)],
    "its data": data_files,
    "its deletions": deletion_files,
}


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN.keys())
def test_copy_notices_files_collected_after_the_manifests_were_read(
    line: BranchState,
    target: Store,
    monkeypatch: pytest.MonkeyPatch,
    taken: Callable[[BranchState, TableEntry], list[Path]],
) -> None:
    before = entry_of(line)

    def superseded() -> None:
        write(line, overwrite({"only": 1}))
        for path in taken(line, before):
            path.unlink()

    after_capture(monkeypatch, superseded)
    copy_graph(line.store, target)
    assert read_graph(target.root.path)["main"][PERSON] == [("only", 1)]
    check_invariants(target.root.path)


def test_copy_notices_log_chunks_merged_meanwhile(
    line: BranchState, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {one.name for one in line.last_known().state.chunks}

    def merged() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(commit_log, "MERGE_FAN_IN", 2)
            for n in range(8):
                write(line, append({f"q{n}": n}))
        gone = before - {one.name for one in line.last_known().state.chunks}
        assert gone
        for name in gone:
            Path(line.store.root.path, name).unlink()

    after_capture(monkeypatch, merged)
    copy_graph(line.store, target)
    copy = omnigraph.open(target.root.path, read_only=True)
    assert copy.log() == omnigraph.open(line.store.root.path, read_only=True).log()


def test_copy_notices_blobs_removed_after_their_data_file(
    line: BranchState, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep takes a data file before what stands beside it: then it is gone from the source."""
    before, real = entry_of(line), transferring.transfer
    happen = once(lambda: [write(line, overwrite({"only": 1})), *map(Path.unlink, gone)])
    gone = data_files(line, before)

    def transfer(*given: Any) -> bool:
        done = real(*given)
        happen()
        return done

    monkeypatch.setattr(copying, "transfer", transfer)
    copy_graph(line.store, target)
    assert read_graph(target.root.path)["main"][PERSON] == [("only", 1)]


def test_lost_source_files_fail_the_copy_at_once(line: BranchState, target: Store) -> None:
    (lost, *_) = data_files(line, entry_of(line))
    lost.unlink()
    with pytest.raises(StorageError, match="missing") as caught:
        copy_graph(line.store, target)
    assert caught.value.kind == "not_found"


@pytest.mark.parametrize("half", [False, True])
def test_reclaimed_history_is_reclaimed_in_the_copy(line: BranchState, target: Store, half: bool) -> None:
    old = entry_of(line)
    write(line, overwrite({"only": 1}))
    past = line.last_known().state.tail[-2].id
    for path in data_files(line, old):
        path.unlink()
    if not half:
        version_file(line, old).unlink()
    copy_graph(line.store, target)
    copy = omnigraph.open(target.root.path, read_only=True)
    assert copy.table("Person").count_rows() == 1
    with pytest.raises(HistoryReclaimed):
        copy.at(past).table("Person")
    check_invariants(target.root.path)


def test_a_branch_that_was_deleted_between_two_attempts_is_not_in_the_copy(
    line: BranchState, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "kept"):
        write(create_branch(line.store, name, line), append({name: 1}))
    real = transferring.transfer
    seen: list[int] = []

    def transfer(source: Store, to: Store, names: Any, *rest: Any) -> bool:
        """The first attempt ends when the ref of `gone` was carried, since it is deleted then."""
        wanted = list(names)
        if not seen and any("_refs/branches/kept" in one for one in wanted):
            seen.append(1)
            delete_branch(line.store, "gone")
            return False
        return real(source, to, wanted, *rest)

    monkeypatch.setattr(copying, "transfer", transfer)
    copied = copy_graph(line.store, target)
    assert copied.branches == ("kept", "main")
    assert list_branches(open_store(target.root.path)) == ["kept", "main"]
    names = {one.name for one in target.objects.list(layout.REFS)}
    assert names == {"_refs/branches/kept/0000000001.json"}
    with pytest.raises(BranchNotFound):
        omnigraph.open(target.root.path, branch="gone")
    check_invariants(target.root.path)
