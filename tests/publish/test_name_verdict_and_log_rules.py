"""Rules about names, verdicts and logs, each tested with the rule and without it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api import opening as graphs
from omnigraph.errors import AlreadyExists, ConcurrentCommit, OmnigraphError
from omnigraph.history import commit_log as logs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.state import GraphState, to_rows
from omnigraph.publish import branch_lifecycle, idempotency
from omnigraph.publish import intent as intents
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage import layout, torn_versions
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.store import Store, open_store
from tests.rig.independent_writers import apart, once, people, version_file
from tests.rig.writes import PERSON, append, check_invariants, init_small, read_branch, write, write_long


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    return tmp_path / "g"


def _ids(line: BranchState) -> list[str]:
    line.reload()
    return [name for name, _ in read_branch(line)[PERSON]]


# What is created carries a nonce, because a store may report our own object after a lost answer.


def _create_with_a_lost_answer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch whose name is taken, and the store says that it was taken before."""
    real, lost = LocalBackend.create, [True]

    def create(self: LocalBackend, name: str, body: bytes) -> bool:
        made = real(self, name, body)
        if name.startswith(layout.REFS) and lost:
            lost.clear()
            return False
        return made

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "create", create)
        main = apart(root)
        create_branch(main.store, "f", main)


def test_lost_response_to_a_name_creation_is_recognised_as_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _create_with_a_lost_answer(root, monkeypatch)
    assert list_branches(open_store(str(root))) == ["f", "main"]
    check_invariants(root)


