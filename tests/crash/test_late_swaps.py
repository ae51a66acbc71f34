"""A timed-out swap may still land, so failure is reported only once it no longer can."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import BranchNotFound, InitializationIndeterminate, StorageError
from omnigraph.history import branches
from omnigraph.history.branches import list_branches
from omnigraph.history.manifest import LoadedManifest, read_manifest, swap_state
from omnigraph.history.state import GraphState
from omnigraph.publish import closing_version
from omnigraph.publish import publish as publishing
from omnigraph.publish import swap as swapping
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.storage import root as roots
from omnigraph.storage.effects import Fault
from omnigraph.storage.manifest_cell import SwapOutcomeUnknown
from omnigraph.storage.store import Store, open_store
from tests.rig.independent_writers import apart
from tests.rig.invariants import check_invariants
from tests.rig.plugin import S3
from tests.rig.proxy_faults import Rule
from tests.rig.timeouts import PATIENCE
from tests.rig.writes import CITY, PERSON, SCHEMA, append, init_small, line_at, read_graph, write

SWAP, STATE = "*__manifest/_versions/*", "*__manifest/data/*"
CLOSE, CLOSING = "*__branches/*/_versions/*", "*__branches/*/data/*"
Held = tuple[Store, LoadedManifest, GraphState]


def people(root: str) -> list[str]:
    return [name for name, _ in read_graph(root)["main"][PERSON]]


@pytest.fixture
def root(tmp_path: Path) -> str:
    init_small(tmp_path / "g")
    return str(tmp_path / "g")


@pytest.fixture
def on_its_way(monkeypatch: pytest.MonkeyPatch) -> list[Held]:
    """The first swap is sent and gets no answer; the test decides when it arrives."""
    sent: list[Held] = []

    def swap(store: Store, base: LoadedManifest, state: GraphState) -> LoadedManifest:
        if not sent:
            sent.append((store, base, state))
            raise SwapOutcomeUnknown("timeout") from ValueError("no answer")
        return swap_state(store, base, state)

    monkeypatch.setattr(swapping, "swap_state", swap)
    monkeypatch.setattr(closing_version, "swap_state", swap)
    return sent


def then_fail(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Every later attempt fails before it sends anything."""
    for module in (swapping, closing_version):
        real = vars(module)["swap_state"]
        tried: list[int] = []

        def swap(*args: Any, real: Any = real, tried: list[int] = tried) -> LoadedManifest:
            tried.append(1)
            if len(tried) > 1:
                raise error
            made: LoadedManifest = real(*args)
            return made

        monkeypatch.setattr(module, "swap_state", swap)


