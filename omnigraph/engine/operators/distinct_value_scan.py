"""Distinct-value scan: one weighted row per combination of values instead of one row per node.

This module groups nodes by columns that are cached in memory as codes. Each row represents all nodes that share its
values, so a plan may use this scan only if it does not matter which of these nodes the row identifies.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.hot_columns import HotColumn, hot_columns, hot_derivation, hot_rows
from omnigraph.engine.physical_operators import DistinctValueScan
from omnigraph.records.frozen import record
from omnigraph.values.table_key import TableKey

from .filter import filter_rows
from .rows import IntArray, Rows, VariableBinding
from .scan import SCAN_COST_RATIO, node_scan

_MIN_NODES_PER_GROUP = 8  # minimum number of nodes per combination for grouping to be worthwhile


@record(eq=False)
class ValueGroups:
    """A sample node for each combination of values, and the number of nodes that share the combination."""

    sample_rows: IntArray
    counts: IntArray

    @property
    def nbytes(self) -> int:
        """The total size of both arrays in bytes."""
        return self.sample_rows.nbytes + self.counts.nbytes


def scan_distinct_values(context: ExecutionContext, rows: Rows, value_scan: DistinctValueScan) -> Rows:
    """Return one row per combination of values, or one row per node if grouping is not worthwhile."""
    value_groups = _hot_value_groups(context, value_scan) if rows.count == 1 and not rows.bindings else None
    if value_groups is None:
        return node_scan(context, rows, value_scan.scan)
    variable = value_scan.scan.variable
    binding = VariableBinding((TableKey.node(value_scan.scan.type_name),), value_groups.sample_rows)
    return filter_rows(
        context, Rows(len(value_groups.sample_rows), {variable: binding}, value_groups.counts), value_scan.scan.filters
    )


def _hot_value_groups(context: ExecutionContext, value_scan: DistinctValueScan) -> ValueGroups | None:
    table_key = TableKey.node(value_scan.scan.type_name)
    row_ids = hot_rows(context, table_key)
    columns = hot_columns(context, table_key, value_scan.value_columns, context.row_count(table_key) // SCAN_COST_RATIO)
    if row_ids is None or columns is None or any(hot_column.codes is None for hot_column in columns):
        return None
    combination_count = int(np.prod([len(hot_column.values) for hot_column in columns], dtype=np.float64))
    if combination_count * _MIN_NODES_PER_GROUP > len(row_ids):
        return None
    build_groups = partial(_group_by_codes, columns, row_ids, combination_count)
    value_groups: ValueGroups = hot_derivation(context, table_key, ("folded", *value_scan.value_columns), build_groups)
    return value_groups


def _group_by_codes(columns: Sequence[HotColumn], row_ids: IntArray, combination_count: int) -> ValueGroups:
    combination_codes = columns[0].value_positions(row_ids)
    for hot_column in columns[1:]:
        combination_codes = combination_codes * len(hot_column.values) + hot_column.value_positions(row_ids)
    node_counts = np.bincount(combination_codes, minlength=combination_count)
    sample_rows = np.zeros(combination_count, np.int64)
    sample_rows[combination_codes] = row_ids
    present_codes = np.flatnonzero(node_counts)
    return ValueGroups(sample_rows[present_codes], node_counts[present_codes].astype(np.int64))
