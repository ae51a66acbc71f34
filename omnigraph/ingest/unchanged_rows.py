"""Detect merge rows that equal their stored version, so that they are not written again.

The load depends on this equality, so it becomes a requirement that is checked again before the load is published.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.rules.delta import Delta, TableDelta, as_single_array
from omnigraph.rules.lookup import Lookup


def without_unchanged(delta: Delta, lookup: Lookup) -> Delta:
    """Return the delta without rows that would replace a stored row with an identical one."""
    tables = {table_key: _drop_unchanged(table_delta, lookup) for table_key, table_delta in delta.tables.items()}
    return replace(delta, tables=tables)


def _drop_unchanged(table_delta: TableDelta, lookup: Lookup) -> TableDelta:
    is_replacement = table_delta.row_ids >= 0
    if table_delta.replaces_table or not is_replacement.any():
        return table_delta
    replacing_rows = table_delta.rows.filter(pa.array(is_replacement))
    stored_rows = lookup.find(
        table_delta.table_key, {"id": as_single_array(replacing_rows["id"])}, replacing_rows.column_names
    )
    stored_rows = stored_rows.take(
        pc.index_in(as_single_array(replacing_rows["id"]), value_set=as_single_array(stored_rows["id"]))
    )
    is_unchanged = np.ones(replacing_rows.num_rows, bool)
    for column_name in replacing_rows.column_names:
        is_unchanged &= _equal_mask(
            as_single_array(replacing_rows[column_name]), as_single_array(stored_rows[column_name])
        )
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


def _equal_mask(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return a mask of where two columns are identical; null equals null, and 0.0 differs from -0.0."""
    if kinds.is_nested(left.type):
        value_pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([repr(left_value) == repr(right_value) for left_value, right_value in value_pairs], bool)
    if kinds.is_floating(left.type):
        integer_type = pa.int32() if left.type == pa.float32() else pa.int64()
        left, right = left.view(integer_type), right.cast(left.type).view(integer_type)
    is_equal = pc.equal(left, right.cast(left.type))
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    is_same: np.ndarray = pc.or_(pc.fill_null(is_equal, False), both_null).to_numpy(zero_copy_only=False)
    return is_same
