"""What a retry, a recovery or a fork must validate again."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import BranchNotFound, Conflict, StorageError
from omnigraph.history import refs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.commit import TableEntry
from omnigraph.history.manifest import swap_state
from omnigraph.publish import branch_lifecycle, recover
from omnigraph.publish import intent as intents
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.closing_version import publish_closing_version
from omnigraph.publish.long_operations import publish_long_operation
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import layout
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import create_table
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey
from tests.rig.independent_writers import apart, once, people
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import CITY, PERSON, append, init_small, plan, read_graph, write

NEW = TableKey("node:New")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    return tmp_path / "g"


def test_acknowledged_state_does_not_replace_a_newer_one(root: Path) -> None:
    line, other = apart(root), apart(root)
    mine = swap_state(line.store, line.last_known(), line.last_known().state)
    write(other, people(1))
    newest = line.reload()
    line.advance(mine)
    assert line.last_known() is newest


# A plan holds for one epoch of the collector, whether it says so or not.


def _fence(line: BranchState) -> None:
    base = line.refresh()
    head = replace(base.state.head, gc_epoch=base.state.head.gc_epoch + 1, nonce=clock_and_ids.new_nonce())
    swap_state(line.store, base, replace(base.state, head=head))


def test_plan_from_before_a_fence_is_replanned(root: Path) -> None:
    fence, calls = once(lambda: _fence(apart(root))), list[int]()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        calls.append(1)
        made = plan(txn, append({"a": 1}))
        fence()
        return replace(made, gc_epoch=None) if made else None

    assert publish(apart(root), prepare) is not None
    assert len(calls) == 2


def test_files_staged_under_an_intent_survive_a_fence(root: Path) -> None:
    fence = once(lambda: _fence(apart(root)))

    def stage(txn: WriteTxn) -> PublishPlan | None:
        made = plan(txn, append({"a": 1}))
        fence()
        return made

    assert publish_long_operation(apart(root), "load", stage, CommitMetadata()) is not None
    assert [name for name, _ in read_graph(root)["main"][PERSON]] == ["a"]


# Tables that a plan registers, drops or takes over are read by it.


def _registered(txn: WriteTxn, key: TableKey = NEW) -> TableEntry:
    schema = txn.table(PERSON).schema
    made = create_table(txn.store, layout.table_directory(key, clock_and_ids.new_ulid()), schema)
    return TableEntry(key, made.location, 1, made.version, txn.commit_id, 0, None, 9)


def _register(root: Path) -> None:
    publish(apart(root), lambda txn: PublishPlan("add", new_tables={NEW: _registered(txn)}))


def test_concurrently_registered_table_is_not_replaced(root: Path) -> None:
    race, calls = once(lambda: _register(root)), list[str]()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        calls.append(txn.base.state.head.commit_id)
        if txn.table_entry(NEW) is not None:
            return None
        made = PublishPlan("add", new_tables={NEW: _registered(txn)})
        race()
        return made

    line = apart(root)
    assert publish(line, prepare) is None
    assert len(calls) == 2
    check_invariants(root)


def test_concurrently_written_table_is_not_dropped(root: Path) -> None:
    race, calls = once(lambda: write(apart(root), append({"a": 1}))), list[int]()

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        calls.append(1)
        entry = txn.table_entry(PERSON)
        assert entry is not None
        if entry.row_count:
            return None
        race()
        return PublishPlan("drop", dropped_tables=frozenset({PERSON}))

    assert publish(apart(root), prepare) is None
    assert len(calls) == 2


@pytest.mark.parametrize("kind", ["registered", "dropped", "adopted"])
def test_long_operation_conflicts_with_concurrent_table_changes(root: Path, kind: str) -> None:
    def race() -> None:
        if kind == "registered":
            _register(root)
        else:
            write(apart(root), append({"other": 1}))

    happen = once(race)

    def stage(txn: WriteTxn) -> PublishPlan:
        changes: dict[str, dict[str, Any]] = {
            "registered": {"new_tables": {NEW: _registered(txn)}},
            "dropped": {"dropped_tables": frozenset({PERSON})},
            "adopted": {"adopted_tables": {PERSON: _registered(txn, PERSON)}},
        }
        happen()
        return PublishPlan("change", **changes[kind])

    with pytest.raises(Conflict):
        publish_long_operation(apart(root), "change", stage, CommitMetadata())
    if kind != "registered":
        assert [name for name, _ in read_graph(root)["main"][PERSON]] == ["other"]
    check_invariants(root)


def test_writes_to_other_tables_do_not_force_a_replan(root: Path) -> None:
    race = once(lambda: write(apart(root), append({"a": 1}), (CITY,)))
    calls: list[int] = []

    def prepare(txn: WriteTxn) -> PublishPlan:
        calls.append(1)
        made = PublishPlan("add", new_tables={NEW: _registered(txn)})
        race()
        return made

    assert publish(apart(root), prepare) is not None
    assert len(calls) == 1
    assert NEW in apart(root).last_known().state.tables


# Names of branches.


def _overdue(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        patch.setattr(intents, "LEASE_DURATION", timedelta(seconds=-1000))
        return [one.kind for one in recover.recover(store)]


@pytest.mark.parametrize("landed", [True, False])
def test_name_with_unknown_outcome_is_finished_by_recovery(
    root: Path, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    real = refs.open_name

    def unsure(store: Store, ref: refs.Ref) -> dict[str, int]:
        if landed:
            real(store, ref)
        raise StorageError("no answer", kind="transient")

    line = apart(root)
    with monkeypatch.context() as patch:
        patch.setattr(refs, "open_name", unsure)
        with pytest.raises(StorageError) as caught:
            create_branch(line.store, "f", line)
    assert caught.value.effect == "unknown"
    assert _overdue(line.store, monkeypatch) == ["finished"]
    assert list_branches(open_store(str(root))) == ["f", "main"]
    assert open_branch(open_store(str(root)), "f").last_known().state.head.fork is not None
    assert intents.list_intents(line.store).pending == ()


def test_recovery_does_not_recreate_a_deleted_branch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = apart(root)
    with monkeypatch.context() as patch:
        patch.setattr(intents, "retire", lambda *_: None)  # cut off when all was done
        create_branch(line.store, "f", line)
    delete_branch(open_store(str(root)), "f")
    assert _overdue(open_store(str(root)), monkeypatch) == []
    assert list_branches(open_store(str(root))) == ["main"]


def test_interrupted_deletion_is_listed_until_a_writable_open(root: Path) -> None:
    graph = omnigraph.open(root)
    graph.branches.create("f")
    publish_closing_version(open_store(str(root)), apart(root, "f"))
    assert graph.branches.names() == ["f", "main"]
    before = files(open_store(str(root)))
    with pytest.raises(BranchNotFound):
        omnigraph.open(root, branch="f", read_only=True)
    assert files(open_store(str(root))) == before
    with pytest.raises(BranchNotFound):
        omnigraph.open(root, branch="f")
    assert graph.branches.names() == ["main"]


# A fork of the past knows the batches of then.


def _batch(line: BranchState, stream: str, token: str) -> str:
    made = publish(line, lambda _: PublishPlan("stream", streams={stream: token}))
    assert made is not None
    return made.id


def test_fork_of_a_past_commit_has_only_its_stream_tokens(root: Path) -> None:
    main = apart(root)
    first = _batch(main, "s", "1")
    both = _batch(main, "t", "1")
    _batch(main, "s", "2")
    create_branch(main.store, "tip", main)
    create_branch(main.store, "both", main, commit_id=both)
    create_branch(main.store, "first", main, commit_id=first)
    streams = {name: dict(apart(root, name).last_known().state.streams) for name in list_branches(main.store)}
    assert streams == {
        "main": {"s": "2", "t": "1"},
        "tip": {"s": "2", "t": "1"},
        "both": {"s": "1", "t": "1"},
        "first": {"s": "1"},
    }
    check_invariants(root)


def test_fork_finished_by_recovery_has_only_its_stream_tokens(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = apart(root)
    _batch(main, "s", "1")
    with monkeypatch.context() as patch:
        patch.setattr(branch_lifecycle, "publish_name", lambda *_: _fail())
        patch.setattr(intents, "retire", lambda *_: None)
        with pytest.raises(StorageError):
            create_branch(main.store, "f", main)
    for one in (root / layout.BRANCHES).rglob("*.manifest"):
        one.unlink()  # cut off before the manifest
    _batch(main, "s", "2")
    assert _overdue(main.store, monkeypatch) == ["finished"]
    assert apart(root, "f").last_known().state.streams == {"s": "1"}


def _fail() -> None:
    raise StorageError("cut off", kind="transient")


def test_stream_tokens_survive_in_sealed_log_chunks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.history import commit_log

    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    main = apart(root)
    first = _batch(main, "s", "1")
    for n in range(2, 9):
        _batch(main, "s", str(n))
    create_branch(main.store, "f", main, commit_id=first)
    assert apart(root, "f").last_known().state.streams == {"s": "1"}