def test_write_that_may_still_land_has_unknown_outcome(
    root: str, on_its_way: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    then_fail(monkeypatch, ConnectionRefusedError())
    with pytest.raises(StorageError) as caught:
        write(apart(root), append({"a": 1}))
    assert caught.value.effect == "unknown"
    swap_state(*on_its_way[0])
    assert people(root) == ["a"]


def test_retry_limit_after_a_timed_out_swap_is_reported_as_unknown_outcome(
    root: str, on_its_way: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (publishing, swapping):
        monkeypatch.setattr(module, "MAX_SWAP_ATTEMPTS", 1)
    monkeypatch.setattr(publishing, "MAX_PREPARATIONS", 1)
    with pytest.raises(StorageError) as caught:
        write(apart(root), append({"a": 1}))
    assert caught.value.effect == "unknown"


def test_empty_plan_after_a_timed_out_swap_is_reported_as_unknown_outcome(root: str, on_its_way: list[Held]) -> None:
    line, calls = apart(root), list[int]()
    from omnigraph.publish.write_plan import PublishPlan

    def prepare(txn: Any) -> PublishPlan | None:
        calls.append(1)
        return PublishPlan("touch", gc_epoch=len(calls) - 2) if len(calls) == 1 else None

    with pytest.raises(StorageError) as caught:
        publishing.publish(line, prepare)
    assert (len(calls), caught.value.effect) == (2, "unknown")


def test_write_failed_once_another_commit_took_its_version(
    root: str, on_its_way: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vars(swapping)["swap_state"]

    def overtaken(*args: Any) -> LoadedManifest:
        try:
            made: LoadedManifest = real(*args)
            return made
        except SwapOutcomeUnknown:
            monkeypatch.setattr(swapping, "swap_state", swap_state)
            write(apart(root), append({"other": 1}), (CITY,))
            monkeypatch.setattr(swapping, "swap_state", refusing)
            raise

    def refusing(*_: Any) -> LoadedManifest:
        raise ConnectionRefusedError

    monkeypatch.setattr(swapping, "swap_state", overtaken)
    with pytest.raises(StorageError) as caught:
        write(apart(root), append({"a": 1}))
    assert caught.value.effect == "none"
    assert people(root) == []


def test_write_that_lands_between_two_checks_is_found_once(
    root: str, on_its_way: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of the same process moves the line on to the state that has it."""
    line = apart(root)
    real: Callable[[], LoadedManifest] = line.last_known

    def base() -> LoadedManifest:
        if on_its_way and len(on_its_way) == 1 and looked:
            on_its_way.append(on_its_way[0])
            swap_state(*on_its_way[0])
            line.reload()
        return real()

    looked: list[int] = []
    look = swapping.verify_commit_landed

    def looking(*args: Any) -> bool:
        found = look(*args)
        looked.append(1)
        return found

    monkeypatch.setattr(swapping, "verify_commit_landed", looking)
    monkeypatch.setattr(line, "last_known", base)
    commit = write(line, append({"a": 1}))
    assert commit is not None
    assert people(root) == ["a"]
    check_invariants(root, acknowledged=[commit])


@pytest.mark.parametrize("how", ["before", "after"])
def test_interrupted_write_reports_its_outcome(root: str, how: Any) -> None:
    line = line_at(root)
    fault = Fault(4, how, KeyboardInterrupt())
    with line.store.effects.failing(fault), pytest.raises(KeyboardInterrupt) as caught:
        write(line, append({"a": 1}))
    (note,) = caught.value.__notes__
    assert ("was written" if how == "after" else "may still be written") in note


def test_branch_deletion_that_may_still_land_has_unknown_outcome(
    root: str, on_its_way: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = apart(root)
    create_branch(line.store, "f", line)
    then_fail(monkeypatch, ConnectionRefusedError())
    with pytest.raises(StorageError) as caught:
        delete_branch(line.store, "f")
    assert caught.value.effect == "unknown"
    swap_state(*on_its_way[0])
    assert read_manifest(line.store, on_its_way[0][1].state.head.ulid).state.head.closed


# The same with a real client that gives up waiting: its request arrives, its answer does not.


@pytest.fixture
def impatient(s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    monkeypatch.setitem(roots._DEFAULT_TIMEOUTS, "client_max_retries", "0")
    return s3


def release(s3: S3, late: Rule, until: Callable[[], bool]) -> None:
    """Let a late request go, and wait until the store has it."""
    s3.proxy.heal()
    late.release()
    end = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < end, "it never arrived"
        time.sleep(0.05)


def test_write_that_lands_late_on_s3_has_unknown_outcome(impatient: S3) -> None:
    init_small(impatient.url)
    line = line_at(impatient.url)
    late = impatient.proxy.late("PUT", SWAP)
    impatient.proxy.rules.add(Rule("answer", "PUT", STATE, skip=1, status=403, forward=False, times=None))
    with pytest.raises(StorageError) as caught:
        write(line, append({"a": 1}))
    assert caught.value.effect == "unknown"
    release(impatient, late, lambda: people(impatient.url) == ["a"])


@pytest.mark.full
def test_deletion_that_lands_late_on_s3_has_unknown_outcome(impatient: S3) -> None:
    init_small(impatient.url)
    line = line_at(impatient.url)
    create_branch(line.store, "f", line)
    late = impatient.proxy.late("PUT", CLOSE)
    rule = Rule("answer", "PUT", CLOSING, skip=1, status=403, forward=False, times=None)
    impatient.proxy.rules.add(rule)
    with pytest.raises(StorageError) as caught:
        delete_branch(line.store, "f")
    assert caught.value.effect == "unknown"

    def closed() -> bool:
        try:
            branches.open_branch(open_store(impatient.url), "f")
        except BranchNotFound:
            return True
        return False

    release(impatient, late, closed)
    assert list_branches(open_store(impatient.url)) == ["main"]


def test_init_that_lands_late_on_s3_has_unknown_outcome(impatient: S3) -> None:
    late = impatient.proxy.late("PUT", SWAP)
    with pytest.raises(InitializationIndeterminate) as caught:
        omnigraph.init(impatient.url, SCHEMA)
    assert caught.value.effect == "unknown"
    store = open_store(impatient.url)
    release(impatient, late, lambda: bool(store.objects.list("__manifest/_versions")))
    assert omnigraph.open(impatient.url).head.operation == "init"