def test_without_a_nonce_the_winner_would_see_a_conflict(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ControlObjects.read_json

    def forgetful(self: ControlObjects, name: str) -> dict[str, Any] | None:
        facts = real(self, name)
        return {k: v for k, v in facts.items() if k != "nonce"} if facts else facts

    with monkeypatch.context() as faulty:
        faulty.setattr(ControlObjects, "read_json", forgetful)
        with pytest.raises(AlreadyExists):
            _create_with_a_lost_answer(root, monkeypatch)
    assert "f" in list_branches(open_store(str(root)))


# After a verdict the intent is looked for again.


def _discarded_while_its_owner_slept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of an operation is discarded and swept right before its owner asks for the verdict."""
    real, line = intents.decide, apart(root)

    def discard() -> None:
        store = open_store(str(root), durability="os")
        (one,) = intents.list_intents(store).pending
        assert real(store, one.intent, "discard") == "discard"
        intents.retire(store, one.intent)
        for path in root.glob("nodes/*/data/*.lance"):
            path.unlink()

    asleep = once(discard)

    def decide(*args: Any) -> Any:
        asleep()
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(intents, "decide", decide)
        write_long(line, append({"big": 1}))


def test_verdict_on_a_discarded_operation_is_void(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConcurrentCommit, match="abandoned"):
        _discarded_while_its_owner_slept(root, monkeypatch)
    assert _ids(apart(root)) == []
    check_invariants(root)


def test_without_rechecking_the_intent_a_discarded_operation_would_be_published(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ControlObjects.read

    def blind(self: ControlObjects, name: str) -> bytes | None:
        found = real(self, name)
        looked_for = name.startswith(layout.INTENTS) and name.endswith(".json")
        return b"{}" if looked_for and found is None else found

    monkeypatch.setattr(ControlObjects, "read", blind)
    _discarded_while_its_owner_slept(root, monkeypatch)
    with pytest.raises((OSError, ValueError, OmnigraphError)):
        _ids(apart(root))


# A branch holds all of its log itself, and what is history is decided by reachability.


def _sweep_branch(root: Path, ulid: str) -> None:
    """Delete the whole manifest dataset of a deleted branch."""
    for path in (root / layout.manifest_directory(ulid)).rglob("*"):
        if path.is_file():
            path.unlink()


def _fork_and_sweep_the_source(root: Path) -> tuple[BranchState, list[str]]:
    """Branch g from a commit of f, then f and all of its dataset go; gives g and what it held."""
    main = apart(root)
    write(main, append({"base": 0}))
    create_branch(main.store, "f", main)
    f = apart(root, "f")
    for n in range(5):
        write(f, people(1, n))
    state = f.last_known().state
    line = [one.id for one in HistoryLog(f.store, state).first_parents(state.head.commit_id)]
    create_branch(f.store, "g", f, commit_id=line[2])
    delete_branch(open_store(str(root), durability="os"), "f")
    _sweep_branch(root, f.ulid)
    return apart(root, "g"), line[2:]


def test_fork_keeps_the_history_of_its_deleted_source(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    g, line = _fork_and_sweep_the_source(root)
    log = HistoryLog(g.store, g.last_known().state)
    assert [one.id for one in log.first_parents(line[0])] == line
    assert [len(read_branch(g, one)[PERSON]) for one in line] == [4, 3, 2, 1, 0]
    check_invariants(root)


def test_fork_without_its_own_log_would_lose_its_history(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = branch_lifecycle.forked_state

    def bare(intent: intents.Intent, state: GraphState, number: int) -> GraphState:
        made = real(intent, state, number)
        return replace(made, tail=(), chunks=()) if intent.facts["name"] == "g" else made

    monkeypatch.setattr(branch_lifecycle, "forked_state", bare)
    g, line = _fork_and_sweep_the_source(root)
    with pytest.raises(OmnigraphError):
        read_branch(g, line[1])


def _repeat_on_a_fork(root: Path) -> list[str]:
    """A keyed write after the fork commit, then the same key on the fork."""
    main, signature = apart(root), CommitMetadata(idempotency_key="k", request_hash="r")
    write(main, append({"base": 0}))
    old = main.last_known().state.head.commit_id
    write(main, append({"later": 1}), signature=signature)
    create_branch(main.store, "g", main, commit_id=old)
    write(apart(root, "g"), append({"later": 1}), signature=signature)
    return _ids(apart(root, "g"))


def test_unreachable_commit_in_a_shared_chunk_is_not_history(root: Path) -> None:
    assert _repeat_on_a_fork(root) == ["base", "later"]


def test_key_search_by_presence_would_drop_a_write_on_the_fork(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Whole(HistoryLog):
        """A log that takes all it holds for history."""

        def first_parents(self, _: str) -> Iterator[Commit]:
            return iter(list(self._commits_by_id.values())[::-1])

    monkeypatch.setattr(idempotency, "HistoryLog", Whole)
    rows = _repeat_on_a_fork(root)
    assert rows == ["base"]


# A torn version is read once more under the lock before it is set aside.


def _second_opener(root: Path) -> Commit:
    """Two openers saw version 3 torn; the second moves when that number was published again."""
    line = apart(root)
    for n in range(2):
        write(line, people(1, n))
    store = open_store(str(root))
    version_file(line, 3).write_bytes(b"")
    assert torn_versions.find_torn_version(store, layout.MANIFEST) == 3
    graphs.open(root)
    made = write(apart(root), append({"new": 1}))
    assert made is not None
    assert made.manifest_version == 3
    torn_versions.set_aside_version(store, layout.MANIFEST, 3, lambda _: None)
    return made


def test_republished_version_is_not_set_aside(root: Path) -> None:
    check_invariants(root, acknowledged=[_second_opener(root)])


def test_without_rereading_an_acknowledged_version_would_be_set_aside(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = torn_versions.set_aside_version

    def hasty(store: Store, location: str, version: int, *rest: Any) -> str | None:
        with monkeypatch.context() as faulty:
            faulty.setattr(torn_versions, "find_torn_version", lambda *_: version)
            return real(store, location, version, *rest)

    monkeypatch.setattr(torn_versions, "set_aside_version", hasty)
    made = _second_opener(root)
    state = apart(root).reload().state
    assert HistoryLog(apart(root).store, state).find(made.id) is None


# A tail is bounded by its bytes, too.


def _state_bytes(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The largest state while commits with long messages are published."""
    line, largest = apart(root), 0
    for n in range(24):
        write(line, people(1, n), signature=CommitMetadata(message="x" * 8192))
        largest = max(largest, to_rows(line.last_known().state, 1).nbytes)
    check_invariants(root)
    return largest


def test_tail_size_is_bounded_after_large_commits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _state_bytes(root, monkeypatch) < 2 * logs.MAX_TAIL_BYTES


def test_tail_bounded_by_commit_count_alone_would_stay_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = 2 * logs.MAX_TAIL_BYTES
    monkeypatch.setattr(logs, "MAX_TAIL_BYTES", 1 << 40)
    assert _state_bytes(root, monkeypatch) > bound
