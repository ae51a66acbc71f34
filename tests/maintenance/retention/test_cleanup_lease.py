"""The lease of a cleanup: a live one keeps it, a killed one loses it within a minute."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ConcurrentCommit
from omnigraph.history.branches import open_branch
from omnigraph.maintenance.check import check_graph
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.executors.protocol import VersionKey
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.claim import hold_claim
from omnigraph.maintenance.retention.collect_garbage import cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.effects import Effects
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.scan import scan
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.transfer import VersionFiles, version_files
from tests.rig.independent_writers import apart, once
from tests.rig.writes import PERSON, append, init_small, overwrite, plan, read_branch, rewrite, write

POLICY = RetentionPolicy(keep=1, grace=timedelta())
SECOND = timedelta(seconds=1)
_SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A graph whose past a cleanup would remove."""
    made = init_small(str(tmp_path / "g"))
    line = open_branch(made, "main")
    for n in range(3):
        write(line, append({f"k{n}": n}))
        write(line, rewrite())
    return made


def claimed_at(store: Store) -> datetime:
    """When the claim was last renewed, by the clock of the store."""
    (found,) = [one for one in store.objects.list("__gc") if one.name == claim.CLAIM_NAME]
    return found.modified


def owner(store: Store) -> Any:
    return (store.objects.read_json(claim.CLAIM_NAME) or {}).get("run")


def test_a_claim_is_taken_over_after_a_minute_without_renewal(store: Store) -> None:
    store.objects.create_json(claim.CLAIM_NAME, {"run": "killed"})
    minute = claimed_at(store) + timedelta(seconds=60)
    refused = pytest.raises(ConcurrentCommit, match="another cleanup is running")
    with refused as refusal, hold_claim(store, "early", minute):
        pass
    assert "60 seconds" in (refusal.value.hint or "")
    with hold_claim(store, "next", minute + SECOND):
        assert owner(store) == "next"
    assert owner(store) is None


def test_a_live_cleanup_renews_its_claim(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "CLAIM_RENEWAL_SECONDS", 0.01)
    path = Path(store.root.path, claim.CLAIM_NAME)
    with hold_claim(store, "long", claimed_now(store)) as mine:
        os.utime(path, (0, 0))  # as if the work had taken years since the last renewal
        while path.stat().st_mtime == 0:
            threading.Event().wait(0.01)
        mine.check()
        assert owner(store) == "long"
        with pytest.raises(ConcurrentCommit), hold_claim(store, "other", claimed_at(store) + SECOND):
            pass


def claimed_now(store: Store) -> datetime:
    """Any time will do: nobody holds the claim."""
    assert owner(store) is None
    return datetime.min


def test_lost_claim_is_neither_renewed_nor_released(store: Store) -> None:
    with hold_claim(store, "suspended", claimed_now(store)) as mine:
        store.objects.write_lease(claim.CLAIM_NAME, {"run": "other"})
        mine.renew()
        with pytest.raises(ConcurrentCommit, match="took over") as refusal:
            mine.check()
        assert refusal.value.effect == "unknown"
    assert owner(store) == "other"


def test_a_quick_cleanup_sends_no_request_for_its_lease(store: Store) -> None:
    with store.effects.recording() as effects:
        assert cleanup(store, POLICY).old_versions_removed
    assert [one for one in effects if one.kind == "renew"] == []


DECIDED, REMOVING = "object __gc/", "remove nodes/"  # how the effect before a signal begins


class Signalled(Effects):
    """Effects of a process that sends itself a signal behind one of them."""

    def __init__(self, number: int, behind: str) -> None:
        super().__init__()
        self.number, self.behind, self.awake = number, behind, False
        self.late: list[str] = []

    def run(self, kind: Any, target: str, action: Callable[[], Any]) -> Any:
        """Do one effect, and note those after the signal."""
        if self.awake:
            self.late.append(f"{kind} {target}")
        result = super().run(kind, target, action)
        told = f"{kind} {target}"
        if told.startswith(self.behind) and not told.endswith(("claim", ".condemned")):
            self.behind, self.awake = "nothing", True
            os.kill(os.getpid(), self.number)
        return result


