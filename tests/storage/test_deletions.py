"""Deletion files are read as Lance writes them, in both of their forms."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage.deletions import deleted_offsets
from omnigraph.storage.differing_rows import differing_rows
from omnigraph.storage.stage_rows import stage_append, stage_change
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import Table, commit, create_table
from omnigraph.storage.version_difference import compare_versions

ROWS = 150_000
NAMES = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Table]:
    """A table of one large fragment."""
    store = open_store(str(tmp_path_factory.mktemp("deletions")), durability="os")
    table = create_table(store, "nodes/t", NAMES)
    rows = pa.table({"id": [f"{n:06}" for n in range(ROWS)], "n": np.arange(ROWS)}, schema=NAMES)
    return store, commit(store, table, stage_append(store, table, rows))


CHOSEN: dict[str, Callable[[], list[int]]] = {
    "a few": lambda: [5, 3, ROWS - 1],
    "a long run": lambda: list(range(1_000, 90_000)),
    "every other": lambda: list(range(0, ROWS, 2)),
    "many by chance": lambda: np.random.default_rng(7).choice(ROWS, 20_000, False).tolist(),
    "some of each": lambda: [*range(70_000, 76_000), 1, 2, 140_000],
}


@pytest.mark.parametrize("name", CHOSEN)
def test_deleted_rows_are_found_without_reading_other_rows(stored: tuple[Store, Table], name: str) -> None:
    store, table = stored
    offsets = CHOSEN[name]()
    gone = commit(store, table, stage_change(store, table, removed_addresses=offsets))
    (fragment,) = gone.dataset.get_fragments()
    found = deleted_offsets(store, gone, fragment)
    assert found is not None
    assert found.tolist() == sorted(offsets)
    before, after = differing_rows(store, compare_versions(table, gone))
    assert (before["n"].to_pylist(), after.num_rows) == (sorted(offsets), 0)
    more = sorted(set(range(10)) - set(offsets))
    further = commit(store, gone, stage_change(store, gone, removed_addresses=more))
    lost, won = differing_rows(store, compare_versions(gone, further))
    assert (lost["n"].to_pylist(), won.num_rows) == (more, 0)


def test_moved_rows_are_not_reported_as_deleted(tmp_path: Path) -> None:
    """More than a piece of rows in other files, one of them with another value."""
    from omnigraph.storage.compact import stage_compaction

    store = open_store(str(tmp_path / "root"), durability="os")
    table = create_table(store, "nodes/t", NAMES)
    for part in range(2):
        ids = [f"{part}{n:05}" for n in range(6_000)]
        rows = pa.table({"id": ids, "n": np.arange(6_000)}, schema=NAMES)
        table = commit(store, table, stage_append(store, table, rows))
    staged = stage_compaction(store, table)
    assert staged is not None
    moved = commit(store, table, staged)
    before, after = differing_rows(store, compare_versions(table, moved))
    assert (before.num_rows, after.num_rows) == (0, 0)
    row = moved.dataset.to_table(columns=["id"], with_row_id=True, with_row_address=True, limit=1)
    new = pa.table({"id": row["id"], "n": [77]}, schema=NAMES)
    replaced = (row["_rowid"].to_pylist(), new)
    changed = commit(
        store, moved, stage_change(store, moved, removed_addresses=row["_rowaddr"].to_pylist(), replacements=replaced)
    )
    before, after = differing_rows(store, compare_versions(table, changed))
    assert (before.num_rows, after["n"].to_pylist()) == (1, [77])
