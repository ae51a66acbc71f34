"""Exactly one of the writers that saw the same version swaps a manifest cell."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage.effects import Fault
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.manifest_cell import (
    SwapConflict,
    SwapOutcomeUnknown,
    cell_files,
    create_cell,
    newest_version,
    open_cell,
    swap,
)
from omnigraph.storage.store import open_store
from tests.rig.counting_writers import CELL, number, race
from tests.rig.plugin import S3


def test_a_swap_replaces_all_rows(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, pa.table({"n": [1, 2, 3]}))
    second = swap(store, first, number(4))
    assert second.read_rows(["n"]) == open_cell(store, CELL).read_rows(["n"]) == [{"n": 4}]
    assert first.read_rows(["n"]) == open_cell(store, CELL, 1).read_rows(["n"]) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert (first.stamp, second.stamp) == ("100", "100")


def test_swap_from_an_older_version_fails_without_effect(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, number(0))
    swap(store, first, number(1))
    with pytest.raises(SwapConflict):
        swap(store, first, number(2))
    assert newest_version(first) == 2
    assert open_cell(store, CELL).read_rows(["n"]) == [{"n": 1}]


@pytest.mark.parametrize(("fault", "left"), [(Fault(2, "before"), 0), (Fault(2, "after"), 1)], ids=["before", "after"])
def test_failure_during_the_swap_has_unknown_outcome(tmp_path: Path, fault: Fault, left: int) -> None:
    store = open_store(str(tmp_path))
    first = create_cell(store, CELL, number(0))
    with store.effects.failing(fault), pytest.raises(SwapOutcomeUnknown):
        swap(store, first, number(1))
    assert open_cell(store, CELL).read_rows(["n"]) == [{"n": left}]


@pytest.mark.parametrize("count", [1, 15, 40])
def test_newest_version_is_found_after_many_swaps(tmp_path: Path, count: int) -> None:
    store = open_store(str(tmp_path))
    last = create_cell(store, CELL, number(0))
    held = open_cell(store, CELL)
    assert newest_version(held) == 1
    for n in range(count):
        last = swap(store, last, number(n))
    assert newest_version(held) == last.version == count + 1


def test_newest_version_is_found_while_versions_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_recreated_cell_with_an_equal_version_number_is_detected(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    held = create_cell(store, CELL, number(0))
    assert newest_version(held) == 1
    shutil.rmtree(tmp_path / CELL)
    swap(store, create_cell(store, CELL, number(7)), number(8))
    assert newest_version(held) == 0


def test_newest_version_of_a_recreated_cell_with_a_gap_is_found(tmp_path: Path) -> None:
    """Below the newest there is a gap, and what came late to a number that was free again."""
    store = open_store(str(tmp_path))
    create_cell(store, CELL, number(0))
    held = open_cell(store, CELL)
    shutil.rmtree(tmp_path / CELL)
    swap(store, swap(store, create_cell(store, CELL, number(7)), number(8)), number(9))
    sorted((tmp_path / CELL / "_versions").iterdir())[1].unlink()
    assert newest_version(held) == 3


def test_concurrent_processes_lose_no_increment(tmp_path: Path) -> None:
    total, version, _ = race(str(tmp_path), 3, 20)
    assert (total, version) == (60, 61)


@pytest.mark.full
def test_concurrent_processes_lose_no_increment_on_s3(s3: S3) -> None:
    total, version, _ = race(s3.url, 4, 10)
    assert (total, version) == (40, 41)
