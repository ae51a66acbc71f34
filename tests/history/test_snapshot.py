"""Snapshots by commit, version, timestamp, or branch and version."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.errors import HistoryReclaimed, InputError, SnapshotNotFound, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.snapshot import load_snapshot
from omnigraph.publish.branch_lifecycle import create_branch
from omnigraph.values.clock_and_ids import deterministic_ids, new_ulid
from omnigraph.values.table_key import TableKey
from tests.rig.independent_writers import apart, people
from tests.rig.writes import PERSON, init_small, read_branch, write

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def line(tmp_path: Path) -> BranchState:
    """Four commits, at noon of four days."""
    with deterministic_ids(START) as clock:
        store = init_small(tmp_path / "g")
        line = open_branch(store, "main")
        for n in range(3):
            clock.advance(days=1)
            write(line, people(1, n))
    return line


def _count(line: BranchState, at: str | int | datetime | None) -> int:
    return len(read_branch(line, at)[PERSON])


def test_version_number_selects_its_state(line: BranchState) -> None:
    assert [_count(line, n) for n in (1, 2, 3, 4)] == [0, 1, 2, 3]
    for version in (0, 5, -1):
        with pytest.raises(SnapshotNotFound):
            load_snapshot(line.store, line, version)


def test_timestamp_selects_the_last_commit_before_it(line: BranchState) -> None:
    assert [_count(line, START + timedelta(days=n)) for n in (0, 1, 2, 3, 400)] == [0, 1, 2, 3, 3]
    assert _count(line, START + timedelta(days=2, microseconds=-1)) == 1
    with pytest.raises(SnapshotNotFound):
        load_snapshot(line.store, line, START - timedelta(seconds=1))
    with pytest.raises(InputError):
        load_snapshot(line.store, line, datetime(2030, 1, 2))


def test_commit_reads_the_same_from_every_branch(line: BranchState) -> None:
    f = create_branch(line.store, "f", line)
    made = write(f, people(1, 9))
    assert made is not None
    assert _count(line, made.id) == 4
    assert load_snapshot(line.store, line, made.id).branch == "f"
    for text in ("nonsense", made.id.lower(), "manifest:main", "manifest::v1"):
        with pytest.raises(InputError):
            load_snapshot(line.store, line, text)
    with pytest.raises(SnapshotNotFound):
        load_snapshot(line.store, line, new_ulid())


def test_branch_and_version_select_a_snapshot(line: BranchState) -> None:
    f = create_branch(line.store, "f", line)
    write(f, people(1, 9))
    assert _count(line, "manifest:f:v1") == 3
    assert _count(line, "manifest:f:v2") == 4
    assert _count(line, "manifest:main:v2") == 1


def test_old_versions_of_the_manifest_are_not_needed(line: BranchState) -> None:
    from tests.rig.independent_writers import version_file

    for version in (1, 2, 3):
        version_file(line, version).unlink()
    assert [_count(apart(line.store.root.path), n) for n in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_swept_table_version_is_reported_as_reclaimed(line: BranchState) -> None:
    past = load_snapshot(line.store, line, 2).tables[PERSON]
    place = Path(line.store.root.path, past.location, "_versions")
    (place / f"d{past.lance_version}.manifest").unlink()
    fresh = apart(line.store.root.path)
    with pytest.raises(HistoryReclaimed):
        load_snapshot(fresh.store, fresh, 2).table(PERSON)
    assert _count(fresh, 3) == 2


def test_a_missing_table_of_the_newest_state_is_damage(line: BranchState) -> None:
    now = load_snapshot(line.store, line).tables[PERSON]
    place = Path(line.store.root.path, now.location, "_versions")
    (place / f"d{now.lance_version}.manifest").unlink()
    fresh = apart(line.store.root.path)
    with pytest.raises(StorageError) as caught:
        load_snapshot(fresh.store, fresh).table(PERSON)
    assert caught.value.kind == "not_found"
    with pytest.raises(InputError, match="unknown node type 'Nobody'"):
        load_snapshot(fresh.store, fresh).table(TableKey("node:Nobody"))


def test_snapshot_carries_its_schema(line: BranchState) -> None:
    shown = load_snapshot(line.store, line, 2)
    assert "node Person" in shown.schema.source
    assert shown.schema == load_snapshot(apart(line.store.root.path).store, line).schema
