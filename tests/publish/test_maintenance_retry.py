"""Maintenance beside a constant writer lands in smaller parts."""

from pathlib import Path

import pytest

from omnigraph.errors import ConcurrentCommit
from omnigraph.history.branch_state import BranchState
from omnigraph.publish import publish as publishing
from omnigraph.publish.maintenance_retry import shrink_on_retry
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.compact import stage_compaction
from omnigraph.storage.table import open_table
from omnigraph.values import clock_and_ids
from tests.rig.independent_writers import apart
from tests.rig.invariants import check_invariants
from tests.rig.writes import PERSON, append, init_small, read_branch, update, write

COUNT = 12


@pytest.fixture
def line(tmp_path: Path) -> BranchState:
    """A table of a dozen fragments."""
    init_small(tmp_path / "g")
    found = apart(tmp_path / "g")
    for n in range(COUNT):
        write(found, append({f"p{n:02}": 0}))
    return found


def fragments(line: BranchState) -> int:
    entry = line.refresh().state.tables[PERSON]
    dataset = open_table(line.store, entry.location, entry.lance_version).dataset
    return len(dataset.get_fragments())


class Busy:
    """Rewrites a table while somebody else updates its newest row whenever it has staged."""

    def __init__(self, line: BranchState) -> None:
        self.other = apart(line.store.root.path)
        self.updates = 0

    def __call__(self, txn: WriteTxn, at_most: int | None) -> PublishPlan | None:
        staged = stage_compaction(txn.store, txn.table(PERSON), max_fragments=at_most)
        self.updates += 1
        write(self.other, update({f"p{COUNT - 1:02}": self.updates}))
        if staged is None:
            return None
        return PublishPlan("optimize", {PERSON: staged}, maintenance=True)


def test_smaller_compactions_land_beside_a_busy_writer(line: BranchState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "MAX_PREPARATIONS", 6)
    monkeypatch.setattr(BranchState, "back_off", staticmethod(lambda _: None))
    monkeypatch.setattr(clock_and_ids, "random_fraction", lambda: 0.0)  # the first fragments
    whole = Busy(line)
    with pytest.raises(ConcurrentCommit):
        publish(line, lambda txn: whole(txn, None))
    assert whole.updates == 6
    busy = Busy(line)
    made = publish(line, shrink_on_retry(busy))
    assert made is not None
    assert made.operation == "optimize"
    assert busy.updates == 4  # everything, 32, 16, and 8 of twelve
    assert fragments(line) == COUNT - 8 + 1
    people = dict(read_branch(line)[PERSON])
    assert len(people) == COUNT
    assert people[f"p{COUNT - 1:02}"] == busy.updates
    check_invariants(line.store.root.path)


@pytest.mark.parametrize("place", [0.0, 0.5, 0.99])
def test_compaction_respects_max_fragments(line: BranchState, monkeypatch: pytest.MonkeyPatch, place: float) -> None:
    monkeypatch.setattr(clock_and_ids, "random_fraction", lambda: place)

    def some(txn: WriteTxn) -> PublishPlan | None:
        staged = stage_compaction(txn.store, txn.table(PERSON), max_fragments=3)
        assert staged is not None
        assert len(staged.touched_fragments) == 3
        return PublishPlan("optimize", {PERSON: staged}, maintenance=True)

    assert publish(line, some) is not None
    assert fragments(line) == COUNT - 2
    assert len(read_branch(line)[PERSON]) == COUNT
