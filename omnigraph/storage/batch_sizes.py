"""How many rows to read or write at a time, given the size of their values.

An Arrow array holds at most 2 GiB of text, and Lance fails or panics if a batch needs more. The file size does not
indicate how much memory the values need, because compression shrinks repetitive text several thousandfold. Scans
therefore start with few rows per batch, and start again with fewer rows if a batch is too large. If all rows were
narrow, the next scan reads larger batches. This module never opens a table.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

FIRST_BATCH_ROWS = 1024  # for narrow rows, batches of this size are about as fast as larger ones
MAX_BATCH_BYTES = 64 << 20  # the target for a batch; a batch with a single row may be larger
_MAX_BATCH_ROWS = 8192  # maximum number of rows per batch in later scans, if all rows are narrow
_WIDTH_MARGIN = 16  # later rows may be this many times as wide as the average row in the widest batch
_OVERFLOW_DIVISOR = 16  # how many times fewer rows to read after an overflow, when the size of the rows is unknown
_MAX_GROWTH = 8  # the number of rows grows at most eightfold per block, because later values may be longer
_MAX_BLOCK_ROWS = 1 << 18
_MAX_REMEMBERED = 1024
_ID_COLUMNS = frozenset(("id", "src", "dst"))
_remembered_rows: OrderedDict[str, int] = OrderedDict()

StartScan = Callable[[int], Any]  # start a scan with this number of rows per batch; returns a `RecordBatchReader`


def has_long_values(schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Return whether a table's columns may contain values of any length.

    >>> schema = pa.schema({"id": pa.string(), "age": pa.int32(), "text": pa.string()})
    >>> has_long_values(schema, ["id", "age"]), has_long_values(schema, ["age", "text"])
    (False, True)
    """
    return any(
        column.name in columns and column.name not in _ID_COLUMNS and fixed_width(column.type) is None
        for column in schema
    )


