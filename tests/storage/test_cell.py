"""A cell is swapped by exactly one of those who saw the same version."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage.cell import (
    SwapConflict,
    SwapOutcomeUnknown,
    cell_files,
    create_cell,
    newest_version,
    open_cell,
    swap,
)
from omnigraph.storage.effects import Fault
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.store import open_store
from tests.rig.counters import CELL, number, race
from tests.rig.plugin import S3


def test_a_swap_replaces_all_rows(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, pa.table({"n": [1, 2, 3]}))
    second = swap(store, first, number(4))
    assert second.read_rows(["n"]) == open_cell(store, CELL).read_rows(["n"]) == [{"n": 4}]
    assert first.read_rows(["n"]) == open_cell(store, CELL, 1).read_rows(["n"]) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert (first.stamp, second.stamp) == ("100", "100")


def test_who_saw_an_older_version_loses_and_changes_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, number(0))
    swap(store, first, number(1))
    with pytest.raises(SwapConflict):
        swap(store, first, number(2))
    assert newest_version(first) == 2
    assert open_cell(store, CELL).read_rows(["n"]) == [{"n": 1}]


@pytest.mark.parametrize(("fault", "left"), [(Fault(2, "before"), 0), (Fault(2, "after"), 1)], ids=["before", "after"])
def test_a_failure_at_the_swap_itself_leaves_it_open_what_happened(tmp_path: Path, fault: Fault, left: int) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, number(0))
    with store.effects.failing(fault), pytest.raises(SwapOutcomeUnknown):
        swap(store, first, number(1))
    assert open_cell(store, CELL).read_rows(["n"]) == [{"n": left}]


@pytest.mark.parametrize("count", [1, 15, 40])
def test_a_look_finds_the_newest_of_however_many_came_since(tmp_path: Path, count: int) -> None:
    store = open_store(str(tmp_path))
    last = create_cell(store, CELL, number(0))
    held = open_cell(store, CELL)
    assert newest_version(held) == 1
    for n in range(count):
        last = swap(store, last, number(n))
    assert newest_version(held) == last.version == count + 1


def test_a_look_is_not_misled_by_versions_that_are_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    held = create_cell(store, CELL, number(0))
    assert newest_version(held) == 1
    glance, versions = LocalBackend.stat_if_local, tmp_path / CELL / "_versions"

    def removed_before(self: LocalBackend, name: str) -> object:
        """Others swap twice, and remove all but the newest, before the second is looked for."""
        if name == cell_files(held)[-1]:
            return glance(self, name)
        monkeypatch.setattr(LocalBackend, "stat_if_local", glance)
        last = swap(store, swap(store, open_cell(store, CELL), number(1)), number(2))
        for one in sorted(versions.iterdir(), reverse=True)[: last.version - 1]:
            one.unlink()
        return glance(self, name)

    monkeypatch.setattr(LocalBackend, "stat_if_local", removed_before)
    assert newest_version(held) == 3


def test_a_look_tells_a_version_from_another_of_its_number(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    held = create_cell(store, CELL, number(0))
    assert newest_version(held) == 1
    shutil.rmtree(tmp_path / CELL)
    swap(store, create_cell(store, CELL, number(7)), number(8))
    assert newest_version(held) == 0


def test_nor_at_the_first_look(tmp_path: Path) -> None:
    """Below the newest there is a gap, and what came late to a number that was free again."""
    store = open_store(str(tmp_path))
    create_cell(store, CELL, number(0))
    held = open_cell(store, CELL)
    shutil.rmtree(tmp_path / CELL)
    swap(store, swap(store, create_cell(store, CELL, number(7)), number(8)), number(9))
    sorted((tmp_path / CELL / "_versions").iterdir())[1].unlink()
    assert newest_version(held) == 3


def test_of_several_processes_nobody_loses_a_count(tmp_path: Path) -> None:
    total, version, _ = race(str(tmp_path), 3, 20)
    assert (total, version) == (60, 61)


@pytest.mark.full
def test_of_several_processes_nobody_loses_a_count_on_s3(s3: S3) -> None:
    total, version, _ = race(s3.url, 4, 10)
    assert (total, version) == (40, 41)
