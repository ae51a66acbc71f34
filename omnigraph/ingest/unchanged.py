"""Merge rows that equal their stored version: they are not written again.

Their equality is part of what the load has read, so it becomes a requirement like any other.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.rules.delta import Delta, TableDelta, flat
from omnigraph.rules.lookup import Lookup


def without_unchanged(delta: Delta, lookup: Lookup) -> Delta:
    """Return the delta without rows that would replace a stored row by an identical one."""
    tables = {key: _reduced(one, lookup) for key, one in delta.tables.items()}
    return replace(delta, tables=tables)


def _reduced(one: TableDelta, lookup: Lookup) -> TableDelta:
    replaces = one.row_ids >= 0
    if one.whole or not replaces.any():
        return one
    rows = one.rows.filter(pa.array(replaces))
    stored = lookup.find(one.key, {"id": flat(rows["id"])}, rows.column_names)
    stored = stored.take(pc.index_in(flat(rows["id"]), value_set=flat(stored["id"])))
    same = np.ones(rows.num_rows, bool)
    for name in rows.column_names:
        same &= _equal(flat(rows[name]), flat(stored[name]))
    if not same.any():
        return one
    kept = np.ones(len(one.row_ids), bool)
    kept[np.flatnonzero(replaces)[same]] = False
    return replace(
        one,
        versions=one.rows.filter(pa.array(kept)),
        latest=np.arange(int(kept.sum())),
        row_ids=one.row_ids[kept],
        addresses=one.addresses[kept],
        lines=None if one.lines is None else one.lines[one.latest][kept],
    )


def _equal(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return where two columns are identical: null equals null, and 0.0 differs from -0.0."""
    if kinds.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([repr(one) == repr(other) for one, other in pairs], bool)
    if kinds.is_floating(left.type):
        whole = pa.int32() if left.type == pa.float32() else pa.int64()
        left, right = left.view(whole), right.cast(left.type).view(whole)
    alike = pc.equal(left, right.cast(left.type))
    nulls = pc.and_(pc.is_null(left), pc.is_null(right))
    found: np.ndarray = pc.or_(pc.fill_null(alike, False), nulls).to_numpy(zero_copy_only=False)
    return found
