"""The read set of a handle follows its own writes and nothing else."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import VersionConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.publish.plan_json import requirement_from_json
from omnigraph.publish.publish import publish
from omnigraph.publish.read_set import ReadSet, UnchangedReads
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from tests.rig.independent_writers import apart, held
from tests.rig.writes import CITY, PERSON, append, init_small, plan, update, write

KEY = CommitMetadata(idempotency_key="k", request_hash="r")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    write(apart(tmp_path / "g"), append({"a": 0}))
    return tmp_path / "g"


def insert(line: BranchState, shown: ReadSet, name: str, signature: CommitMetadata = KEY) -> Commit:
    """An insert through a handle, which is not strict."""
    watch = shown.require_unchanged()
    made = write(line, append({name: 0}), signature=signature, conditions=[watch])
    assert made is not None
    shown.record_write(made, watch)
    return made


def strict(line: BranchState, shown: ReadSet) -> None:
    watch = shown.require_unchanged([PERSON])
    made = write(line, update({"a": 9}), conditions=[watch])
    assert made is not None
    shown.record_write(made, watch)


def test_replayed_key_does_not_move_the_shown_state_back(root: Path) -> None:
    line = apart(root)
    shown = ReadSet(line.last_known().state.tables)
    first = insert(line, shown, "mine")
    insert(line, shown, "later", CommitMetadata())
    assert insert(line, shown, "mine") == first
    strict(line, shown)


def test_replayed_key_does_not_mark_unseen_tables_as_shown(root: Path) -> None:
    line, other = apart(root), apart(root)
    write(other, append({"foreign": 0}))
    shown = ReadSet({})
    first = insert(line, shown, "mine")
    again = ReadSet({})
    assert insert(line, again, "mine") == first
    assert again.require_unchanged([PERSON]).contents == ()


def test_key_found_after_a_lost_race_does_not_mark_changes_as_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process made the same request, on a change that this handle never showed."""
    line, other = apart(root), apart(root)
    shown = ReadSet(line.last_known().state.tables)

    def meanwhile() -> None:
        write(other, append({"foreign": 0}))
        write(other, append({"mine": 0}), signature=KEY)

    with held(monkeypatch, meanwhile):
        found = insert(line, shown, "mine")
    assert found.id == other.last_known().state.head.commit_id
    with pytest.raises(VersionConflict):
        strict(line, shown)


def test_table_dropped_by_the_handle_leaves_the_shown_state(root: Path) -> None:
    line = apart(root)
    shown = ReadSet(line.last_known().state.tables)
    watch = shown.require_unchanged([CITY])
    drop = PublishPlan("drop", dropped_tables=frozenset({CITY}))
    made = publish(line, lambda _: drop, conditions=[watch])
    assert made is not None
    shown.record_write(made, watch)
    assert shown.require_unchanged([CITY]).contents == ()


def test_read_set_round_trips_through_json(root: Path) -> None:
    line = apart(root)
    watch = ReadSet(line.last_known().state.tables).require_unchanged([PERSON, CITY])
    again = requirement_from_json(watch.to_json())
    assert again.to_json() == watch.to_json()
    again.check(WriteTxn(line.store, "main", line.last_known(), "", 0))
    write(line, append({"b": 1}))
    with pytest.raises(VersionConflict):
        again.check(WriteTxn(line.store, "main", line.last_known(), "", 0))


def test_confirmed_plan_keeps_its_read_set(root: Path) -> None:
    from dataclasses import replace

    from omnigraph.publish.plan_json import plan_from_json, plan_to_json

    line = apart(root)
    txn = WriteTxn(line.store, "main", line.last_known(), "", 0)
    staged = plan(txn, append({"b": 1}))
    assert staged is not None
    watch = ReadSet(line.last_known().state.tables).require_unchanged([PERSON])
    told = plan_to_json(replace(staged, requirements=(watch,)))
    (again,) = plan_from_json(told, txn).requirements
    assert again.to_json() == watch.to_json()


@dataclass(frozen=True)
class Ids:
    """A filter of rows by id, in all columns."""

    ids: tuple[str, ...]
    columns: None = None

    def matches(self, _: WriteTxn, rows: pa.Table) -> Any:
        return pc.is_in(rows["id"], value_set=pa.array(self.ids)).to_numpy()


def change(line: BranchState, shown: ReadSet, *names: str) -> tuple[Commit, UnchangedReads]:
    """A strict update of some rows, which is not recorded yet."""
    watch = shown.require_unchanged({PERSON: Ids(names)})
    made = write(line, update(dict.fromkeys(names, 5)), conditions=[watch])
    assert made is not None
    return made, watch


def test_own_writes_recorded_in_another_order_count_as_seen(root: Path) -> None:
    line, other = apart(root), apart(root)
    write(line, append({"b": 0, "c": 0, "d": 0}))
    other.refresh()
    shown = ReadSet(line.last_known().state.tables)
    first = change(line, shown, "a")
    write(other, update({"c": 1}))
    line.refresh()
    second = change(line, shown, "b")
    shown.record_write(*second)
    shown.record_write(*first)  # another thread was slower
    shown.record_write(*change(line, shown, "a"))
    shown.record_write(*change(line, shown, "b", "d"))
    with pytest.raises(VersionConflict) as conflict:
        change(line, shown, "c")
    assert conflict.value.changed_ids == ("c",)


def test_requirement_with_unread_changes_conflicts_as_json(root: Path) -> None:
    """Another process cannot evaluate a filter, so for it every change counts."""
    line, other = apart(root), apart(root)
    shown = ReadSet(line.last_known().state.tables)
    write(other, append({"b": 0}))
    line.refresh()
    shown.record_write(*change(line, shown, "a"))
    again = requirement_from_json(shown.require_unchanged({PERSON: Ids(("a",))}).to_json())
    with pytest.raises(VersionConflict):
        again.check(WriteTxn(line.store, "main", line.last_known(), "", 0))
