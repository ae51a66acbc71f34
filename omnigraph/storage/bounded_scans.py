"""Scan a table in batches of bounded size, and take rows in blocks of bounded size.

For columns whose values all have the same size, Lance's defaults apply. Callers convert failures to typed errors.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .batch_sizes import has_long_values, read_batches_of_bounded_size, read_table_in_bounded_batches, take_all
from .table import Table


def scan_table(table: Table, columns: Sequence[str], **scan_options: Any) -> pa.Table:
    """Return the rows of a scan. `scan_options` are the options of Lance's scanner, except for the batch size."""
    if not _reads_long_values(table, columns, scan_options):
        rows: pa.Table = table.dataset.scanner(columns=list(columns), **scan_options).to_table()
        return rows
    return read_table_in_bounded_batches(
        _scan_key(table, columns), lambda batch_rows: _start_scan(table, columns, batch_rows, scan_options)
    )


def scan_table_batches(
    table: Table, columns: Sequence[str], *, batch_rows: int | None = None, **scan_options: Any
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a scan in batches of at most `batch_rows` rows."""
    if not _reads_long_values(table, columns, scan_options):
        yield from _start_scan(table, columns, batch_rows, scan_options)
        return
    yield from read_batches_of_bounded_size(
        _scan_key(table, columns),
        lambda fitting_rows: _start_scan(table, columns, min(fitting_rows, batch_rows or fitting_rows), scan_options),
    )


def take_stored_rows(table: Table, row_ids: pa.Array, columns: Sequence[str]) -> pa.Table:
    """Return the rows with these row ids, in arbitrary order. `columns` may include `_rowid` and `_rowaddr`."""

    def take(block_ids: pa.Array) -> pa.Table:
        rows: pa.Table = table.dataset._take_rows(block_ids, columns=list(columns))
        return rows

    return take_all(row_ids, take) if has_long_values(table.schema, columns) else take(row_ids)


def take_from_fragment(table: Table, fragment: Any, positions: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return the rows of a fragment at these positions, which do not count deleted rows."""

    def take(block_positions: pa.Array) -> pa.Table:
        return pa.table(fragment.take(block_positions.to_pylist(), columns=list(columns)))

    position_array = pa.array(np.asarray(positions, np.int64))
    return take_all(position_array, take) if has_long_values(table.schema, columns) else take(position_array)


def _start_scan(table: Table, columns: Sequence[str], batch_rows: int | None, scan_options: dict[str, Any]) -> Any:
    return table.dataset.scanner(columns=list(columns), batch_size=batch_rows, **scan_options).to_reader()


def _reads_long_values(table: Table, columns: Sequence[str], scan_options: dict[str, Any]) -> bool:
    """Return whether a scan may read values of any length. A filter may read any column of the table."""
    schema = table.schema
    return has_long_values(schema, columns if scan_options.get("filter") is None else schema.names)


def _scan_key(table: Table, columns: Sequence[str]) -> str:
    return " ".join([str(table.dataset.uri), *columns])
