"""Find rows by column values, a batch of values at a time.

This module chooses between an index lookup and a scan, because reading whole columns is faster than looking up each
value of a long list. Blobs are returned as bytes. During a write, however, large blobs are returned as placeholders.
Row ids and addresses are optional.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.values import sha256_hex

from .blobs import row_schema
from .bounded_scans import scan_table, scan_table_batches, take_stored_rows
from .failures import as_storage_errors, panics_as_errors, to_storage_error
from .index_fallback import SCAN_FAILURES, scan_batches_with_fallback, scan_with_fallback
from .large_blobs import blob_columns, has_large_blobs, with_content_digests, with_placeholders
from .pending_blobs import running_write
from .scan import ROW_ADDRESS, ROW_ID
from .substrait import filter_constants
from .table import Table
from .wide_rows import take_positions

_MAX_INDEXED_VALUES = 256  # up to 256 values are always looked up in the index
_CHUNK_ROWS = 1 << 20  # rows filtered per chunk
_CHUNK_BYTES = 512 << 20  # bytes filtered per chunk
_ROWS_PER_VALUE = 50  # one index lookup takes about as long as scanning 50 rows


def find(
    table: Table,
    wanted_values: Mapping[str, pa.Array | Sequence[Any]],
    columns: Sequence[str],
    *,
    with_row_ids: bool = False,
) -> pa.Table:
    """Return the rows in which every column in `wanted_values` has one of the values listed for it.

    `with_row_ids` adds the columns `_rowid` and `_rowaddr`. A null value never matches.
    """
    wanted_values = {
        column_name: _as_column_type(table, column_name, values) for column_name, values in wanted_values.items()
    }
    fewest_values = min(len(values) for values in wanted_values.values())
    if fewest_values <= max(_MAX_INDEXED_VALUES, table.dataset.count_rows() // _ROWS_PER_VALUE):
        conditions = [
            pc.field(column_name).isin(filter_constants(values)) for column_name, values in wanted_values.items()
        ]
        return read_rows(table, columns, reduce(and_, conditions), with_row_ids=with_row_ids)
    return _scan_and_filter(table, wanted_values, columns, with_row_ids)


def read_rows(
    table: Table, columns: Sequence[str], filter_expression: pc.Expression | None = None, *, with_row_ids: bool = False
) -> pa.Table:
    """Return all rows, or the rows that match a filter, with blobs as bytes."""
    return scan_with_fallback(
        table,
        filter_expression,
        lambda use_index: _scan_rows(table, columns, filter_expression, with_row_ids, use_index),
    )


def _scan_rows(
    table: Table, columns: Sequence[str], filter_expression: pc.Expression | None, with_row_ids: bool, use_index: bool
) -> pa.Table:
    """Return the matching rows. During a write, large blobs are returned as placeholders."""
    if not _replaces_blobs(table, columns):
        return scan_table(table, columns, **_scan_options(filter_expression, with_row_ids, use_index))
    described_rows = scan_table(
        table, columns, **_scan_options(filter_expression, True, use_index, blob_handling="blobs_descriptions")
    )
    if not has_large_blobs(table, described_rows):  # reading all small blobs at once is faster
        return scan_table(table, columns, **_scan_options(filter_expression, with_row_ids, use_index))
    rows = replace_described_blobs(table, described_rows)
    return rows if with_row_ids else rows.select(list(columns))


def _replaces_blobs(table: Table, columns: Sequence[str]) -> bool:
    """Return whether large blobs in these columns are read as placeholders, as they are while a write is running."""
    return running_write() is not None and bool(blob_columns(table, list(columns)))


def replace_described_blobs(table: Table, described_rows: pa.Table) -> pa.Table:
    """Return rows in which bytes or placeholders replace Lance's blob descriptions.

    The rows must have row ids and addresses.
    """
    write, names = running_write(), blob_columns(table, described_rows.column_names)
    return with_placeholders(table, described_rows, names, write, read_blobs) if write is not None else described_rows


def read_indexed(table: Table, columns: Sequence[str], filter_expression: pc.Expression) -> pa.Table:
    """Return the rows that match a filter, with row ids; raise an error if an index cannot be read."""
    try:
        with panics_as_errors():
            return scan_table(table, columns, **_scan_options(filter_expression, True, True))
    except (*SCAN_FAILURES, ValueError, RuntimeError) as error:
        raise to_storage_error(error, effect="none") from error


def read_unindexed(table: Table, columns: Sequence[str], *, with_row_ids: bool = False) -> pa.Table:
    """Return all rows without using an index, so that the result of an index lookup can be checked against them."""
    with as_storage_errors("none"):
        return scan_table(table, columns, **_scan_options(None, with_row_ids, False))


def read_batches(
    table: Table, columns: Sequence[str], filter_expression: pc.Expression | None = None, *, with_row_ids: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that `read_rows` would return, batch by batch."""
    if not _replaces_blobs(table, columns):
        return scan_batches_with_fallback(
            table,
            filter_expression,
            lambda use_index: scan_table_batches(
                table, columns, **_scan_options(filter_expression, with_row_ids, use_index)
            ),
        )
    described_batches = scan_batches_with_fallback(
        table,
        filter_expression,
        lambda use_index: scan_table_batches(
            table, columns, **_scan_options(filter_expression, True, use_index, blob_handling="blobs_descriptions")
        ),
    )
    batch_columns = [*columns, *((ROW_ID, ROW_ADDRESS) if with_row_ids else ())]
    return _replace_in_batches(table, described_batches, batch_columns)


