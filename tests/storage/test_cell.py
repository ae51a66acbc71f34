"""A cell is swapped by exactly one of those who saw the same version."""

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage.cell import LostSwap, UnsureSwap, create_cell, newest, open_cell, swap
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from tests.rig.counters import CELL, number, race
from tests.rig.plugin import S3


def test_a_swap_replaces_all_rows(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, pa.table({"n": [1, 2, 3]}))
    second = swap(store, first, number(4))
    assert second.rows(["n"]) == open_cell(store, CELL).rows(["n"]) == [{"n": 4}]
    assert (
        first.rows(["n"]) == open_cell(store, CELL, 1).rows(["n"]) == [{"n": 1}, {"n": 2}, {"n": 3}]
    )
    assert (first.stamp, second.stamp) == ("100", "100")


def test_who_saw_an_older_version_loses_and_changes_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, number(0))
    swap(store, first, number(1))
    with pytest.raises(LostSwap):
        swap(store, first, number(2))
    assert newest(first) == 2
    assert open_cell(store, CELL).rows(["n"]) == [{"n": 1}]


@pytest.mark.parametrize(
    ("fault", "left"), [(Fault(2, "before"), 0), (Fault(2, "after"), 1)], ids=["before", "after"]
)
def test_a_failure_at_the_swap_itself_leaves_it_open_what_happened(
    tmp_path: Path, fault: Fault, left: int
) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, number(0))
    with store.effects.failing(fault), pytest.raises(UnsureSwap):
        swap(store, first, number(1))
    assert open_cell(store, CELL).rows(["n"]) == [{"n": left}]


def test_of_several_processes_nobody_loses_a_count(tmp_path: Path) -> None:
    total, version, _ = race(str(tmp_path), 3, 20)
    assert (total, version) == (60, 61)


@pytest.mark.full
def test_of_several_processes_nobody_loses_a_count_on_s3(s3: S3) -> None:
    total, version, _ = race(s3.url, 4, 10)
    assert (total, version) == (40, 41)
