"""Set-aside operations: retried once the cause is fixed, or dropped for good."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import BranchNotFound, ConcurrentCommit, NotFound, OmnigraphError, ReadOnlyError, StorageError
from omnigraph.history import refs
from omnigraph.history.manifest import create_manifest
from omnigraph.publish import branch_lifecycle, long_operations
from omnigraph.publish import intent as intents
from omnigraph.publish.intent import Intent
from omnigraph.publish.rename import finish_rename
from omnigraph.storage import layout
from omnigraph.storage.store import open_store
from tests.crash.verbs import make_start, overdue
from tests.publish.recovery.bad_records import (
    BROKEN,
    EVERY,
    ID,
    contents,
    decided,
    encode,
    exercise,
    kinds,
    parts_left,
    put,
    record,
    recover_now,
)
from tests.rig.invariants import check_invariants
from tests.rig.writes import PERSON, line_at, read_branch


def staged_files(root: Path) -> list[Path]:
    """The files that the confirmed operation of a graph has staged."""
    line = line_at(root)
    (pending,) = intents.list_intents(line.store).pending
    facts = intents.read_confirmation(line.store, pending.intent) or {}
    return [root / name for one in facts["writes"].values() for name in one["files"]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with a confirmed load whose owner is gone."""
    return Path(shutil.copytree(make_start("confirmed", tmp_path), tmp_path / "copy"))


def test_load_with_a_missing_file_is_published_once_the_file_is_restored(root: Path) -> None:
    lost = staged_files(root)[0]
    body = lost.read_bytes()
    lost.unlink()
    line = line_at(root)
    before = read_branch(line)
    assert recover_now(line.store) == ["set_aside"]
    assert read_branch(line) == before, "a state that names a lost file was published"
    graph = omnigraph.open(root, durability="os")
    (waiting,) = graph.maintenance.operations.set_aside()
    assert lost.name in waiting.error
    with pytest.raises(StorageError, match="missing"):
        graph.maintenance.operations.retry(waiting.id)
    assert [one.id for one in graph.maintenance.operations.set_aside()] == [waiting.id]
    lost.write_bytes(body)
    outcome = graph.maintenance.operations.retry(waiting.id)
    assert outcome is not None
    assert outcome.kind == "finished"
    assert ("new", 7) in read_branch(line)[PERSON]
    assert graph.maintenance.operations.set_aside() == []
    check_invariants(root)


def test_cleanup_keeps_files_of_a_set_aside_load_until_it_is_dropped(root: Path) -> None:
    files = staged_files(root)
    hidden = files[0].with_name("hidden")
    files[0].rename(hidden)
    line = line_at(root)
    recover_now(line.store)
    graph = omnigraph.open(root, durability="os")
    report = graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
    assert any("set aside" in one for one in report.held_by)
    hidden.rename(files[0])
    assert all(one.exists() for one in files)
    (waiting,) = graph.maintenance.operations.set_aside()
    assert graph.maintenance.operations.drop(waiting.id).kind == "dropped"
    graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
    assert not any(one.exists() for one in files)
    assert [one.kind for one in graph.maintenance.operations.recoveries()] == ["set_aside", "dropped"]
    check_invariants(root)


def test_late_owner_of_a_dropped_operation_publishes_nothing(root: Path) -> None:
    line = line_at(root)
    (pending,) = intents.list_intents(line.store).pending
    assert intents.decide(line.store, pending.intent, "publish") == "publish"
    lost = staged_files(root)[0]
    body = lost.read_bytes()
    lost.unlink()
    recover_now(line.store)
    before = read_branch(line)
    omnigraph.open(root, durability="os").maintenance.operations.drop(pending.id)
    lost.write_bytes(body)
    with pytest.raises(OmnigraphError):
        long_operations.finish_confirmed(line, pending.intent, lambda _: pytest.fail("it prepares again"))
    assert read_branch(line) == before
    assert line.refresh().state.tail[-1].operation == "refused"


