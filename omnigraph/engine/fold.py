"""Distinct-value scan: one weighted row per combination of values instead of one row per node.

Owns the grouping of columns that are in memory as codes. A row stands for all nodes with its
values; a plan may use this scan only if it never matters which of these nodes the row names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .columns import HotColumn, hot_columns, hot_rows, kept
from .context import Context
from .filter import keep
from .physical import FoldScan
from .rows import Binding, Ids, Rows
from .scan import SCANNED, node_scan

_WORTH = 8  # minimum nodes per combination


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """One sample node per combination of values, and how many nodes share the combination."""

    rows: Ids
    counts: Ids

    @property
    def nbytes(self) -> int:
        """Total bytes of both arrays."""
        return self.rows.nbytes + self.counts.nbytes


def fold_scan(context: Context, rows: Rows, op: FoldScan) -> Rows:
    """Scan the nodes grouped by equal values; one row per node if grouping is not worthwhile."""
    folded = _folded(context, op) if rows.count == 1 and not rows.bindings else None
    if folded is None:
        return node_scan(context, rows, op.scan)
    name = op.scan.variable
    binding = Binding((f"node:{op.scan.type_name}",), folded.rows)
    return keep(context, Rows(len(folded.rows), {name: binding}, folded.counts), op.scan.filters)


def _folded(context: Context, op: FoldScan) -> Folded | None:
    key = f"node:{op.scan.type_name}"
    ids = hot_rows(context, key)
    columns = hot_columns(context, key, op.columns, context.count(key) // SCANNED)
    if ids is None or columns is None or any(one.codes is None for one in columns):
        return None
    size = int(np.prod([len(one.values) for one in columns], dtype=np.float64))
    if size * _WORTH > len(ids):
        return None
    make = partial(_fold, columns, ids, size)
    found: Folded = kept(context, key, ("folded", *op.columns), make)
    return found


def _fold(columns: Sequence[HotColumn], ids: Ids, size: int) -> Folded:
    pairs = columns[0].index(ids)
    for one in columns[1:]:
        pairs = pairs * len(one.values) + one.index(ids)
    counts = np.bincount(pairs, minlength=size)
    first = np.zeros(size, np.int64)
    first[pairs] = ids
    there = np.flatnonzero(counts)
    return Folded(first[there], counts[there].astype(np.int64))
