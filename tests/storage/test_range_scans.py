"""Rows of a large table that are read in ranges are the same rows, in the same order, as those of a scan."""

from collections.abc import Iterator
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import StorageError
from omnigraph.storage import range_scans
from omnigraph.storage.batch_sizes import BlockSize
from omnigraph.storage.range_scans import stream_rows
from omnigraph.storage.scan import ROW_ID, scan
from omnigraph.storage.table import Table
from omnigraph.testing import graph as new_graph

RANGE_BYTES, TEXT_BYTES, ROWS = 1 << 14, 1_000, 500
FILTERS = {
    "no filter": None,
    "most rows": pc.field("k") > "0100",
    "few rows": pc.field("k").isin(pa.array(["0007", "0300", "0480"])),
    "no row": pc.field("k") == "x",
    "long texts": pc.starts_with(pc.field("text"), "even"),
}


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    """Rows in several fragments, some of which are deleted, updated or compacted."""
    with new_graph("node P { k: String @key  text: String?  @index(k) }") as created:
        for first in range(0, ROWS, 100):
            rows = ({"k": f"{number:04}", "text": text_of(number)} for number in range(first, first + 100))
            created.insert("P", *rows)
        created.delete("P", where='k >= "0090" and k < "0110"')
        created.update("P", where='k = "0200"', set={"text": "updated"})
        created.delete("P", where='k = "0499"')
        yield created


def text_of(number: int) -> str | None:
    parity = "even" if number % 2 == 0 else "odd"
    return None if number % 50 == 1 else f"{parity} {number}".ljust(TEXT_BYTES, "x")


@pytest.fixture
def table(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setattr(range_scans, "LARGE_TABLE_BYTES", 1)
    monkeypatch.setattr(range_scans, "_LOCAL_RANGE_BYTES", RANGE_BYTES)
    (table_key,) = graph.snapshot.tables
    return graph.snapshot.table(table_key)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("columns", [["k", "text"], ["k"], []])
@pytest.mark.parametrize("batch_rows", [7, 1_000])
def test_ranges_contain_the_rows_of_a_scan(table: Table, name: str, columns: list[str], batch_rows: int) -> None:
    expected = scan(table, columns, FILTERS[name], row_ids=True)
    batches = list(stream_rows(table, columns, FILTERS[name], batch_rows=batch_rows))
    assert pa.Table.from_batches(batches, expected.schema).equals(expected)
    assert all(batch.num_rows <= batch_rows for batch in batches)


@pytest.mark.parametrize("name", ["no filter", "most rows"])
def test_the_size_of_a_batch_is_bounded(table: Table, name: str) -> None:
    sizes = [batch.nbytes for batch in stream_rows(table, ["k", "text"], FILTERS[name], batch_rows=1_000)]
    assert max(sizes) < 2 * RANGE_BYTES
    assert len(sizes) > ROWS * TEXT_BYTES // RANGE_BYTES // 2


class CountedScans:
    """Counts how many rows Lance reads in ranges."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        start_scan = lance.LanceDataset.scanner

        def scanner(dataset: lance.LanceDataset, *args: Any, **options: Any) -> Any:
            self.rows.append(options.get("limit") or -1)
            return start_scan(dataset, *args, **options)

        monkeypatch.setattr(lance.LanceDataset, "scanner", scanner)


def test_a_range_is_read_only_when_it_is_needed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = CountedScans(monkeypatch)
    batches = stream_rows(table, ["k", "text"], batch_rows=1_000)
    next(batches)
    assert sum(scans.rows) < 10
    assert min(scans.rows) > 0


def test_a_small_table_is_read_in_one_scan(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_scans, "LARGE_TABLE_BYTES", 32 << 20)
    scans = CountedScans(monkeypatch)
    assert sum(batch.num_rows for batch in stream_rows(table, ["k", "text"], batch_rows=1_000)) == ROWS - 21
    assert scans.rows == [-1]


def test_narrow_columns_of_a_large_table_are_soon_read_in_one_scan(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_scans, "FIRST_BATCH_ROWS", 100)
    monkeypatch.setattr(range_scans, "LARGE_TABLE_BYTES", ROWS * TEXT_BYTES // 10)
    monkeypatch.setattr(range_scans, "_is_large", lambda _: True)
    expected = scan(table, ["k"], row_ids=True)
    scans = CountedScans(monkeypatch)
    batches = list(stream_rows(table, ["k"], batch_rows=1_000))
    assert pa.Table.from_batches(batches).equals(expected)
    assert scans.rows == [2, 16, 128, -1]


def test_a_range_that_overflows_is_read_again_with_fewer_rows(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    start_scan = lance.LanceDataset.scanner

    def scanner(dataset: lance.LanceDataset, *args: Any, **options: Any) -> Any:
        if (options.get("limit") or 0) > 4:
            raise pa.ArrowInvalid("Offset overflow error: 2240000000")
        return start_scan(dataset, *args, **options)

    expected = scan(table, ["text"], row_ids=True)
    monkeypatch.setattr(lance.LanceDataset, "scanner", scanner)
    batches = list(stream_rows(table, ["text"], batch_rows=1_000))
    assert pa.Table.from_batches(batches).equals(expected)


@pytest.mark.parametrize("name", ["no filter", "most rows"])
def test_a_failed_read_is_a_storage_error(table: Table, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is broken")

    batches = stream_rows(table, ["text"], FILTERS[name], batch_rows=1_000)
    monkeypatch.setattr(lance.LanceDataset, "scanner" if name == "no filter" else "_take_rows", fail)
    with pytest.raises(StorageError, match="disk is broken"):
        list(batches)


def test_rows_that_become_wide_are_read_in_ranges_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_scans, "FIRST_BATCH_ROWS", 100)
    monkeypatch.setattr(range_scans, "_LOCAL_RANGE_BYTES", RANGE_BYTES)
    monkeypatch.setattr(range_scans, "LARGE_TABLE_BYTES", ROWS * TEXT_BYTES // 10)
    monkeypatch.setattr(range_scans, "_is_large", lambda _: True)
    with new_graph("node P { k: String @key  text: String? }") as graph:
        texts = ("x" if number < ROWS // 2 else f"{number} ".ljust(TEXT_BYTES, "x") for number in range(ROWS))
        graph.insert("P", *({"k": f"{number:04}", "text": text} for number, text in enumerate(texts)))
        (table_key,) = graph.snapshot.tables
        table = graph.snapshot.table(table_key)
        expected = scan(table, ["text"], row_ids=True)
        scans = CountedScans(monkeypatch)
        batches = list(stream_rows(table, ["text"], batch_rows=50))
    assert pa.Table.from_batches(batches).combine_chunks().equals(expected.combine_chunks())
    first_scan = scans.rows.index(-1)
    assert len([rows for rows in scans.rows[first_scan:] if rows > 0]) >= 5


def test_many_short_batches_are_passed_on_before_a_block_is_full() -> None:
    ids = (pa.record_batch({ROW_ID: pa.array([number], pa.uint64())}) for number in range(1_000))
    arrays = list(range_scans._join_short_batches(ids, BlockSize(1 << 20)))
    assert [row_id for array in arrays for row_id in array.to_pylist()] == list(range(1_000))
    assert max(map(len, arrays)) <= range_scans._MAX_JOINED_BATCHES
