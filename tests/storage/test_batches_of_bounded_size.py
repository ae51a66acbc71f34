"""Scans yield batches of bounded size, and rows in memory are processed in pieces of bounded size."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph
from omnigraph.storage import batch_sizes, wide_rows
from omnigraph.storage.find_rows import read_batches, take_with_blobs
from omnigraph.storage.fragments import list_fragment_ids, read_fragments
from omnigraph.storage.scan import ROW_ID, scan, scan_batches
from omnigraph.storage.table import Table
from omnigraph.storage.value_equality import same_rows
from omnigraph.testing import graph as new_graph

BATCH_BYTES = 1 << 20
COLUMNS = ["id", "k", "text"]
TEXTS = [*("short" for _ in range(1_500)), *("x" * 20_000 for _ in range(1_200)), None, "last"]
READERS: dict[str, Callable[[Table], Iterator[pa.RecordBatch]]] = {
    "scan_batches": lambda table: scan_batches(table, COLUMNS),
    "read_batches": lambda table: read_batches(table, COLUMNS),
    "read_fragments": lambda table: read_fragments(table, list_fragment_ids(table), COLUMNS),
    "scan": lambda table: iter(scan(table, COLUMNS).to_batches()),
}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sizes, "MAX_BATCH_BYTES", BATCH_BYTES)


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with new_graph("node P { k: I64 @key  text: String? }") as created:
        created.insert("P", *({"k": number, "text": text} for number, text in enumerate(TEXTS)))
        yield created


@pytest.fixture
def table(graph: Graph) -> Table:
    (table_key,) = graph.snapshot.tables
    return graph.snapshot.table(table_key)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_yields_all_rows_in_order_in_bounded_batches(table: Table, name: str) -> None:
    batches = list(READERS[name](table))
    assert pa.Table.from_batches(batches)["text"].to_pylist() == TEXTS
    oversized = [batch.num_rows for batch in batches if batch.nbytes > 2 * BATCH_BYTES]
    assert len(oversized) <= 1, "only the first batch with long values is too large"
    batches = list(READERS[name](table))
    assert max(batch.nbytes for batch in batches) <= 2 * BATCH_BYTES, "the next scan remembers the size of the rows"


def test_rows_are_taken_in_blocks(table: Table) -> None:
    row_ids = scan(table, ["id"], row_ids=True)[ROW_ID].combine_chunks()
    reversed_ids = row_ids.take(pa.array(np.arange(len(row_ids))[::-1]))
    rows = take_with_blobs(table, reversed_ids)
    assert rows["text"].to_pylist() == TEXTS[::-1]
    blocks = list(batch_sizes.take_in_blocks(row_ids, lambda block: take_with_blobs(table, block)))
    assert sum(block.num_rows for block in blocks) == len(TEXTS)
    assert sum(block.nbytes > 2 * BATCH_BYTES for block in blocks) <= 1


def batches_of(row_count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    numbers = pa.array(range(row_count))
    return iter(pa.table({"n": numbers}).to_batches(max_chunksize=batch_rows))


@pytest.mark.parametrize("largest_batch", [1, 3, 64, 5_000])
def test_a_scan_that_overflows_continues_with_smaller_batches(largest_batch: int) -> None:
    def scan_once(batch_rows: int) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches_of(2_000, batch_rows)):
            if number == 1 and batch.num_rows > largest_batch:
                raise pa.ArrowInvalid("Offset overflow error: 2240000000")
            yield batch

    batches = list(batch_sizes.read_batches_of_bounded_size(f"overflow {largest_batch}", scan_once))
    assert [number for batch in batches for number in batch["n"].to_pylist()] == list(range(2_000))


def test_an_overflow_of_a_single_row_is_raised() -> None:
    def scan_once(_: int) -> Iterator[pa.RecordBatch]:
        raise pa.ArrowInvalid("Offset overflow error: 2240000000")

    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        list(batch_sizes.read_batches_of_bounded_size("one row", scan_once))


def test_other_failures_are_not_repeated() -> None:
    starts = []

    def scan_once(batch_rows: int) -> Iterator[pa.RecordBatch]:
        starts.append(batch_rows)
        raise OSError("the file is damaged")

    with pytest.raises(OSError, match="damaged"):
        list(batch_sizes.read_batches_of_bounded_size("damaged", scan_once))
    assert len(starts) == 1


IDS = [f"{(number * 7) % 100:03}" for number in range(100)]
VALUES = [None if number % 3 == 1 else f"text {number}" for number in range(100)]
ROWS = pa.table(
    {
        "id": pa.chunked_array([IDS[:50], IDS[50:]]),
        "text": pa.chunked_array([VALUES[:30], VALUES[30:]]),
        "tags": pa.chunked_array([[["a", text] for text in IDS]]),
        "n": pa.chunked_array([list(range(100))]),
    }
)


@pytest.mark.parametrize("joined_bytes", [1, 100, 1_000, 1 << 30])
def test_large_rows_are_processed_like_small_ones(joined_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    positions = pa.array([3, None, 99, 3, 0, 42])
    ascending = pa.array([0, 5, 98])
    shuffled = ROWS.take(pa.array(np.arange(100)[::-1]))
    expected = (
        ROWS.take(positions).to_pylist(),
        ROWS.take(ascending).to_pylist(),
        ROWS.sort_by("id").to_pylist(),
        same_rows(ROWS, shuffled).tolist(),
    )
    monkeypatch.setattr(wide_rows, "MAX_JOINED_BYTES", joined_bytes)
    assert expected == (
        wide_rows.take_positions(ROWS, positions).to_pylist(),
        wide_rows.take_positions(ROWS, ascending).to_pylist(),
        wide_rows.sort_by_id(ROWS).to_pylist(),
        same_rows(ROWS, shuffled).tolist(),
    )
    assert wide_rows.take_positions(ROWS, pa.array([], pa.int64())).schema == ROWS.schema
