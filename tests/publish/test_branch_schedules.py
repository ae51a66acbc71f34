"""Interleavings around branches: deleted, recreated, forked from a moving source, swept."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import AlreadyExists, BranchNotFound, ReadSetConflict
from omnigraph.history import refs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import create_manifest, read_manifest, swap_state
from omnigraph.history.snapshot import find_commit
from omnigraph.publish import branch_lifecycle, closing_version, intent, swap
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage import layout
from omnigraph.storage import manifest_cell as cells
from omnigraph.storage.manifest_cell import SwapConflict
from omnigraph.storage.store import Store, open_store
from tests.rig.independent_writers import apart, once, people, version_file, write_while
from tests.rig.writes import PERSON, append, check_invariants, init_small, read_branch, read_graph, rewrite, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = init_small(tmp_path / "g")
    main = open_branch(store, "main")
    write(main, append({"base": 0}))
    create_branch(store, "f", main)
    return tmp_path / "g"


def _delete(root: Path, name: str = "f") -> None:
    delete_branch(open_store(str(root), durability="os"), name)


def _create(root: Path, name: str = "f") -> BranchState:
    store = open_store(str(root), durability="os")
    return create_branch(store, name, apart(root))


def _recreate(root: Path) -> None:
    _delete(root)
    _create(root)


def test_stale_writer_of_a_deleted_branch_gets_a_conflict(root: Path) -> None:
    line = apart(root, "f")
    with pytest.raises(ReadSetConflict) as caught:
        write_while(line, people(1), lambda: _delete(root))
    assert caught.value.member == "branch"
    assert "f" not in list_branches(line.store)


def test_without_a_closing_version_a_stale_write_would_be_acknowledged(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_lifecycle, "publish_closing_version", lambda *_: False)
    line = apart(root, "f")
    assert write_while(line, people(1), lambda: _delete(root)) is not None
    assert "f" not in list_branches(line.store)


def test_stale_writer_does_not_reach_the_recreated_branch(root: Path) -> None:
    line = apart(root, "f")
    with pytest.raises(ReadSetConflict):
        write_while(line, people(1), lambda: _recreate(root))
    assert read_graph(root)["f"][PERSON] == [("base", 0)]
    with pytest.raises(ReadSetConflict):
        write(line, people(1))
    check_invariants(root)


def test_shared_directory_would_let_a_stale_writer_reach_the_recreated_branch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "_is_same_history", lambda *_: True)
    line = apart(root, "f")
    write(line, append({"old": 1}))
    real = branch_lifecycle._branch_intent
    monkeypatch.setattr(branch_lifecycle, "_branch_intent", lambda *a: replace(real(*a), created_ulid=line.ulid))

    def again() -> None:
        _delete(root)
        shutil.rmtree(root / layout.manifest_directory(line.ulid))
        new = _create(root)
        write(BranchState(open_store(str(root)), "f", new.ulid), append({"new": 1}))

    assert write_while(line, people(1), again) is not None
    assert "old" in dict(read_graph(root)["f"][PERSON])


def _sweep_closed(root: Path, line: BranchState, *, tombstone: bool) -> None:
    """Delete a branch and everything of its manifest, with or without the closing version."""
    _delete(root)
    store = open_store(str(root))
    newest = read_manifest(store, line.ulid)
    directory = root / layout.manifest_directory(line.ulid)
    kept = {version_file(line, newest.version)} if tombstone else set()
    if tombstone:
        for fragment in newest.cell.dataset.get_fragments():
            kept |= {directory / "data" / one.path for one in fragment.metadata.files}
    for one in directory.rglob("*"):
        if one.is_file() and one not in kept:
            one.unlink()


def test_closing_version_stops_a_stale_writer_after_a_sweep(root: Path) -> None:
    line = apart(root, "f")
    with pytest.raises(ReadSetConflict):
        write_while(line, people(1), lambda: _sweep_closed(root, line, tombstone=True))


def test_sweeping_the_closing_version_would_let_a_stale_write_land(root: Path) -> None:
    line = apart(root, "f")
    made = write_while(line, people(1), lambda: _sweep_closed(root, line, tombstone=False))
    assert made is not None
    assert "f" not in list_branches(line.store)


def test_missing_chunk_of_a_deleted_branch_is_reported_as_deletion(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.history import commit_log as logs

    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    line = apart(root, "f")

    def seal_delete_sweep() -> None:
        other = apart(root, "f")
        for n in range(4):
            write(other, people(1, 10 + n))
        _delete(root)
        for one in (root / layout.COMMITS).iterdir():
            one.unlink()

    with pytest.raises(ReadSetConflict):
        write_while(line, people(1), seal_delete_sweep)


def _late_release(root: Path) -> None:
    """A deletion that stalled before it closed the name wakes when the name is open again."""
    store = open_store(str(root), durability="os")
    old = refs.find_ref(store, "f")
    _delete(root)
    _create(root)
    write(apart(root, "f"), people(1))
    refs.close_name(store, old)


def test_late_deletion_does_not_affect_the_recreated_branch(root: Path) -> None:
    _late_release(root)
    assert read_graph(root)["f"][PERSON] == [("base", 0), ("p0", 0)]


def test_deleting_refs_by_name_would_remove_the_recreated_branch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def release(store: Store, ref: refs.Ref) -> None:
        for one in store.objects.list(layout.ref_name(ref.name, 0).rpartition("/")[0]):
            store.objects.remove(one.name)

    monkeypatch.setattr(refs, "close_name", release)
    _late_release(root)
    assert "f" not in read_graph(root)


def _sweep(root: Path) -> None:
    """Delete every table version that no branch and no intent names."""
    store = open_store(str(root))
    named: set[tuple[str, int]] = set()
    for name in list_branches(store):
        state = read_manifest(store, refs.find_ref(store, name).ulid).state
        named |= {(one.location, one.lance_version) for one in state.tables.values()}
    for found in store.objects.list(layout.INTENTS):
        facts = store.objects.read_json(found.name) or {}
        if not found.name.endswith(".json"):
            continue
        state = read_manifest(store, facts["branch_ulid"]).state
        tables, _ = HistoryLog(store, state).tables_and_schema_at(facts["base_commit"])
        named |= {(one.location, one.lance_version) for one in tables.values()}
    for one in root.glob("nodes/*/_versions/d*.manifest"):
        location = str(one.parent.parent.relative_to(root))
        if (location, int(one.name[1:].removesuffix(".manifest"))) not in named:
            one.unlink()


def _fork_while_swept(root: Path, monkeypatch: pytest.MonkeyPatch) -> BranchState:
    """The source moves on and is swept when the state is read and nothing is named yet."""
    real = create_manifest

    def wrapped(*args: Any) -> Any:
        other = apart(root)
        write(other, people(1))
        write(other, rewrite())
        _sweep(root)
        return real(*args)

    monkeypatch.setattr(branch_lifecycle, "create_manifest", wrapped)
    return _create(root, "g")


def test_fork_is_protected_from_a_sweep_of_its_source(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _delete(root)
    _fork_while_swept(root, monkeypatch)
    assert read_graph(root)["g"][PERSON] == [("base", 0)]
    check_invariants(root)


def test_without_an_intent_a_fork_would_reference_swept_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _delete(root)
    monkeypatch.setattr(intent, "arm", lambda *_: None)
    monkeypatch.setattr(intent, "decide", lambda *_: "publish")
    _fork_while_swept(root, monkeypatch)
    with pytest.raises(FileNotFoundError):
        read_graph(root)


@pytest.mark.parametrize("moves", [1, 3, 100])
def test_fork_succeeds_while_its_source_moves(root: Path, monkeypatch: pytest.MonkeyPatch, moves: int) -> None:
    real, left = intent.arm, list(range(moves))

    def arm(store: Store, one: intent.Intent) -> None:
        if left:
            write(apart(root), people(1, left.pop()))
        real(store, one)

    monkeypatch.setattr(intent, "arm", arm)
    source = apart(root)
    made = create_branch(source.store, "g", source)
    state = made.last_known().state
    assert HistoryLog(made.store, state).find(state.head.commit_id) is not None
    rows = read_branch(apart(root, "g"))[PERSON]
    assert ("base", 0) in rows
    assert state.tables[PERSON].row_count == len(rows)
    check_invariants(root)


def _cut_off_deletion(root: Path, name: str = "f") -> None:
    """A deletion that ended between the closing version and the name."""
    store = open_store(str(root), durability="os")
    closing_version.publish_closing_version(store, apart(root, name))


def test_open_closes_a_name_left_by_an_interrupted_deletion(root: Path) -> None:
    _cut_off_deletion(root)
    with pytest.raises(BranchNotFound):
        open_branch(open_store(str(root)), "f")
    assert list_branches(open_store(str(root))) == ["main"]


def test_name_left_by_an_interrupted_deletion_can_be_reused(root: Path) -> None:
    _cut_off_deletion(root)
    _create(root)
    assert read_graph(root)["f"][PERSON] == [("base", 0)]
    assert refs.find_ref(open_store(str(root)), "f").number == 3


def test_name_left_by_an_interrupted_deletion_does_not_block_child_names(root: Path) -> None:
    _cut_off_deletion(root)
    _create(root, "f/a")
    assert list_branches(open_store(str(root))) == ["f/a", "main"]


def test_second_deletion_finishes_the_first_and_raises_branch_not_found(root: Path) -> None:
    _cut_off_deletion(root)
    with pytest.raises(BranchNotFound):
        _delete(root)
    assert list_branches(open_store(str(root))) == ["main"]


def test_commit_lookup_ignores_names_left_by_interrupted_deletions(root: Path) -> None:
    made = write(apart(root, "f"), people(1))
    assert made is not None
    _create(root, "z")
    late = write(apart(root, "z"), people(1))
    assert late is not None
    _cut_off_deletion(root)
    store = open_store(str(root))
    assert find_commit(store, open_branch(store, "main"), late.id)[2] == late


def test_racing_parent_and_child_names_do_not_both_exist(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _delete(root)
    real = create_manifest
    race = once(lambda: _create(root, "r/a"))

    def wrapped(*args: Any) -> Any:
        race()
        return real(*args)

    monkeypatch.setattr(branch_lifecycle, "create_manifest", wrapped)
    with pytest.raises(AlreadyExists):
        _create(root, "r")
    assert list_branches(open_store(str(root))) == ["main", "r/a"]
    check_invariants(root)


def test_branch_deleted_during_its_creation_is_not_acknowledged(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, listed = refs.list_highest_numbers, list[int]()

    def listing(store: Store) -> dict[str, int]:
        listed.append(1)
        if len(listed) == 1:  # the name is taken, and is looked at once more
            _delete(root, "g")
        return real(store)

    monkeypatch.setattr(refs, "list_highest_numbers", listing)
    with pytest.raises(BranchNotFound):
        _create(root, "g")
    assert list_branches(open_store(str(root))) == ["f", "main"]


def test_closing_version_is_retried_after_lost_swaps(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [1, 2, 3]

    def losing(*args: Any) -> Any:
        if lost:
            write(apart(root, "f"), people(1, lost.pop()))
            raise SwapConflict
        return swap_state(*args)

    monkeypatch.setattr(closing_version, "swap_state", losing)
    _delete(root)
    assert not lost
    assert "f" not in list_branches(open_store(str(root)))


def test_fork_of_an_old_commit_shows_only_its_ancestors(root: Path) -> None:
    main = apart(root)
    signature = CommitMetadata(idempotency_key="k", request_hash="r")
    old = main.last_known().state.head.commit_id
    later = write(main, people(1), signature=signature)
    assert later is not None
    create_branch(main.store, "g", main, commit_id=old)
    g = apart(root, "g")
    log = HistoryLog(g.store, g.last_known().state)
    assert log.find(later.id) is not None  # the log may hold more
    assert later.id not in log.ancestors(old)
    again = write(g, people(1), signature=signature)
    assert again is not None
    assert again.id != later.id
    assert again.parent == old
    check_invariants(root)


def test_state_identity_is_the_head_not_the_version_number(root: Path) -> None:
    assert swap.MAX_SWAP_ATTEMPTS == 5
    a, b = apart(root, "f"), apart(root)
    write(a, people(1, 1))
    write(b, people(1, 2))
    one, two = (each.last_known().state.tables[PERSON] for each in (a, b))
    assert one.version == two.version
    assert one.content_id != two.content_id
