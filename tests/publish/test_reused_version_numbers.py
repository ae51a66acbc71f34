"""A late swap takes the number of a removed manifest version.

It lands far below the newest version and is seen by nobody. Whoever looks then must not take the
gap for a root that was made again: what it would take back is the newest version of the graph.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.history import manifest
from omnigraph.history.branch_state import BranchState
from omnigraph.history.manifest import LoadedManifest, read_manifest, swap_state
from omnigraph.history.state import GraphState
from omnigraph.publish import swap as swapping
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage import manifest_cell
from omnigraph.storage.store import open_store
from tests.rig.independent_writers import apart, version_file
from tests.rig.writes import PERSON, append, init_small, read_graph, write

ALL = ["a", "b", "c", "mine"]


def people(root: str) -> list[str]:
    return [name for name, _ in read_graph(root)["main"][PERSON]]


@pytest.fixture
def root(tmp_path: Path) -> str:
    init_small(tmp_path / "g")
    return str(tmp_path / "g")


@pytest.fixture
def late(root: str) -> Callable[[], LoadedManifest]:
    """A swap of somebody who was held up after the first write."""
    write(apart(root), append({"a": 1}))
    store = open_store(root, durability="os")
    base = read_manifest(store)
    write(apart(root), append({"b": 1}))
    state: GraphState = read_manifest(store).state
    write(apart(root), append({"c": 1}))
    return lambda: swap_state(store, base, state)


def clean(line: BranchState, below: int) -> None:
    for version in range(1, below):
        version_file(line, version).unlink(missing_ok=True)


def after_swap(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Something happens between the next swap and the look that follows it."""
    real = manifest_cell._commit_strictly

    def commit(*args: Any) -> Any:
        monkeypatch.setattr(manifest_cell, "_commit_strictly", real)
        made = real(*args)
        happen()
        return made

    monkeypatch.setattr(manifest_cell, "_commit_strictly", commit)


def test_late_swap_into_a_freed_version_does_not_withdraw_the_newest_write(
    root: str, late: Callable[[], LoadedManifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = apart(root)
    newest = line.last_known().version + 1

    def happen() -> None:
        clean(line, newest)
        late()

    after_swap(monkeypatch, happen)
    assert write(line, append({"mine": 1})) is not None
    assert people(root) == ALL
    assert write(line, append({"next": 1})) is not None
    assert people(root) == [*ALL, "next"]


def test_treating_a_gap_as_another_root_would_withdraw_the_newest_version(
    root: str, late: Callable[[], LoadedManifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = apart(root)
    newest = line.last_known().version + 1

    def happen() -> None:
        clean(line, newest)
        late()

    monkeypatch.setattr(manifest, "_all_files_exist", lambda _: False)  # as if it lacked what it names
    after_swap(monkeypatch, happen)
    with suppress(OmnigraphError):
        write(line, append({"mine": 1}))
    assert "c" not in people(root)  # which was acknowledged long ago


def test_late_swap_before_a_refresh_does_not_withdraw_the_newest_write(
    root: str, late: Callable[[], LoadedManifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = apart(root)
    newest = line.last_known().version + 1
    after_swap(monkeypatch, lambda: clean(line, newest))
    assert write(line, append({"mine": 1})) is not None
    late()
    assert line.refresh().version == newest
    assert people(root) == ALL


def test_late_swap_with_a_lost_response_does_not_withdraw_the_newest_write(
    root: str, late: Callable[[], LoadedManifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = apart(root)
    newest = line.last_known().version + 1

    def happen() -> None:
        clean(line, newest)
        late()
        raise ValueError("no answer")

    after_swap(monkeypatch, happen)
    assert write(line, append({"mine": 1})) is not None
    assert people(root) == ALL


def test_repeated_key_is_found_after_the_known_version_was_removed(root: str) -> None:
    key = CommitMetadata(idempotency_key="k", request_hash="r")
    store = open_store(root)
    line = BranchState(store, "main", "main")
    first = write(line, append({"a": 1}), signature=key)
    write(apart(root), append({"b": 1}))
    clean(line, line.last_known().version + 1)
    assert write(line, append({"a": 1}), signature=key) == first


def test_open_continues_with_the_next_version_if_the_listed_one_was_removed(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, real, opened = apart(root), lance.dataset, list[int]()
    line.last_known()

    def dataset(uri: str, **how: Any) -> Any:
        if uri.endswith("__manifest") and len(opened) < 3:
            opened.append(1)
            write(line, append({f"o{len(opened)}": 1}))
            raise ValueError("Not found: the version that was listed")
        return real(uri, **how)

    monkeypatch.setattr(lance, "dataset", dataset)
    assert len(read_manifest(open_store(root)).state.tail) == 4


def test_version_whose_data_was_removed_meanwhile_is_not_damage(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line, real = apart(root), manifest_cell.ManifestCell.read_rows
    line.last_known()

    def rows(one: manifest_cell.ManifestCell, columns: Any) -> Any:
        if one.version == 1:
            write(line, append({"a": 1}))
            for name in manifest_cell.cell_files(one):
                Path(root, name).unlink()
        return real(one, columns)

    monkeypatch.setattr(manifest_cell.ManifestCell, "read_rows", rows)
    assert read_manifest(open_store(root)).version == 2


@pytest.mark.parametrize("others", [0, 2])
def test_swap_removed_before_its_sync_is_retried_or_found(
    root: str, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    line = BranchState(open_store(root, durability="fsync"), "main", "main")
    base = line.last_known().version
    if not others:  # it lands in a gap, below what came first
        write(apart(root), append({"o1": 1}))
        write(apart(root), append({"o2": 1}))
        clean(line, base + 2)

    def happen() -> None:
        for number in range(others):
            write(apart(root), append({f"o{number + 1}": 1}))
        version_file(line, base + 1).unlink()

    after_swap(monkeypatch, happen)
    commit = write(line, append({"mine": 1}))
    assert commit is not None
    assert people(root) == ["mine", "o1", "o2"]


def test_sync_moves_to_the_next_version_if_the_swapped_one_was_removed(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = BranchState(open_store(root, durability="fsync"), "main", "main")
    newest, synced = line.last_known().version + 1, list[int]()
    real = manifest.sync_manifest

    def secure(opened: LoadedManifest) -> None:
        if not synced:
            write(apart(root), append({"o": 1}))
            clean(line, newest + 1)
        synced.append(opened.version)
        real(opened)

    def happen() -> None:
        raise ValueError("no answer")

    monkeypatch.setattr(swapping, "sync_manifest", secure)
    after_swap(monkeypatch, happen)
    assert write(line, append({"mine": 1})) is not None
    assert synced == [newest, newest + 1]
    assert people(root) == ["mine", "o"]
