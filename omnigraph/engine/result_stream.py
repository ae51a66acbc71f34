"""Return results in batches. Where possible, memory use does not grow with the size of the result.

The first scan is read in batches, and each batch passes through the rest of the plan. Rows of a large table are in
storage order, and rows of a small table are ordered by row id. Unions run as a whole, and so do plans that need all
rows at once (for sorting, grouping, ranking or distinct rows). Their results are then split into batches.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.storage import scan as storage
from omnigraph.storage.range_scans import stream_rows
from omnigraph.values.table_key import TableKey

from .execution_context import ExecutionContext, ScannedRows
from .expressions.evaluate import TableSource, true_mask
from .operators.dispatch import run_operators
from .operators.fetch import columns_read
from .operators.project import project, projected_columns
from .operators.rows import IntArray, Rows, VariableBinding
from .operators.scan import filtered_row_ids, split_filters
from .search.rank import has_scores
from .small_tables import is_known_as_small, join_small_pieces, remember_small_table

BATCH_ROWS = 16_384


def can_stream(read_plan: plan.ReadPlan | plan.UnionPlan) -> TypeGuard[plan.ReadPlan]:
    """Return whether rows can be returned before all of them have been computed."""
    if isinstance(read_plan, plan.UnionPlan):
        return False
    needs_all_rows = read_plan.aggregated or read_plan.distinct or bool(read_plan.order) or has_scores(read_plan)
    return not needs_all_rows and isinstance(read_plan.operators[0], plan.NodeScan)


def stream_batches(
    context: ExecutionContext,
    read_plan: plan.ReadPlan | plan.UnionPlan,
    bounds: tuple[int, int | None],
    execute: Callable[[ExecutionContext, plan.ReadPlan | plan.UnionPlan], pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Yield the result in batches. The time in which the reader processes a batch does not count toward the timeout.

    `bounds` holds the offset of the first row and the end offset, which is None if there is no limit.
    """
    context.meter.restart_time()
    try:
        with closing(_compute_batches(context, read_plan, bounds, execute)) as batches:
            for batch in batches:
                with context.meter.suspended():
                    yield batch
    finally:
        context.meter.leave_gate()


def _compute_batches(
    context: ExecutionContext,
    read_plan: plan.ReadPlan | plan.UnionPlan,
    bounds: tuple[int, int | None],
    execute: Callable[[ExecutionContext, plan.ReadPlan | plan.UnionPlan], pa.Table],
) -> Generator[pa.RecordBatch, None, None]:
    if can_stream(read_plan):
        yield from _slice_batches(_stream_tables(context, read_plan), *bounds)
    else:
        table = execute(context, read_plan)
        context.meter.leave_gate()  # a slow reader must not block other queries
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _slice_batches(tables: Iterator[pa.Table], skip: int, stop: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows from `skip` up to, but not including, `stop`."""
    rows_seen = 0
    if stop == 0:
        return
    for table in tables:
        first_row = min(max(skip - rows_seen, 0), table.num_rows)
        end_row = table.num_rows if stop is None else min(stop - rows_seen, table.num_rows)
        rows_seen += table.num_rows
        if first_row < end_row:
            yield from table.slice(first_row, end_row - first_row).to_batches(max_chunksize=BATCH_ROWS)
        if stop is not None and rows_seen >= stop:
            return


def _stream_tables(context: ExecutionContext, read_plan: plan.ReadPlan) -> Iterator[pa.Table]:
    first_scan, *later_operators = read_plan.operators
    if not isinstance(first_scan, plan.NodeScan):
        return
    shown_columns = {
        column_name
        for variable, column_name in projected_columns(context.catalog, read_plan.columns)
        if variable == first_scan.variable
    }
    for seed_rows in _scan_seed_rows(context, first_scan, shown_columns):
        used_bytes = context.meter.used_bytes
        rows = run_operators(context, seed_rows, later_operators)
        context.meter.leave_gate()
        for batch_start in range(0, rows.count, BATCH_ROWS):
            batch_table = project(context, rows.slice(batch_start, batch_start + BATCH_ROWS), read_plan.columns)
            context.meter.leave_gate()  # the projection may have entered the gate again to load columns
            yield batch_table
        context.meter.used_bytes = used_bytes


def _scan_seed_rows(context: ExecutionContext, scan: plan.NodeScan, shown_columns: set[str]) -> Iterator[Rows]:
    """Yield the nodes of a scan in batches, together with the columns that appear in the result."""
    table_keys = [TableKey.node(type_name) for type_name in scan.implementers]
    if context.catalog.node(scan.type_name) is not None:
        table_keys = [TableKey.node(scan.type_name)]
    for type_index, table_key in enumerate(table_keys):
        filter_columns = {column_name for _, column_name in columns_read(*scan.filters)}
        if is_known_as_small(context, table_key, shown_columns | filter_columns):
            yield _bind_rows(scan, table_keys, type_index, filtered_row_ids(context, table_key, scan.filters))
            continue
        pieces = _scan_pieces(context, table_key, scan, shown_columns)
        if context.row_count(table_key) <= BATCH_ROWS:
            pieces = join_small_pieces(pieces)
            if not scan.filters:
                pieces = remember_small_table(context, table_key, shown_columns, pieces)
        for piece in pieces:
            row_ids = storage.row_id_array(piece)
            context.scanned_rows[table_key] = ScannedRows(row_ids, piece)
            yield _bind_rows(scan, table_keys, type_index, row_ids)


def _scan_pieces(
    context: ExecutionContext, table_key: TableKey, scan: plan.NodeScan, shown_columns: set[str]
) -> Iterator[pa.Table]:
    """Yield the rows that pass the filters, in batches of bounded size and in storage order."""
    storage_filter, remaining_filters = split_filters(context, table_key, scan.filters)
    read_columns = sorted(shown_columns | {type_name for _, type_name in columns_read(*remaining_filters)})
    for batch in stream_rows(context.table(table_key), read_columns, storage_filter, batch_rows=BATCH_ROWS):
        context.meter.check_timeout()
        yield _filter_piece(context, pa.Table.from_batches([batch]), remaining_filters)


def _bind_rows(scan: plan.NodeScan, table_keys: Sequence[TableKey], type_index: int, row_ids: IntArray) -> Rows:
    type_indexes = np.full(len(row_ids), type_index, np.int16) if len(table_keys) > 1 else None
    return Rows(len(row_ids), {scan.variable: VariableBinding(tuple(table_keys), row_ids, type_indexes)})


def _filter_piece(
    context: ExecutionContext, piece: pa.Table, remaining_filters: tuple[plan.Predicate, ...]
) -> pa.Table:
    if not remaining_filters:
        return piece
    source = TableSource(piece, context.params)
    passing_mask: Any = np.logical_and.reduce([true_mask(source, predicate) for predicate in remaining_filters])
    return piece.filter(pa.array(passing_mask))
