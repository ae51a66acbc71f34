"""Recovery with a missing table version: reported, nothing removed, nothing guessed."""

import shutil
from pathlib import Path

import pytest

from omnigraph.api import opening as graphs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.publish import intent as intents
from tests.crash.verbs import make_start, overdue
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import PERSON, append, line_at, read_branch, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with a confirmed operation whose owner is gone."""
    # A copy: nobody in this process holds anything of it.
    return Path(shutil.copytree(make_start("confirmed", tmp_path), tmp_path / "copy"))


def _version(line: BranchState) -> Path:
    entry = line.refresh().state.tables[PERSON]
    return Path(line.store.root.path, entry.location, "_versions", f"d{entry.lance_version}.manifest")


def test_recovery_sets_operation_aside_if_its_base_version_is_missing(root: Path) -> None:
    line = line_at(root)
    path = _version(line)
    body = path.read_bytes()
    path.unlink()
    head = line.last_known().state.head
    with overdue():
        (waiting,) = graphs.open(root, durability="os").maintenance.operations.set_aside()
    assert "missing" in waiting.error
    assert intents.list_intents(line.store).pending == ()
    assert line.refresh().state.head == head
    assert [one.kind for one in list_recovery_records(line.store)] == ["set_aside"]
    before = files(line.store)
    assert graphs.open(root, read_only=True).log()
    assert files(line.store) == before
    # Put back, it goes on when somebody says so.
    path.write_bytes(body)
    graphs.open(root, durability="os").maintenance.operations.retry(waiting.id)
    assert ("new", 7) in read_branch(line)[PERSON]
    assert write(line, append({"next": 1})) is not None
    check_invariants(root)
