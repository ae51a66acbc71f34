"""On a disk nothing becomes visible before its dependencies are synced."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from omnigraph.storage import manifest_cell, scan, stage_rows, table
from omnigraph.storage.effects import ActionResult, EffectKind, Effects
from omnigraph.storage.store import Store, open_store

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])
# A version holds its transaction; the copy in a file of its own is read by nobody of ours.
UNNEEDED = "_transactions"


class Ledger(Effects):
    """Looks, before each effect that others can see, for names that would not survive."""

    def __init__(self, top: Path) -> None:
        super().__init__()
        self.top = top
        self.contents: set[Path] = set()
        self.names: set[Path] = set()
        self.looks: list[tuple[str, list[str]]] = []

    def run(self, kind: EffectKind, target: str, action: Callable[[], ActionResult]) -> ActionResult:
        if kind in ("detach", "publish"):
            self.looks.append((kind, self.missing()))
        return super().run(kind, target, action)

    def synced(self, path: Path) -> None:
        """Note a sync: of a file its content, of a directory the names that it has by now."""
        if path.is_dir():
            self.names |= set(path.iterdir())
        else:
            self.contents.add(path)

    def missing(self) -> list[str]:
        """What would be gone, or empty, after a power loss."""
        kept = [path for path in self.top.rglob("*") if UNNEEDED not in path.parts]
        lost = [p for p in kept if p not in self.names or (p.is_file() and p not in self.contents)]
        return sorted(str(path.relative_to(self.top)) for path in lost)


def rows(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "n": [0] * len(names)}, schema=SCHEMA)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    found = Ledger(tmp_path)
    sync = os.fsync

    def record(handle: int) -> None:
        sync(handle)
        found.synced(Path(f"/proc/self/fd/{handle}").readlink())

    monkeypatch.setattr(os, "fsync", record)
    return found


@pytest.fixture
def store(tmp_path: Path, ledger: Ledger) -> Store:
    return open_store(str(tmp_path), effects=ledger)


def test_referenced_files_are_synced_before_the_publish(store: Store, ledger: Ledger) -> None:
    shelf = table.create_table(store, "nodes/shelf", SCHEMA)
    state = manifest_cell.create_cell(store, "__manifest", rows("0"))
    assert ledger.missing() == []
    shelf = table.commit(store, shelf, stage_rows.stage_append(store, shelf, rows("a", "b", "c")))
    found = scan.find_rows(shelf, "id", ["b"], ["id"])
    gone, kept = found["_rowaddr"].to_pylist(), found["_rowid"].to_pylist()
    changed = stage_rows.stage_change(store, shelf, removed_addresses=gone, replacements=(kept, rows("b")))
    shelf = table.commit(store, shelf, changed)
    manifest_cell.swap(store, state, rows("1"))
    assert ledger.missing() == []
    assert ledger.looks == [("detach", []), ("detach", []), ("publish", [])]


def test_deletion_files_are_synced(store: Store, ledger: Ledger) -> None:
    """Lance writes few deletions as a list and many as a bitmap: files of different names."""
    shelf = table.create_table(store, "nodes/shelf", SCHEMA)
    many = [f"r{n}" for n in range(20_000)]
    shelf = table.commit(store, shelf, stage_rows.stage_append(store, shelf, rows(*many)))
    for removed in (range(3), range(3, 15_000)):
        staged = stage_rows.stage_change(store, shelf, removed_addresses=list(removed))
        shelf = table.commit(store, shelf, staged)
    assert shelf.dataset.count_rows() == 5_000
    suffixes = {path.suffix for path in ledger.top.rglob("_deletions/*")}
    assert suffixes == {".arrow", ".bin"}
    assert ledger.missing() == []
    assert [missing for _, missing in ledger.looks] == [[], [], []]


def test_durability_os_syncs_nothing(tmp_path: Path, ledger: Ledger) -> None:
    store = open_store(str(tmp_path), effects=ledger, durability="os")
    shelf = table.create_table(store, "nodes/shelf", SCHEMA)
    table.commit(store, shelf, stage_rows.stage_append(store, shelf, rows("a")))
    store.objects.create_bytes("x", b"")
    assert ledger.contents | ledger.names == set()


def test_large_blobs_are_synced_with_their_rows(store: Store, ledger: Ledger) -> None:
    """Lance keeps large blobs in files of their own, below a directory named after the data."""
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), blob_field("pic")])
    shelf = table.create_table(store, "nodes/shelf", schema)
    pictures = blob_array([b"x" * 200_000, b"y" * 6_000_000])
    rows = pa.table([pa.array(["a", "b"]), pictures], schema=schema)
    shelf = table.commit(store, shelf, stage_rows.stage_append(store, shelf, rows))
    assert list(ledger.top.rglob("*.blob"))
    assert ledger.missing() == []
    assert ledger.looks == [("detach", [])]