@pytest.mark.parametrize("name", EVERY)
def test_every_poisoned_operation_can_be_dropped(graph: Graph, name: str) -> None:
    before = contents(graph)
    put(graph._handle.store, EVERY[name](graph))
    if recover_now(graph._handle.store) == ["refused"]:
        return
    with pytest.raises(Exception, match=r".+"):
        graph.maintenance.operations.retry(ID)
    assert [one.id for one in graph.maintenance.operations.set_aside()] == [ID]
    assert graph.maintenance.operations.drop(ID).kind == "dropped"
    assert parts_left(graph._handle.store) == set()
    assert kinds(graph) == ["set_aside", "dropped"]
    assert contents(graph) == before
    assert graph.maintenance.operations.set_aside() == []
    assert graph.maintenance.check(quick=True).findings == ()
    with pytest.raises(NotFound, match="no set-aside operation"):
        graph.maintenance.operations.drop(ID)


def _mend_record(graph: Graph, mended: dict[str, Any], part: str = "json") -> None:
    Path(graph.uri, layout.intent_name(ID, part)).write_bytes(encode(mended))


@pytest.mark.parametrize(
    ("operation", "shown"),
    [
        ("branch_create", lambda g: "fresh" in g.branches),
        ("tag_create", lambda g: [one.name for one in g.tags.values()] == ["fresh"]),
        ("branch_rename", lambda g: list(g.branches) == ["main", "other"]),
    ],
)
def test_restored_record_is_settled_by_a_retry(graph: Graph, operation: str, shown: Callable[[Graph], bool]) -> None:
    whole = record(graph, operation)
    poison = decided(whole)
    poison.parts["json"] = poison.parts["json"][:60]
    put(graph._handle.store, poison)
    recover_now(graph._handle.store)
    _mend_record(graph, whole)
    assert recover_now(graph._handle.store) == [], "only a retry takes it up again"
    outcome = graph.maintenance.operations.retry(ID)
    assert outcome is not None
    assert outcome.kind == "finished"
    assert shown(graph)
    assert parts_left(graph._handle.store) == set()
    assert exercise(graph.uri).maintenance.operations.set_aside() == []


def test_retried_creation_from_a_reclaimed_commit_creates_no_branch(graph: Graph) -> None:
    past = graph.head.id
    graph.insert("Person", {"name": "new"})
    whole = record(graph, "branch_create", base_commit=past)
    poison = decided(whole)
    poison.parts["json"] = b"?"
    put(graph._handle.store, poison)
    graph.branches.delete("side", force=True)
    recover_now(graph._handle.store)
    graph.maintenance.optimize()
    graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
    _mend_record(graph, whole)
    try:
        graph.maintenance.operations.retry(ID)
    except OmnigraphError:
        assert [one.id for one in graph.maintenance.operations.set_aside()] == [ID]
    else:
        assert graph.checkout("fresh").nodes("Person").ids() == ["ada", "bob"]
    assert omnigraph.open(graph.uri, durability="os").maintenance.check()


def test_creation_that_was_carried_out_is_not_undone_by_a_drop(graph: Graph) -> None:
    put(graph._handle.store, decided(record(graph, "branch_create")))
    recover_now(graph._handle.store)
    ulid = graph.branches["fresh"].ulid
    # The record comes back damaged after a power loss, and is restored after it was set aside.
    poison = decided(record(graph, "branch_create", creates=ulid))
    poison.parts["json"] = b""
    put(graph._handle.store, poison)
    recover_now(graph._handle.store)
    _mend_record(graph, record(graph, "branch_create", creates=ulid))
    assert graph.maintenance.operations.drop(ID).kind == "finished"
    assert graph.checkout("fresh").nodes("Person").ids() == ["ada", "bob"]