def fixed_width(data_type: pa.DataType) -> int | None:
    """Return the number of bytes that each value of a type takes, or None if values differ in size."""
    if kinds.is_fixed_size_list(data_type):
        item_width = fixed_width(data_type.value_type)
        return None if item_width is None else item_width * data_type.list_size
    try:
        return -(-int(data_type.bit_width) // 8)
    except ValueError:
        return None


def batch_rows_for(row_bytes: int, max_rows: int) -> int:
    """Return how many rows of a known size fit into a batch.

    >>> batch_rows_for(100, 1024), batch_rows_for(1 << 20, 1024)
    (1024, 64)
    """
    return max(1, min(max_rows, MAX_BATCH_BYTES // max(row_bytes, 1)))


@dataclass(slots=True)
class BlockSize:
    """The number of rows to read next, which depends on the size of the rows read before."""

    rows: int = 0
    max_rows: int = _MAX_BLOCK_ROWS
    target_bytes: int | None = None  # `MAX_BATCH_BYTES` by default

    def __post_init__(self) -> None:
        self.rows = self.rows or FIRST_BATCH_ROWS

    def adapt(self, row_count: int, value_bytes: int) -> None:
        """Choose the next number of rows after reading `row_count` rows."""
        fitting_rows = (self.target_bytes or MAX_BATCH_BYTES) * row_count // max(value_bytes, 1)
        self.rows = max(1, min(fitting_rows, self.rows * _MAX_GROWTH, self.max_rows))

    def shrink(self, row_count: int) -> None:
        """Choose a smaller number of rows after an overflow."""
        self.rows = max(1, row_count // _OVERFLOW_DIVISOR)


def read_batches_of_bounded_size(scan_key: str, start_scan: StartScan) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a scan in batches of bounded size.

    Every scan that `start_scan` starts must return the same rows in the same order, because rows that were already
    yielded are skipped. `scan_key` identifies the scanned values, so that a later scan of the same values starts with a
    batch size that is small enough.
    """
    batch_rows, yielded_rows, widest_row = _remembered_rows.get(scan_key, FIRST_BATCH_ROWS), 0, 1
    while True:
        smaller_batch_rows = batch_rows
        try:
            for batch in _skip_rows(start_scan(batch_rows), yielded_rows):
                yielded_rows, batch_bytes = yielded_rows + batch.num_rows, batch.nbytes
                widest_row = max(widest_row, batch_bytes // max(batch.num_rows, 1))
                yield batch
                if batch_bytes > 2 * MAX_BATCH_BYTES and batch_rows > 1:
                    smaller_batch_rows = max(1, min(_fitting_rows(batch.num_rows, batch_bytes), batch_rows // 2))
                    break
        except BaseException as error:  # Lance panics are not exceptions
            if batch_rows == 1 or not is_overflow(error):
                raise
            smaller_batch_rows = max(1, batch_rows // _OVERFLOW_DIVISOR)
        if smaller_batch_rows == batch_rows:
            if batch_rows >= FIRST_BATCH_ROWS and yielded_rows > batch_rows:
                _remember_rows(scan_key, max(batch_rows, batch_rows_for(_WIDTH_MARGIN * widest_row, _MAX_BATCH_ROWS)))
            return
        batch_rows = smaller_batch_rows
        _remember_rows(scan_key, batch_rows)


def read_table_in_bounded_batches(scan_key: str, start_scan: StartScan) -> pa.Table:
    """Return all rows of a scan, in chunks of bounded size."""
    schemas: list[pa.Schema] = []

    def start_reader(batch_rows: int) -> Any:
        reader = start_scan(batch_rows)
        schemas.append(reader.schema)
        return reader

    batches = list(read_batches_of_bounded_size(scan_key, start_reader))
    return pa.Table.from_batches(batches, schemas[0])


def read_in_blocks(
    row_count: int, read: Callable[[int, int], pa.Table], block_size: BlockSize | None = None
) -> Iterator[pa.Table]:
    """Yield the rows that `read` returns, in blocks of bounded size.

    `read` is called with the position of the first row and the number of rows, and must return all of these rows.
    """
    block_size, first_row = block_size or BlockSize(), 0
    while first_row < row_count:
        block_rows = min(block_size.rows, row_count - first_row)
        try:
            rows = read(first_row, block_rows)
        except BaseException as error:  # Lance panics are not exceptions
            if block_rows == 1 or not is_overflow(error):
                raise
            block_size.shrink(block_rows)
            continue
        first_row += block_rows
        block_size.adapt(block_rows, rows.nbytes)
        yield rows


def take_in_blocks(
    keys: pa.Array, take: Callable[[pa.Array], pa.Table], block_size: BlockSize | None = None
) -> Iterator[pa.Table]:
    """Yield the rows that `take` returns for the keys, in the order of the keys and in blocks of bounded size."""
    return read_in_blocks(len(keys), lambda start, count: take(keys.slice(start, count)), block_size)


def take_all(keys: pa.Array, take: Callable[[pa.Array], pa.Table]) -> pa.Table:
    """Return the rows for the keys (at least one), taken in blocks of bounded size."""
    blocks = list(take_in_blocks(keys, take))
    return blocks[0] if len(blocks) == 1 else pa.concat_tables(blocks)


def is_overflow(error: BaseException) -> bool:
    """Return whether a read failed because its values do not fit into one array.

    Such a failure can be recognized only by its message. If Lance changes the message, such a read fails instead of
    being repeated with fewer rows.
    """
    is_from_arrow = isinstance(error, Exception) or type(error).__name__ == "PanicException"
    return is_from_arrow and "overflow" in str(error).lower()


def _fitting_rows(row_count: int, value_bytes: int) -> int:
    return MAX_BATCH_BYTES * row_count // max(value_bytes, 1)


def _skip_rows(batches: Any, skipped_rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if skipped_rows >= batch.num_rows:
            skipped_rows -= batch.num_rows
        else:
            yield batch.slice(skipped_rows) if skipped_rows else batch
            skipped_rows = 0


def _remember_rows(scan_key: str, batch_rows: int) -> None:
    _remembered_rows[scan_key] = batch_rows
    while len(_remembered_rows) > _MAX_REMEMBERED:
        _remembered_rows.popitem(last=False)
