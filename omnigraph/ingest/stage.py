"""Staging: convert a delta to a publish plan with new data files, deletions and requirements.

Rows that are known to be new are appended without reading the table. Other rows are updated by address and keep their
row ids. The inserts, updates and deletes for one table form a single operation.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.history.checksum_verification import make_intact_test
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.requirements import Requirement
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.declared_indexes import scalar_indexes
from omnigraph.rules.delta import Delta, TableDelta
from omnigraph.storage.blobs import row_schema, to_stored_rows
from omnigraph.storage.find_rows import take_with_blobs
from omnigraph.storage.patch_columns import PatchSize, pays_off, stage_patched_columns
from omnigraph.storage.stage_rows import stage_append, stage_change, stage_overwrite
from omnigraph.storage.table import StagedChange, Table
from omnigraph.storage.tail_compaction import with_tail_maintenance
from omnigraph.storage.wide_rows import take_positions
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from .patch_rows import PatchedTable


def stage(txn: WriteTxn, delta: Delta, operation: str, requirements: Iterable[Requirement] = ()) -> PublishPlan | None:
    """Build the plan for a delta, or return None if nothing would change.

    The delta's stored rows must already be resolved.
    """
    return _make_plan(txn, stage_tables(txn, delta), operation, requirements)


def stage_patches(
    txn: WriteTxn, patched_tables: "Iterable[PatchedTable]", operation: str, requirements: Iterable[Requirement] = ()
) -> PublishPlan | None:
    """Build the plan for patched rows, or return None if no row changes."""
    writes = {patched.table_key: _stage_patch(txn, patched) for patched in patched_tables if patched.rows.num_rows}
    return _make_plan(txn, writes, operation, requirements)


def _make_plan(
    txn: WriteTxn, writes: Mapping[TableKey, StagedChange], operation: str, requirements: Iterable[Requirement]
) -> PublishPlan | None:
    if not writes:
        return None
    if not txn.is_retry:
        writes = {table_key: _compact_small_tail(txn, table_key, staged) for table_key, staged in writes.items()}
    return PublishPlan(operation, writes, tuple(requirements), gc_epoch=txn.base.state.head.gc_epoch)


def _compact_small_tail(txn: WriteTxn, table_key: TableKey, staged: StagedChange) -> StagedChange:
    schema = read_schema(txn.store, txn.base.state.schema)
    index_columns = scalar_indexes(type_for_key(schema.ir.catalog, table_key))
    is_intact = make_intact_test(txn.store, txn.base.state)
    return with_tail_maintenance(txn.store, txn.table(table_key), staged, index_columns, is_intact)


def stage_tables(txn: WriteTxn, delta: Delta) -> Mapping[TableKey, StagedChange]:
    """Stage the changes to all tables that the delta affects."""
    staged = {
        table_key: _stage_table(txn, table_delta)
        for table_key, table_delta in delta.tables.items()
        if not table_delta.is_empty
    }
    return {table_key: table_delta for table_key, table_delta in staged.items() if table_delta is not None}


def _stage_table(txn: WriteTxn, table_delta: TableDelta) -> StagedChange | None:
    table = txn.table(table_delta.table_key)
    new_rows = to_stored_rows(table_delta.rows, table.schema)
    if table_delta.replaces_table:
        stored_rows = txn.base.state.tables[table_delta.table_key].row_count
        return stage_overwrite(txn.store, table, new_rows) if stored_rows or new_rows.num_rows else None
    is_replacement = table_delta.row_ids >= 0
    if not is_replacement.any() and not len(table_delta.removed_ids):
        return stage_append(txn.store, table, new_rows)
    return _stage_row_changes(txn, table, table_delta, new_rows)


def _stage_row_changes(txn: WriteTxn, table: Table, table_delta: TableDelta, rows: pa.Table) -> StagedChange:
    is_replacement = table_delta.row_ids >= 0
    removed_addresses: list[int] = table_delta.addresses[is_replacement].tolist()
    if table_delta.removed_rows is not None:
        removed_addresses += table_delta.removed_rows["_rowaddr"].to_pylist()
    kept_row_ids: list[int] = table_delta.row_ids[is_replacement].tolist()
    kept_positions, added_positions = (pa.array(np.flatnonzero(mask)) for mask in (is_replacement, ~is_replacement))
    return stage_change(
        txn.store,
        table,
        removed_addresses=removed_addresses,
        replacements=(kept_row_ids, take_positions(rows, kept_positions)) if kept_row_ids else None,
        added_rows=take_positions(rows, added_positions) if len(added_positions) else None,
    )


def _stage_patch(txn: WriteTxn, patched: "PatchedTable") -> StagedChange:
    """Stage either new columns or whole rows, whichever is likely to be cheaper."""
    table, columns = txn.table(patched.table_key), patched.rows.select(patched.patched_names)
    if pays_off(table, patch_size(patched), patched.patched_names):
        return stage_patched_columns(txn.store, table, patched.addresses, patched.row_ids, columns)
    whole_rows = patched_whole_rows(table, patched)
    replacements = patched.row_ids.tolist(), to_stored_rows(whole_rows, table.schema)
    return stage_change(txn.store, table, removed_addresses=patched.addresses.tolist(), replacements=replacements)


def patch_size(patched: "PatchedTable") -> PatchSize:
    """Return how many rows and bytes a patch changes, and which fragments it affects."""
    fragment_ids = np.unique(patched.addresses >> np.uint64(32)).tolist()
    column_bytes = patched.rows.select(patched.patched_names).nbytes
    return PatchSize(frozenset(fragment_ids), patched.rows.num_rows, column_bytes)


def patched_whole_rows(table: Table, patched: "PatchedTable") -> pa.Table:
    """Return the patched rows with all of the table's columns."""
    whole_rows = take_with_blobs(table, pa.array(patched.row_ids.astype(np.uint64)))
    whole_rows = whole_rows.cast(row_schema(table.schema))
    for name in patched.patched_names:
        column_index = whole_rows.schema.get_field_index(name)
        new_values = patched.rows[name].cast(whole_rows.schema.field(name).type)
        whole_rows = whole_rows.set_column(column_index, whole_rows.schema.field(name), new_values)
    return whole_rows
