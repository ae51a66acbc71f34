"""Writes occasionally trim old manifest versions of their branch and never fail because of it."""

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.history.branches import open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import read_manifest
from omnigraph.maintenance.retention.collect_garbage import cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish import trim_versions
from omnigraph.publish.branch_lifecycle import create_branch
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import Store, open_store
from tests.rig.invariants import check_invariants
from tests.rig.writes import append, init_small, line_at, read_branch, update, write

EVERY = 8


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every eighth publish, whatever their age."""
    monkeypatch.setattr(trim_versions, "TRIM_INTERVAL", EVERY)
    monkeypatch.setattr(trim_versions, "DEFAULT_GRACE", timedelta(seconds=-1))


def states(store: Store, place: str = "__manifest") -> dict[str, int]:
    """How many files a manifest has, by kind."""
    names = [one.name.removeprefix(f"{place}/") for one in store.objects.list(place)]
    kinds = ("_versions", "data", "_transactions")
    return {kind: sum(name.startswith(f"{kind}/") for name in names) for kind in kinds}


def test_old_manifest_versions_are_trimmed_with_their_files(tmp_path: Path, eager: None) -> None:
    store = init_small(tmp_path / "g")
    line = open_branch(store, "main")
    reader = line_at(tmp_path / "g")
    commits = [write(line, append({f"r{n}": n})) for n in range(3 * EVERY)]
    held = states(store)
    assert max(held.values()) <= EVERY + 2, held
    assert held["data"] == held["_versions"]
    rows = read_branch(line)
    assert len(rows["node:Person"]) == 3 * EVERY
    assert read_branch(reader) == rows, "who has an old state reloads"
    state = read_manifest(open_store(str(tmp_path / "g"))).state
    assert len(list(HistoryLog(store, state).first_parents(state.head.commit_id))) == 3 * EVERY + 1
    past = commits[1]
    assert past is not None
    assert len(read_branch(line, past.id)["node:Person"]) == 2, "the log holds all history"
    check_invariants(tmp_path / "g", acknowledged=[one for one in commits if one is not None])


def test_branches_are_trimmed_by_their_own_writes(tmp_path: Path, eager: None) -> None:
    store = init_small(tmp_path / "g")
    main = open_branch(store, "main")
    side = create_branch(store, "side", main)
    before = states(store)
    for n in range(2 * EVERY):
        write(side, append({f"r{n}": n}))
    assert states(store) == before
    assert states(store, f"__branches/{side.ulid}")["_versions"] <= EVERY + 1
    check_invariants(tmp_path / "g")


def test_young_manifest_versions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trim_versions, "TRIM_INTERVAL", EVERY)
    store = init_small(tmp_path / "g")
    line = open_branch(store, "main")
    for n in range(2 * EVERY):
        write(line, append({f"r{n}": n}))
    assert states(store)["_versions"] == 2 * EVERY + 1


def test_number_of_young_manifest_versions_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trim_versions, "TRIM_INTERVAL", EVERY)
    monkeypatch.setattr(trim_versions, "MAX_LOCAL_VERSIONS", EVERY)
    store = init_small(tmp_path / "g")
    line, reader = open_branch(store, "main"), line_at(tmp_path / "g")
    made = [write(line, append({f"r{n}": n})) for n in range(5 * EVERY)]
    held = states(store)
    assert EVERY <= held["_versions"] == held["data"] < 2 * EVERY
    assert read_branch(reader) == read_branch(line), "who has an old state reloads"
    check_invariants(tmp_path / "g", acknowledged=[one for one in made if one is not None])


@pytest.mark.parametrize("how", ["before", "after"])
def test_failed_trim_does_not_fail_the_write(tmp_path: Path, eager: None, how: str) -> None:
    for at in (7, 9, 14):
        store = init_small(tmp_path / f"g{at}")
        line = open_branch(store, "main")
        for n in range(EVERY - 2):
            write(line, append({f"r{n}": n}))
        with store.effects.recording() as done, store.effects.failing(Fault(at, how)):  # type: ignore[arg-type]
            made = write(line, update({"r1": 7}))
        assert made is not None
        assert made.manifest_version == EVERY
        assert any(one.kind == "remove" for one in done)
        for n in range(EVERY):
            write(line, append({f"s{n}": n}))
        assert dict(read_branch(line)["node:Person"])["r1"] == 7
        check_invariants(tmp_path / f"g{at}", acknowledged=[made])


def test_cleanup_removes_files_of_an_interrupted_trim(tmp_path: Path, eager: None) -> None:
    store = init_small(tmp_path / "g")
    line = open_branch(store, "main")
    for n in range(EVERY - 2):
        write(line, append({f"r{n}": n}))
    stop = Fault(12, "before", KeyboardInterrupt())
    with store.effects.failing(stop), pytest.raises(KeyboardInterrupt) as told:
        write(line, append({"last": 1}))
    assert "was written" in told.value.__notes__[0]
    assert states(store)["data"] > states(store)["_versions"]
    cleanup(store, RetentionPolicy(keep=100, grace=timedelta()))
    assert states(store)["data"] == states(store)["_versions"] == 1
    assert "last" in dict(read_branch(line_at(tmp_path / "g"))["node:Person"])
    check_invariants(tmp_path / "g")
