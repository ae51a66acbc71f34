"""A full or read-only disk: a typed failure, no damage, and later writes work.

Where a small file system can be mounted, a real one is used; the rest is injected.
"""

import errno
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api import opening as graphs
from omnigraph.errors import OmnigraphError, RecoveryRequired, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.publish.branch_lifecycle import create_branch
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import open_store
from tests.crash.matrix import shape
from tests.crash.verbs import overdue
from tests.rig.invariants import check_invariants, files
from tests.rig.writes import TABLES, append, init_small, line_at, read_graph, write, write_long

Run = Callable[[BranchState, str], object]
VERBS: dict[str, Run] = {
    "append": lambda line, name: write(line, append({name: 1}), TABLES),
    "long": lambda line, name: write_long(line, append({name: 1}), TABLES),
    "branch": lambda line, name: create_branch(line.store, name, line),
}
PAGE = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of sixteen megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if _mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)) != 0:
        pytest.skip("this user may not mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _mount(*options: str) -> int:
    try:
        return subprocess.run(["mount", *options], capture_output=True, check=False).returncode
    except FileNotFoundError:
        return 1


def fill(place: Path, free: int) -> Path:
    """Fill a file system but for some pages; the file that does it can be removed again."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as out:
        with suppress(OSError):
            while True:
                out.write(bytes(PAGE))
        out.truncate(max(0, out.tell() - free * PAGE))
    return ballast


@pytest.mark.parametrize("pages", [(0, 6, 14), pytest.param(tuple(range(28)), marks=pytest.mark.full)])
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_damages_nothing_and_the_next_write_works(disk: Path, verb: str, pages: tuple[int, ...]) -> None:
    root = disk / "graph"
    init_small(root)
    line = line_at(root)
    write(line, append({"a": 1}), TABLES)
    failed = 0
    for free in pages:
        before = shape(root)
        ballast = fill(disk, free)
        told = "done"
        try:
            VERBS[verb](line, f"n{free}")
        except RecoveryRequired:
            told = "unknown"
        except StorageError as error:
            told = error.effect
            failed += 1
        assert shape(root) == before or told != "none"
        ballast.unlink()
        with overdue():
            graphs.open(root, durability="os")
        if told == "none":
            assert shape(root) == before
        if told == "done":
            assert shape(root) != before
        assert write(line, append({f"next{free}": 1})) is not None
        check_invariants(root)
    assert failed, "the disk was never full"


def test_an_init_on_a_full_disk_leaves_no_graph(disk: Path) -> None:
    ballast = fill(disk, 2)
    with pytest.raises(OmnigraphError):
        init_small(disk / "graph")
    ballast.unlink()
    graph = graphs.init(disk / "graph", "node Person { n: I64? }", force=True, durability="os")
    assert graph.table("Person").count_rows() == 0


@pytest.mark.parametrize("verb", VERBS)
def test_read_only_disk_allows_reads_and_rejects_writes(disk: Path, verb: str) -> None:
    root = disk / "graph"
    init_small(root)
    line = line_at(root)
    write(line, append({"a": 1}), TABLES)
    before, rows = files(open_store(str(root))), read_graph(root)
    assert _mount("-o", "remount,ro", str(disk)) == 0
    with pytest.raises(StorageError) as caught:
        VERBS[verb](line, "n")
    assert caught.value.effect == "none"
    assert graphs.open(root, read_only=True).table("Person").count_rows() == 1
    assert graphs.open(root).table("Person").count_rows() == 1
    assert (files(open_store(str(root))), read_graph(root)) == (before, rows)
    assert _mount("-o", "remount,rw", str(disk)) == 0
    VERBS[verb](line, "n")
    check_invariants(root)


@pytest.mark.parametrize(("number", "at"), [(errno.EROFS, 1), (errno.ENOSPC, 2), (errno.EDQUOT, 3), (errno.ENOSPC, 4)])
def test_disk_error_at_any_effect_is_typed_and_harmless(tmp_path: Path, number: int, at: int) -> None:
    init_small(tmp_path / "graph")
    line = line_at(tmp_path / "graph")
    before = shape(tmp_path / "graph")
    fault: Any = Fault(at, "before", OSError(number, "the disk refuses"))
    with line.store.effects.failing(fault), pytest.raises(StorageError) as caught:
        write(line, append({"a": 1}))
    assert (caught.value.kind, caught.value.effect) == ("configuration", "none")
    assert shape(tmp_path / "graph") == before
    assert write(line, append({"a": 1})) is not None
    check_invariants(tmp_path / "graph")
