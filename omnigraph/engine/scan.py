"""Scans: the nodes of a type, or of the types that implement an interface, that pass filters.

Storage evaluates the filters that it evaluates exactly; the remaining ones are tested on columns
that the same scan reads. A second scan forms a cross product.
"""

import math
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.lang.query import plan
from omnigraph.storage import scan as storage
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import PropertyType, entity_id

from .columns import HotColumn, hot_columns, hot_ranks, hot_rows
from .compare import settle
from .context import Context, Known
from .evaluate import TableSource, mask
from .fetch import needs
from .filter import keep
from .physical import KeyScan
from .push import push
from .rows import Binding, Ids, Mask, Rows, concat_bindings

if TYPE_CHECKING:
    from .words import Question

SCANNED = 160  # scanning this many rows costs about as much as loading one of them


def node_scan(context: Context, rows: Rows, scan: plan.NodeScan) -> Rows:
    """Combine every row with every node of the scan."""
    return cross(context, rows, scan.variable, found_nodes(context, scan))


def found_nodes(context: Context, scan: plan.NodeScan) -> Binding:
    """Return the nodes of a scan, each once."""
    keys = [f"node:{name}" for name in scan.implementers or (scan.type_name,)]
    if scan.implementers == () and context.catalog.node(scan.type_name) is None:
        return Binding((), np.empty(0, np.int64))  # an interface without implementers
    parts = [Binding((key,), row_ids(context, key, scan.filters)) for key in keys]
    return parts[0] if len(parts) == 1 else concat_bindings(parts)


def cross(context: Context, rows: Rows, variable: str, found: Binding) -> Rows:
    """Return all pairs of a row and an entity."""
    many = len(found.ids)
    if rows.count == 1 and rows.weights is None and not rows.bindings:
        return Rows(many, {variable: found})
    context.meter.charge(rows.count * many * (rows.width + 24))
    positions = np.repeat(np.arange(rows.count), many)
    ids = np.tile(found.ids, rows.count)
    kinds = np.tile(found.kinds, rows.count) if found.kinds is not None else None
    return rows.joined(positions, {variable: Binding(found.types, ids, kinds)})


def row_ids(context: Context, key: str, filters: tuple[plan.Predicate, ...]) -> Ids:
    """Return the row ids of a table that pass all filters, in order."""
    context.meter.check()
    worded = _by_words(context, key, filters)
    if worded is not None:
        return worded
    hot = _by_memory(context, key, filters)
    if hot is not None:
        return hot
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
    """Return the filter that storage evaluates, and the predicates that remain."""
    schema = context.table(key).schema
    found = [(one, push(schema, one, context.constant)) for one in filters]
    pushed = [expression for _, expression in found if expression is not None]
    rest = tuple(one for one, expression in found if expression is None)
    return (reduce(and_, pushed) if pushed else None), rest


def asked_words(
    context: Context, key: str, filters: tuple[plan.Predicate, ...]
) -> "Question | None":
    """Return the full-text index lookup that finds the rows of a scan, if one is used."""
    if not any(isinstance(one, plan.TextSearch) for one in filters):
        return None
    from .words import question

    pushed, _ = split(context, key, filters)
    return question(context, key, filters, pushed=pushed is not None)


def _by_words(context: Context, key: str, filters: tuple[plan.Predicate, ...]) -> Ids | None:
    asked = asked_words(context, key, filters)
    if asked is None:
        return None
    from .words import fitting_rows

    return fitting_rows(context, key, filters, asked)


def key_scan(context: Context, rows: Rows, scan: KeyScan) -> Rows:
    """Look up the node with a complete key by its id."""
    key = f"node:{scan.scan.type_name}"
    ids = np.empty(0, np.int64)
    wanted = key_of(context, scan)
    ranks = hot_ranks(context, key, 1) if wanted is not None else None
    if ranks is not None and wanted is not None:
        return _by_rank(context, rows, scan, ranks.find(wanted))
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


def _by_rank(context: Context, rows: Rows, scan: KeyScan, row: int | None) -> Rows:
    name = scan.scan.variable
    ids = np.array([] if row is None else [row], np.int64)
    found = Rows.of({name: Binding((f"node:{scan.scan.type_name}",), ids)})
    if scan.rest and found.count:
        found = keep(context, found, scan.rest)
    return cross(context, rows, name, found[name])


def _by_memory(context: Context, key: str, filters: tuple[plan.Predicate, ...]) -> Ids | None:
    """Return the row ids that pass all filters, using cached columns; None if not cached."""
    ids = hot_rows(context, key)
    names = sorted({name for _, name in needs(*filters)})
    if ids is None or (filters and not names):
        return ids if not filters else None
    hot = hot_columns(context, key, names, context.count(key) // SCANNED) if names else []
    if hot is None:
        return None
    columns = dict(zip(names, hot, strict=True))
    for one in filters:
        ids = ids[_passes(context, one, columns, ids)]
    return ids


def _passes(
    context: Context, predicate: plan.Predicate, columns: dict[str, HotColumn], ids: Ids
) -> Mask:
    names = sorted({name for _, name in needs(predicate)})
    first = columns[names[0]] if names else None
    if first is not None and len(names) == 1 and first.codes is not None:
        # Test each distinct value once.
        source = TableSource(pa.table({names[0]: first.values}), context.params)
        return mask(source, predicate)[first.index(ids)]
    table = pa.table({name: columns[name].take(ids) for name in names})
    return mask(TableSource(table, context.params), predicate)


def key_of(context: Context, scan: KeyScan) -> str | None:
    """Return the id formed by the key members, or None when no node can have them."""
    values = [_stored(kind, context.constant(value)) for _, kind, value in scan.key]
    if any(value is None for value in values):
        return None
    try:
        return entity_id([kind for _, kind, _ in scan.key], values)
    except InputError:
        return None


def _stored(kind: PropertyType, value: Any) -> Any:
    """Return the value as a key of this type stores it, or None when it cannot."""
    if isinstance(value, float) and math.isnan(value):
        return None
    settled = settle(arrow_type(kind), "=", value) if value is not None else "never"
    return None if isinstance(settled, str) else settled.constant


def _ascending(ids: Ids) -> bool:
    return bool((ids[1:] > ids[:-1]).all())
