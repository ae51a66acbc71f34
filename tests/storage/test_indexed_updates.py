"""Updates under every kind of index: the index returns the results of a scan."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation as Op

from omnigraph.storage import scan as scans
from omnigraph.storage import stage_rows
from omnigraph.storage import table as tables
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import Table
from tests.storage.test_lance_index_guards import INDEXES, ROWS, SCHEMA, row, truthful

KINDS = [pytest.param(kind, marks=() if kind in ("BITMAP", "BTREE") else pytest.mark.full) for kind in INDEXES]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path), durability="os")


def indexed(store: Store, kind: str) -> Table:
    """A table of ours with one indexed column, at a detached version."""
    made = tables.create_table(store, "nodes/t", SCHEMA)
    rows = pa.Table.from_pylist([row(f"r{n}", n) for n in range(ROWS)], schema=SCHEMA)
    made = tables.commit(store, made, stage_rows.stage_append(store, made, rows))
    column, options = INDEXES[kind][0], {"num_partitions": 2} if kind == "IVF_FLAT" else {}
    ids = [one.fragment_id for one in made.dataset.get_fragments()]
    index = made.dataset.create_index_uncommitted(column, kind, name="by_value", fragment_ids=ids, **options)
    if kind == "INVERTED":
        index = made.dataset.merge_existing_index_segments([index])
    base = made.dataset
    named = lance.LanceDataset.commit(base, Op.CreateIndex([index], []), read_version=base.version, detached=True)
    return Table(made.location, named)


def changed(store: Store, table: Table) -> Any:
    """One row replaced, one removed, one added, in one change."""
    found = scans.find_rows(table, "id", ["r5", "r6"], ["id"]).to_pylist()
    ids = {one["id"]: one["_rowid"] for one in found}
    staged = stage_rows.stage_change(
        store,
        table,
        removed_addresses=[one["_rowaddr"] for one in found],
        replacements=([ids["r5"]], pa.Table.from_pylist([row("r5", 5000)], schema=SCHEMA)),
        added_rows=pa.Table.from_pylist([row("new", 6000)], schema=SCHEMA),
    )
    return tables.commit(store, table, staged).dataset


@pytest.mark.parametrize("kind", KINDS)
def test_index_is_correct_after_an_update(store: Store, kind: str) -> None:
    after = changed(store, indexed(store, kind))
    assert INDEXES[kind][1](after, 5000, True) == {"r5"}
    assert INDEXES[kind][1](after, 6000, True) == {"new"}
    assert truthful(after, kind)


def test_update_mode_rewrite_rows_would_leave_stale_index_entries(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, table = Op.Update, indexed(store, "BITMAP")

    class Update(real):  # type: ignore[misc, valid-type]  # Lance recognizes operations by their class names
        def __init__(self, **parts: Any) -> None:
            super().__init__(**{**parts, "update_mode": "rewrite_rows"})

    monkeypatch.setattr(Op, "Update", Update)
    assert not truthful(changed(store, table), "BITMAP")
