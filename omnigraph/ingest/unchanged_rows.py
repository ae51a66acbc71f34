"""Detect merged rows that are equal to their stored version, so that they are not written again.

The load relies on the stored rows remaining equal, so a requirement to this effect is recorded and checked again before
the load is published. The comparison also counts the values that a merge removes because the input does not contain
their properties.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rules.delta import Delta, TableDelta, as_single_array
from omnigraph.rules.lookup import Lookup
from omnigraph.storage.large_blobs import comparable_rows
from omnigraph.storage.value_equality import same_rows
from omnigraph.storage.wide_rows import take_positions
from omnigraph.values.table_key import TableKey

# A callback that receives aligned stored and new rows.
ReplacedRowsCallback = Callable[[TableKey, pa.Table, pa.Table], object]


def without_unchanged(
    delta: Delta, lookup: Lookup, on_replaced: ReplacedRowsCallback = lambda _key, _stored, _new: None
) -> Delta:
    """Return the delta without rows that would replace a stored row with an identical one."""
    tables = {
        table_key: _drop_unchanged(table_delta, lookup, on_replaced) for table_key, table_delta in delta.tables.items()
    }
    return replace(delta, tables=tables)


def count_nulled_values(stored_rows: pa.Table, new_rows: pa.Table) -> dict[str, int]:
    """Return the number of values that become null, by column.

    The two tables must have matching rows in the same order.

    >>> count_nulled_values(pa.table({"a": [1, 2], "b": [1, None]}), pa.table({"a": [None, 2], "b": [None, None]}))
    {'a': 1, 'b': 1}
    """
    counts = {}
    for column_name in new_rows.column_names:
        new_values = new_rows[column_name]
        if new_values.null_count:
            is_nulled = pc.and_(pc.is_null(new_values), pc.is_valid(stored_rows[column_name]))
            counts[column_name] = int(pc.sum(is_nulled).as_py() or 0)
    return {column_name: count for column_name, count in counts.items() if count}


def _drop_unchanged(table_delta: TableDelta, lookup: Lookup, on_replaced: ReplacedRowsCallback) -> TableDelta:
    is_replacement = table_delta.row_ids >= 0
    if table_delta.replaces_table or not is_replacement.any():
        return table_delta
    replacing_rows = table_delta.rows.filter(pa.array(is_replacement))
    stored_rows = lookup.find(
        table_delta.table_key, {"id": as_single_array(replacing_rows["id"])}, replacing_rows.column_names
    )
    stored_positions = pc.index_in(as_single_array(replacing_rows["id"]), value_set=as_single_array(stored_rows["id"]))
    stored_rows = take_positions(stored_rows, stored_positions)
    on_replaced(table_delta.table_key, stored_rows, replacing_rows)
    is_unchanged = same_rows(comparable_rows(replacing_rows), comparable_rows(stored_rows))
    if not is_unchanged.any():
        return table_delta
    is_written = np.ones(len(table_delta.row_ids), bool)
    is_written[np.flatnonzero(is_replacement)[is_unchanged]] = False
    return replace(
        table_delta,
        row_versions=table_delta.rows.filter(pa.array(is_written)),
        latest_positions=np.arange(int(is_written.sum())),
        row_ids=table_delta.row_ids[is_written],
        addresses=table_delta.addresses[is_written],
        input_lines=None
        if table_delta.input_lines is None
        else table_delta.input_lines[table_delta.latest_positions][is_written],
    )