def clean_signalled(root: str, number: int, behind: str, report: str) -> None:
    """Clean in a process of its own, which stops or dies on the way."""
    claim.TRUSTED_SECONDS = -1.0  # as if it had been stopped for a minute
    effects, outcome = Signalled(number, behind), "done"
    try:
        cleanup(open_store(root, effects=effects, durability="os"), POLICY)
    except ConcurrentCommit as error:
        outcome = error.message
    Path(report).write_text("\n".join([outcome, *effects.late]))


def begin(store: Store, number: int, behind: str, report: Path) -> Any:
    args = (store.root.path, number, behind, str(report))
    process = _SPAWN.Process(target=clean_signalled, args=args)
    process.start()
    return process


def test_a_killed_cleanup_is_finished_by_the_next_after_its_lease(store: Store, tmp_path: Path) -> None:
    process = begin(store, signal.SIGKILL, DECIDED, tmp_path / "report")
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(ConcurrentCommit), hold_claim(store, "early", claimed_at(store) + SECOND):
        pass
    path = Path(store.root.path, claim.CLAIM_NAME)
    aged = path.stat().st_mtime - 61
    os.utime(path, (aged, aged))
    assert cleanup(store, POLICY).old_versions_removed
    assert store.objects.list("__gc") == []


@pytest.mark.parametrize(
    ("behind", "reason"), [(DECIDED, "another cleanup completed this run"), (REMOVING, "took over")]
)
def test_suspended_cleanup_removes_nothing_after_a_takeover(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: str, reason: str
) -> None:
    report = tmp_path / "report"
    process = begin(store, signal.SIGSTOP, behind, report)
    os.waitpid(process.pid, os.WUNTRACED)
    with monkeypatch.context() as patch:
        patch.setattr(claim, "CLAIM_LEASE", -1000 * SECOND)
        assert cleanup(store, POLICY).old_versions_removed
    write(open_branch(store, "main"), append({"later": 1}))
    os.kill(process.pid, signal.SIGCONT)
    process.join()
    outcome, *late = report.read_text().splitlines()
    assert reason in outcome
    assert [one for one in late if not one.partition(" ")[2].startswith("__gc/")] == []
    assert [one for one in check_graph(store).findings if one.kind != "endpoint"] == []


@dataclass(frozen=True)
class Overtaken(LocalExecutor):
    """A collector beside which others write and clean between its listing and its mark."""

    reads_ahead: bool = True
    write: Callable[[], object] = lambda: None
    clean: Callable[[], object] = lambda: None

    def list_files(self, store: Store, places: Sequence[str]) -> Iterable[ListedObject]:
        """List, then let others write."""
        listed = [*LocalExecutor.list_files(self, store, places)]
        self.write()
        return listed

    def read_versions(self, store: Store, versions: Sequence[VersionKey]) -> dict[VersionKey, VersionFiles]:
        """Read, then let another collector remove the past."""
        found = {one: version_files(store, *one) for one in versions}
        self.clean()
        return found


def test_files_removed_by_another_collector_are_not_damage(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "CLAIM_LEASE", -1000 * SECOND)
    other = open_store(store.root.path, durability="os")

    def write_twice() -> None:
        for name in ("a", "b"):
            write(open_branch(other, "main"), append({name: 1}))
            write(open_branch(other, "main"), rewrite())

    hands = Overtaken(write=once(write_twice), clean=once(lambda: cleanup(other, POLICY)))
    assert not cleanup(store, RetentionPolicy(keep=4, grace=timedelta()), executor=hands).failed
    assert [one for one in check_graph(store).findings if one.kind != "endpoint"] == []


def test_write_whose_base_was_removed_is_restarted(store: Store) -> None:
    """Only a cleanup without grace is that quick, or a writer that was suspended for long."""
    line = apart(store.root.path)

    def replace_base() -> None:
        write(open_branch(store, "main"), overwrite({"new": 1}))
        assert cleanup(store, POLICY).old_versions_removed

    happens = once(replace_base)

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        table = txn.table(PERSON)
        happens()
        scan(table, ["id"])
        return plan(txn, append({"mine": 2}))

    assert publish(line, prepare) is not None
    assert read_branch(line)[PERSON] == [("mine", 2), ("new", 1)]