def test_late_owner_of_a_dropped_creation_finds_it_closed(graph: Graph) -> None:
    store = graph._handle.store
    facts = record(graph, "branch_create")
    intent = Intent.from_json(facts)
    state = graph._handle.branch_state.last_known().state
    create_manifest(store, intent.created_ulid or "", branch_lifecycle.forked_state(intent, state, 1))
    poison = decided(facts)
    poison.parts["json"] = b""
    put(store, poison)
    recover_now(store)
    _mend_record(graph, facts)
    assert graph.maintenance.operations.drop(ID).kind == "dropped"
    branch_lifecycle.publish_name(store, intent, 1)  # what the owner does when it wakes
    with pytest.raises(BranchNotFound):
        graph.checkout("fresh")
    assert "fresh" not in graph.branches


def test_late_owner_of_a_dropped_rename_leaves_the_old_name(graph: Graph) -> None:
    facts = record(graph, "branch_rename")
    poison = decided(facts)
    poison.parts["json"] = b""
    put(graph._handle.store, poison)
    recover_now(graph._handle.store)
    _mend_record(graph, facts)
    assert graph.maintenance.operations.drop(ID).kind == "dropped"
    with pytest.raises(BranchNotFound):
        finish_rename(graph._handle.store, Intent.from_json(facts))
    assert list(graph.branches) == ["main", "side"]
    assert graph.checkout("side").nodes("Person").ids() == ["ada", "bob", "cid"]


def test_drop_waits_for_a_store_that_does_not_answer(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    put(graph._handle.store, BROKEN["load with a torn plan"](graph))
    recover_now(graph._handle.store)

    def busy(*_: object) -> None:
        raise ConcurrentCommit("the branch is busy")

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.publish.withdraw_operation.publish_refusal", busy)
        with pytest.raises(ConcurrentCommit):
            graph.maintenance.operations.drop(ID)
    assert [one.id for one in graph.maintenance.operations.set_aside()] == [ID]
    assert graph.maintenance.operations.drop(ID).kind == "dropped"


def test_only_set_aside_operations_can_be_retried_or_dropped(graph: Graph) -> None:
    intents.arm(graph._handle.store, Intent.from_json(record(graph)))  # its owner lives
    for decide in (graph.maintenance.operations.retry, graph.maintenance.operations.drop):
        with pytest.raises(NotFound):
            decide(ID)
        with pytest.raises(NotFound):
            decide("nothing")
    reader = omnigraph.open(graph.uri, read_only=True)
    with pytest.raises(ReadOnlyError):
        reader.maintenance.operations.drop(ID)
    assert parts_left(graph._handle.store) == {"json"}


def test_two_processes_set_the_same_operation_aside_once(graph: Graph) -> None:
    put(graph._handle.store, BROKEN["load whose plan is gone"](graph))
    stores = [open_store(graph.uri, durability=one) for one in ("os", "fsync")]
    (pending,) = intents.list_intents(stores[0]).pending
    from omnigraph.publish.set_aside import set_operation_aside

    for store in stores:
        assert set_operation_aside(store, pending, StorageError("broken", kind="permanent")) is not None
    assert kinds(graph) == ["set_aside"]
    # A third one has seen it before it was dropped.
    graph.maintenance.operations.drop(ID)
    assert set_operation_aside(stores[0], pending, StorageError("broken", kind="permanent")) is None
    assert parts_left(graph._handle.store) == set()


def test_recovery_works_beside_a_damaged_audit_record(graph: Graph) -> None:
    put(graph._handle.store, decided(record(graph, "branch_create")))
    Path(graph.uri, "_audit").mkdir(exist_ok=True)
    Path(graph.uri, f"_audit/{ID}.json").write_bytes(b"?")
    recover_now(graph._handle.store)
    assert "fresh" in graph.branches
    assert parts_left(graph._handle.store) == set()
    assert refs.find_open_ref(graph._handle.store, "fresh") is not None
    with overdue():
        omnigraph.open(graph.uri, durability="os")
