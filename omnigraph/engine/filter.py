"""Filters: keep the rows for which predicates are true.

A predicate on a single variable is evaluated once per entity, however many rows contain it.
"""

from collections.abc import Iterable

import numpy as np

from omnigraph.lang.query import plan
from omnigraph.lang.query.free import variables_of
from omnigraph.storage.scan import distinct

from .context import Context
from .evaluate import mask
from .fetch import RowSource, needs
from .rows import NULL, Binding, Mask, Rows

_FEW = 1_000
_CHUNK = 1 << 20  # rows whose columns are in memory at the same time


def keep(context: Context, rows: Rows, predicates: Iterable[plan.Predicate]) -> Rows:
    """Return the rows for which all predicates are true."""
    for predicate in predicates:
        if rows.count:
            rows = rows.filter(passing(context, rows, predicate))
    return rows


def passing(context: Context, rows: Rows, predicate: plan.Predicate) -> Mask:
    """Return a mask of the rows for which a predicate is true."""
    names = variables_of(predicate)
    if len(names) == 1 and rows.count > _FEW:
        return _by_entity(context, rows[next(iter(names))], predicate, next(iter(names)))
    parts = [
        _evaluate(context, rows.only(names).slice(at, at + _CHUNK), predicate)
        for at in range(0, max(rows.count, 1), _CHUNK)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _evaluate(context: Context, rows: Rows, predicate: plan.Predicate) -> Mask:
    context.meter.check()
    source = RowSource(context, rows).prefetch(needs(predicate))
    return mask(source, predicate)


def _by_entity(context: Context, binding: Binding, predicate: plan.Predicate, name: str) -> Mask:
    if binding.kinds is not None:
        return _by_typed_entity(context, binding, predicate, name)
    each = np.append(distinct(binding.ids), NULL)
    decided = _evaluate(context, Rows.of({name: Binding(binding.types, each)}), predicate)
    # Indexed by row id; the last entry is reached through index -1, which is null.
    found: Mask = np.zeros(int(each.max()) + 2, np.bool_)
    found[each] = decided
    return found[binding.ids]


def _by_typed_entity(
    context: Context, binding: Binding, predicate: plan.Predicate, name: str
) -> Mask:
    kinds = binding.kinds if binding.kinds is not None else np.zeros(len(binding.ids), np.int16)
    key = np.where(binding.ids < 0, NULL, binding.ids * len(binding.types) + kinds)
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    found: Mask = _evaluate(context, Rows.of({name: binding.take(first)}), predicate)
    return found[back]
