"""Rows by row id: aligned with the request, whatever is missing."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.storage import scan, stage_rows, table
from omnigraph.storage.store import open_store

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])
MANY = 5_000


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> table.Table:
    """Rows 0 to 4,999, without every eighth."""
    root: Path = tmp_path_factory.mktemp("scan")
    store = open_store(str(root), durability="os")
    made = table.create_table(store, "nodes/t", SCHEMA)
    rows = pa.table({"id": [f"r{at}" for at in range(MANY)], "n": range(MANY)}, schema=SCHEMA)
    made = table.commit(store, made, stage_rows.stage_append(store, made, rows))
    gone = scan.scan(made, ["n"], addresses=True).filter(pc.equal(pc.bit_wise_and(pc.field("n"), 7), 7))
    staged = stage_rows.stage_change(store, made, removed_addresses=gone["_rowaddr"].to_pylist())
    return table.commit(store, made, staged)


def expected(asked: list[int]) -> list[int | None]:
    return [at if 0 <= at < MANY and at % 8 != 7 else None for at in asked]


@pytest.mark.parametrize(
    "asked",
    [[], [-1], [3, 1, 2], [5, 5, 7, -1, 5], [10**6, 4], list(range(0, MANY, 3)), list(range(MANY - 1, -1, -1)) * 2],
)
def test_rows_are_returned_in_the_requested_order(shelf: table.Table, asked: list[int]) -> None:
    found = scan.take_rows(shelf, np.array(asked, np.int64), ["n", "id"])
    assert found["n"].to_pylist() == expected(asked)
    assert found.column_names == ["n", "id"]


def test_a_scan_has_filters_limits_and_row_ids(shelf: table.Table) -> None:
    found = scan.scan(shelf, ["n"], pc.field("n") < 10, row_ids=True)
    assert scan.row_id_array(found).tolist() == found["n"].to_pylist() == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert scan.scan(shelf, ["n"], limit=4).num_rows == 4
    assert scan.count_rows(shelf) == MANY - MANY // 8


def test_batches_have_all_rows(shelf: table.Table) -> None:
    parts = list(scan.scan_batches(shelf, ["n"], pc.field("n") >= 0, batch_rows=100))
    assert sum(part.num_rows for part in parts) == scan.count_rows(shelf)
    assert max(part.num_rows for part in parts) <= 100