def _replace_in_batches(
    table: Table, described_batches: Iterator[pa.RecordBatch], batch_columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    for batch in described_batches:
        rows = replace_described_blobs(table, pa.Table.from_batches([batch]))
        yield from rows.select(list(batch_columns)).combine_chunks().to_batches()


def take_with_blobs(table: Table, row_ids: pa.Array, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows with these row ids, in the given order and with blobs as bytes.

    All columns are returned by default. During a write, large blobs are returned as placeholders.
    """
    column_names = list(columns) if columns is not None else table.schema.names
    if not len(row_ids):  # without this, Lance would build the row ids of the whole version
        return row_schema(table.schema).empty_table().select(column_names)
    if _replaces_blobs(table, column_names):
        return replace_described_blobs(table, take_described(table, row_ids, column_names)).select(column_names)
    blob_names = blob_columns(table, column_names)
    plain_columns = [column_name for column_name in column_names if column_name not in blob_names]
    with as_storage_errors("none"):
        unordered_rows = take_stored_rows(table, row_ids, [*plain_columns, ROW_ID])
    positions = pc.index_in(row_ids, value_set=unordered_rows[ROW_ID].combine_chunks())
    ordered_rows = take_positions(unordered_rows, positions).select(plain_columns)
    for column_name in blob_names:
        ordered_rows = ordered_rows.append_column(column_name, read_blobs(table, column_name, row_ids))
    return ordered_rows.select(column_names)


def take_described(table: Table, row_ids: pa.Array, columns: Sequence[str]) -> pa.Table:
    """Return the rows with these row ids in the given order, with blob descriptions, row ids and addresses."""
    with as_storage_errors("none"):
        unordered_rows = take_stored_rows(table, row_ids, [*columns, ROW_ID, ROW_ADDRESS])
    positions = pc.index_in(row_ids, value_set=unordered_rows[ROW_ID].combine_chunks())
    return take_positions(unordered_rows, positions)


def read_blobs(table: Table, column_name: str, row_ids: pa.Array) -> pa.Array:
    """Return the blobs in the given rows as bytes, in the order of the row ids."""
    with as_storage_errors("none"):
        blob_files = table.dataset.take_blobs(column_name, ids=row_ids.to_pylist())
        blob_bytes = [None if blob_file is None else blob_file.read() for blob_file in blob_files]
    return pa.array(blob_bytes, pa.large_binary())


def json_values(values: pa.Array | Sequence[Any]) -> list[Any]:
    """Convert values to JSON values that `find` accepts: dates and timestamps become integers."""
    if not isinstance(values, pa.Array):
        return list(values)
    integer_types = {"date32[day]": pa.int32(), "timestamp[ms, tz=UTC]": pa.int64()}
    json_list: list[Any] = values.cast(integer_types.get(str(values.type), values.type)).to_pylist()
    return json_list


def rows_digest(rows: pa.Table | str) -> str:
    """Return a digest of rows that does not depend on their order."""
    if isinstance(rows, str):
        return rows
    rows = with_content_digests(rows)
    sortable_columns = [column.name for column in rows.schema if not pa.types.is_nested(column.type)]
    sorted_rows = rows.sort_by([(column_name, "ascending") for column_name in sortable_columns])
    sink = pa.BufferOutputStream()
    bare_schema = pa.schema([pa.field(column.name, column.type) for column in rows.schema])
    with pa.ipc.new_stream(sink, bare_schema) as writer:
        writer.write_table(sorted_rows.cast(bare_schema).combine_chunks())
    return sha256_hex(sink.getvalue().to_pybytes())


def _as_column_type(table: Table, column_name: str, values: pa.Array | Sequence[Any]) -> pa.Array:
    column_type = table.schema.field(column_name).type
    return values.cast(column_type) if isinstance(values, pa.Array) else pa.array(values, column_type)


def _scan_options(
    filter_expression: pc.Expression | None, with_row_ids: bool, use_index: bool, blob_handling: str = "all_binary"
) -> dict[str, Any]:
    return {
        "filter": filter_expression,
        "with_row_id": with_row_ids,
        "with_row_address": with_row_ids,
        "blob_handling": blob_handling,
        "use_scalar_index": use_index,
    }


def _scan_and_filter(
    table: Table, wanted_values: Mapping[str, pa.Array], columns: Sequence[str], with_row_ids: bool
) -> pa.Table:
    """Scan and filter rows, keeping only one chunk and the matching rows in memory."""
    read_columns = list(dict.fromkeys([*columns, *wanted_values]))
    matching_parts = [read_rows(table, read_columns, pc.scalar(False), with_row_ids=with_row_ids)]
    pending_batches = []
    pending_rows = pending_bytes = 0
    for batch in read_batches(table, read_columns, with_row_ids=with_row_ids):
        pending_batches.append(batch)
        pending_rows += batch.num_rows
        pending_bytes += batch.nbytes
        if pending_rows > _CHUNK_ROWS or pending_bytes > _CHUNK_BYTES:
            matching_parts.append(_filter_batches(pending_batches, wanted_values))
            pending_batches, pending_rows, pending_bytes = [], 0, 0
    if pending_batches:
        matching_parts.append(_filter_batches(pending_batches, wanted_values))
    return pa.concat_tables(matching_parts).select([*columns, *((ROW_ID, ROW_ADDRESS) if with_row_ids else ())])


def _filter_batches(pending_batches: list[pa.RecordBatch], wanted_values: Mapping[str, pa.Array]) -> pa.Table:
    """Return the matching rows in a chunk. Large chunks amortize the cost of the hash table that each filter builds."""
    remaining_rows = pa.Table.from_batches(pending_batches)
    for column_name, values in wanted_values.items():
        remaining_rows = remaining_rows.filter(pc.is_in(remaining_rows[column_name], value_set=values, skip_nulls=True))
    return remaining_rows
