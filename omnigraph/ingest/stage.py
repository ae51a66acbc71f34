"""Staging: turn a delta into a publish plan of new data files, deletions and requirements.

Rows that are certainly new are appended without reading anything. Other rows are changed by address
and keep their row ids. Insert, update and delete of one table form a single operation.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from omnigraph.history.plan import PublishPlan, Requirement, WriteTxn
from omnigraph.history.schemas import read_schema
from omnigraph.history.verification import intact
from omnigraph.rules.check import type_named
from omnigraph.rules.delta import Delta, TableDelta
from omnigraph.rules.indexed import indexed_columns
from omnigraph.storage.blobs import stored_form
from omnigraph.storage.fold import tidied
from omnigraph.storage.table import Staged, Table, stage_append, stage_change, stage_overwrite


def stage(
    txn: WriteTxn, delta: Delta, operation: str, requirements: Iterable[Requirement] = ()
) -> PublishPlan | None:
    """Return the plan of a delta whose stored rows are resolved; None if nothing would change."""
    writes = stage_tables(txn, delta)
    if not writes:
        return None
    if not txn.again:
        writes = {key: _tidied(txn, key, one) for key, one in writes.items()}
    return PublishPlan(operation, writes, tuple(requirements), epoch=txn.base.state.head.gc_epoch)


def _tidied(txn: WriteTxn, key: str, staged: Staged) -> Staged:
    schema = read_schema(txn.store, txn.base.state.schema)
    columns = indexed_columns(type_named(schema.ir.catalog, key))
    passes = intact(txn.store, txn.base.state)
    return tidied(txn.store, txn.table(key), staged, columns, passes)


def stage_tables(txn: WriteTxn, delta: Delta) -> Mapping[str, Staged]:
    """Return the staged change of every table that changes."""
    staged = {key: _stage(txn, one) for key, one in delta.tables.items() if not one.empty}
    return {key: one for key, one in staged.items() if one is not None}


def _stage(txn: WriteTxn, one: TableDelta) -> Staged | None:
    table = txn.table(one.key)
    rows = stored_form(one.rows, table.schema)
    if one.whole:
        stored = txn.base.state.tables[one.key].rows
        return stage_overwrite(txn.store, table, rows) if stored or rows.num_rows else None
    replaces = one.row_ids >= 0
    if not replaces.any() and not len(one.removed_ids):
        return stage_append(txn.store, table, rows)
    return _change(txn, table, one, rows)


def _change(txn: WriteTxn, table: Table, one: TableDelta, rows: pa.Table) -> Staged:
    replaces = one.row_ids >= 0
    removed: list[int] = one.addresses[replaces].tolist()
    if one.removed is not None:
        removed += one.removed["_rowaddr"].to_pylist()
    kept: list[int] = one.row_ids[replaces].tolist()
    new = pa.array(np.flatnonzero(~replaces))
    return stage_change(
        txn.store,
        table,
        removed=removed,
        replaced=(kept, rows.take(pa.array(np.flatnonzero(replaces)))) if kept else None,
        added=rows.take(new) if len(new) else None,
    )
