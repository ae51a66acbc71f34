"""Scans: the nodes of a type, or of the types behind an interface, that pass filters.

What storage can decide exactly it decides; the rest is tested on the columns that the same scan
brings along. A second scan forms a cross product.
"""

import math
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.lang.query import plan
from omnigraph.storage import scan as storage
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, entity_id

from .compare import settle
from .context import Context, Known
from .evaluate import TableSource, mask
from .fetch import needs
from .physical import KeyScan
from .push import push
from .rows import Binding, Ids, Rows, concat_bindings


def node_scan(context: Context, rows: Rows, scan: plan.NodeScan) -> Rows:
    """Every row with every node of the scan."""
    return cross(context, rows, scan.variable, found_nodes(context, scan))


def found_nodes(context: Context, scan: plan.NodeScan) -> Binding:
    """The nodes of a scan, each once."""
    keys = [f"node:{name}" for name in scan.implementers or (scan.type_name,)]
    if scan.implementers == () and context.catalog.node(scan.type_name) is None:
        return Binding((), np.empty(0, np.int64))  # an interface that nobody implements
    parts = [Binding((key,), row_ids(context, key, scan.filters)) for key in keys]
    return parts[0] if len(parts) == 1 else concat_bindings(parts)


def cross(context: Context, rows: Rows, variable: str, found: Binding) -> Rows:
    """All pairs of a row and an entity."""
    many = len(found.ids)
    if rows.count == 1 and rows.weights is None and not rows.bindings:
        return Rows(many, {variable: found})
    context.meter.charge(rows.count * many * (rows.width + 24))
    positions = np.repeat(np.arange(rows.count), many)
    ids = np.tile(found.ids, rows.count)
    kinds = np.tile(found.kinds, rows.count) if found.kinds is not None else None
    return rows.joined(positions, {variable: Binding(found.types, ids, kinds)})


def row_ids(context: Context, key: str, filters: tuple[plan.Predicate, ...]) -> Ids:
    """The row ids of a table that pass all filters, in order."""
    context.meter.check()
    table = context.table(key)
    pushed, rest = split(context, key, filters)
    columns = sorted({name for _, name in needs(*rest)})
    context.meter.charge(context.count(key) * 8 * (1 + 2 * len(columns)))
    found = storage.scan(table, columns, pushed, row_ids=True)
    ids = storage.row_id_array(found)
    if rest:
        source = TableSource(found, context.params)
        ids = ids[np.logical_and.reduce([mask(source, one) for one in rest])]
    return ids if _ascending(ids) else np.sort(ids)


def split(
    context: Context, key: str, filters: tuple[plan.Predicate, ...]
) -> tuple[Any | None, tuple[plan.Predicate, ...]]:
    """The part of the filters that storage decides, and those that remain."""
    schema = context.table(key).schema
    found = [(one, push(schema, one, context.constant)) for one in filters]
    pushed = [expression for _, expression in found if expression is not None]
    rest = tuple(one for one, expression in found if expression is None)
    return (reduce(and_, pushed) if pushed else None), rest


def key_scan(context: Context, rows: Rows, scan: KeyScan) -> Rows:
    """The node of a complete key, found by its id."""
    key = f"node:{scan.scan.type_name}"
    ids = np.empty(0, np.int64)
    wanted = key_of(context, scan)
    if wanted is not None:
        where = pc.field("id") == wanted
        found = storage.scan(context.table(key), scan.columns, where, row_ids=True)
        ids = storage.row_id_array(found)
        context.known[key] = Known(ids, found)
        source = TableSource(found, context.params)
        for predicate in scan.rest:
            if len(ids):
                ids = ids[mask(source, predicate)]
    return cross(context, rows, scan.scan.variable, Binding((key,), ids))


def key_of(context: Context, scan: KeyScan) -> str | None:
    """The id that the members of a key make, or None when no node can have them."""
    values = [_stored(kind, context.constant(value)) for _, kind, value in scan.key]
    if any(value is None for value in values):
        return None
    try:
        return entity_id([kind for _, kind, _ in scan.key], values)
    except InputError:
        return None


def _stored(kind: PropertyType, value: Any) -> Any:
    """The value as a key of this type holds it, or None when it cannot."""
    if isinstance(value, float) and math.isnan(value):
        return None
    settled = settle(arrow_type(kind), "=", value) if value is not None else "never"
    return None if isinstance(settled, str) else settled.constant


def _ascending(ids: Ids) -> bool:
    return bool((ids[1:] > ids[:-1]).all())
