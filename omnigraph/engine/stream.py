"""Results in batches, in memory that does not grow with the result.

The first scan is read in batches and each batch passes through the rest of the plan. Rows come in
storage order. A plan that needs all rows at once (an order, groups, a ranking, distinct rows) runs
as a whole and its result is split into batches.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.storage import scan as storage

from .context import Context, Known
from .evaluate import TableSource, mask
from .fetch import needs
from .operators import run_operators
from .project import columns_needed, project
from .rank import has_scores
from .rows import Binding, Rows
from .scan import split

BATCH = 16_384


def streams(what: plan.ReadPlan) -> bool:
    """Return whether rows can be returned before all of them are known."""
    whole = what.aggregated or what.distinct or bool(what.order) or has_scores(what)
    return not whole and isinstance(what.operators[0], plan.NodeScan)


def stream(
    context: Context,
    what: plan.ReadPlan,
    bounds: tuple[int, int | None],
    execute: Callable[[Context, plan.ReadPlan], pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a result; `bounds` are the rows to skip and the row to stop after."""
    try:
        if streams(what):
            yield from _cut(_pieces(context, what), *bounds)
        else:
            table = execute(context, what)
            context.meter.leave()  # a slow reader must not block other queries
            yield from table.to_batches(max_chunksize=BATCH)
    finally:
        context.meter.leave()


def _cut(tables: Iterator[pa.Table], skip: int, stop: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows from `skip` up to `stop`."""
    seen = 0
    if stop == 0:
        return
    for table in tables:
        low = min(max(skip - seen, 0), table.num_rows)
        high = table.num_rows if stop is None else min(stop - seen, table.num_rows)
        seen += table.num_rows
        if low < high:
            yield from table.slice(low, high - low).to_batches(max_chunksize=BATCH)
        if stop is not None and seen >= stop:
            return


def _pieces(context: Context, what: plan.ReadPlan) -> Iterator[pa.Table]:
    scan, *rest = what.operators
    if not isinstance(scan, plan.NodeScan):
        return
    wanted = {
        name for own, name in columns_needed(context.catalog, what.columns) if own == scan.variable
    }
    for seed in _seeds(context, scan, wanted):
        used = context.meter.used
        rows = run_operators(context, seed, rest)
        context.meter.leave()
        for at in range(0, rows.count, BATCH):
            made = project(context, rows.slice(at, at + BATCH), what.columns)
            context.meter.leave()  # projecting may have taken the slot again to load columns
            yield made
        context.meter.used = used


def _seeds(context: Context, scan: plan.NodeScan, wanted: set[str]) -> Iterator[Rows]:
    """Yield the nodes of a scan in batches, with the columns that the result shows."""
    keys = [f"node:{name}" for name in scan.implementers]
    if context.catalog.node(scan.type_name) is not None:
        keys = [f"node:{scan.type_name}"]
    for number, key in enumerate(keys):
        pushed, rest = split(context, key, scan.filters)
        columns = sorted(wanted | {name for _, name in needs(*rest)})
        table = context.table(key)
        for batch in storage.batches(table, columns, pushed, row_ids=True, size=BATCH):
            context.meter.check()
            piece = _passing(context, pa.Table.from_batches([batch]), rest)
            ids = storage.row_id_array(piece)
            context.known[key] = Known(ids, piece)
            kinds = np.full(len(ids), number, np.int16) if len(keys) > 1 else None
            yield Rows(len(ids), {scan.variable: Binding(tuple(keys), ids, kinds)})


def _passing(context: Context, piece: pa.Table, rest: tuple[plan.Predicate, ...]) -> pa.Table:
    if not rest:
        return piece
    source = TableSource(piece, context.params)
    kept: Any = np.logical_and.reduce([mask(source, one) for one in rest])
    return piece.filter(pa.array(kept))
