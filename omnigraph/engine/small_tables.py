"""Recognize tables that fit into one batch, so that a stream can read them from the columns in memory.

The size of a table is known only after its values have been read, because text may be compressed. The first stream
therefore scans the table, and later streams use its columns in memory. This module must never load a column, and the
order of rows must not depend on what is in memory: rows that fit into one batch are always ordered by row id.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from omnigraph.storage import range_scans
from omnigraph.storage.scan import row_id_array
from omnigraph.values.table_key import TableKey

from .execution_context import ExecutionContext
from .query_caches import caches_of

_ENTRY_BYTES = 200  # the approximate size of a cache entry


def is_known_as_small(context: ExecutionContext, table_key: TableKey, column_names: Iterable[str]) -> bool:
    """Return whether earlier streams have found that these columns of a table fit into one batch."""
    identity = context.table_identity(table_key)
    sizes = caches_of(context).memory.get_all([(*identity, "bytes", name) for name in column_names])
    return bool(sizes) and None not in sizes and sum(filter(None, sizes)) <= range_scans.BATCH_BYTES


def remember_small_table(
    context: ExecutionContext, table_key: TableKey, column_names: Iterable[str], pieces: Iterator[pa.Table]
) -> Iterator[pa.Table]:
    """Yield the pieces of a whole table. If there is only one piece, record the size of each column."""
    memory, (root, location, version) = caches_of(context).memory, context.table_identity(table_key)
    row_count = context.row_count(table_key)
    for piece in pieces:
        if piece.num_rows == row_count and piece.nbytes <= range_scans.BATCH_BYTES:
            for name in column_names:
                family = (root, location, "bytes", name)
                memory.put((root, location, version, "bytes", name), piece[name].nbytes + 1, _ENTRY_BYTES, family)
        yield piece


def join_small_pieces(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Join pieces that fit into one batch, ordered by row id. If they do not fit, yield them as they are."""
    pending, pending_bytes = [], 0
    for piece in pieces:
        pending.append(piece)
        pending_bytes += piece.nbytes
        if pending_bytes > range_scans.BATCH_BYTES:
            yield from pending
            yield from pieces
            return
    if pending:
        yield _order_by_row_id(pa.concat_tables(pending).combine_chunks())


def _order_by_row_id(rows: pa.Table) -> pa.Table:
    row_ids = row_id_array(rows)
    return rows if bool((row_ids[1:] > row_ids[:-1]).all()) else rows.take(pa.array(np.argsort(row_ids)))
