"""Ordering of rows: sort keys, tie breaking, the default order, and top-k selection.

Keys are applied one after the other, each only to rows that the previous keys left tied, so that
ids are read for ties only. Nulls sort first ascending and last descending.
"""

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.lang.query import plan

from .codes import Codes, Numbers, paired, ranks
from .columns import hot_ranks
from .context import Context
from .rows import Binding, Ids, Rows
from .values import values_of

Key = Callable[[Ids, int | None], Numbers]
"""Maps row positions to numbers in sort order; with a limit, only that many must be exact."""

_ROW = 48  # bytes of working memory per sorted row


def arrange(context: Context, count: int, keys: Sequence[Key], most: int | None = None) -> Ids:
    """Return positions in sort order; with `limit`, only the first `limit` of them."""
    context.meter.charge(count * _ROW)
    try:
        return _arranged(context, count, keys, most)
    finally:
        context.meter.release(count * _ROW)


def _arranged(context: Context, count: int, keys: Sequence[Key], most: int | None) -> Ids:
    left: Ids = np.arange(0 if most == 0 else count)
    place: Codes | None = None
    for key in keys:
        context.meter.check()
        if len(left) < 2:
            break
        if place is None:
            left, place = _first(left, key(left, most), most)
            continue
        tied = _tied(place)
        if not tied.any():
            break
        numbers = np.zeros(len(left), np.int64)
        numbers[tied] = ranks(key(left[tied], None))
        left, place = _first(left, paired(place, numbers), most)
    ordered = left if place is None else left[np.argsort(place, kind="stable")]
    return ordered if most is None else ordered[:most]


def _first(left: Ids, numbers: Numbers, most: int | None) -> tuple[Ids, Codes]:
    """Return the rows that can be among the first `limit`, and their rank codes."""
    if most is not None and most < len(left):
        near = numbers <= np.partition(numbers, most - 1)[most - 1]
        left, numbers = left[near], numbers[near]
    return left, ranks(numbers)


def _tied(place: Codes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if len(place) == 0:
        return np.zeros(0, np.bool_)
    return np.asarray(np.bincount(place)[place] > 1)


def by_value(context: Context, rows: Rows, value: plan.Value, *, descending: bool = False) -> Key:
    """Return a key that sorts by a value of each row."""

    def key(positions: Ids, most: int | None) -> Numbers:
        some = rows if len(positions) == rows.count else rows.take(positions)
        return values_of(context, some, value).order(descending=descending, most=most)

    return key


def by_id(context: Context, rows: Rows, variable: str) -> list[Key]:
    """Return keys that sort by a variable's id; equal ids of two types sort by type name."""
    binding = rows[variable]

    def own(positions: Ids, most: int | None) -> Numbers:
        every = len(positions) == len(binding.ids)
        return id_order(context, binding if every else binding.take(positions), most)

    def kind(positions: Ids, most: int | None) -> Codes:
        kinds = binding.kinds if binding.kinds is not None else np.zeros(0, np.int16)
        names = np.argsort(np.argsort(np.array(binding.types)))
        return np.asarray(names[kinds[positions]], np.int64)

    return [own] if binding.kinds is None else [own, kind]


def id_order(context: Context, binding: Binding, most: int | None = None) -> Numbers:
    """Return numbers in the order of ids."""
    if len(binding.types) == 1 and len(binding.ids) > 1:
        ranks = hot_ranks(context, binding.types[0], len(binding.ids))
        if ranks is not None:
            return ranks.order(binding.ids)
    rows = Rows.of({"_": binding})
    return values_of(context, rows, plan.Entity("_", "")).order(most=most)


def default_keys(context: Context, rows: Rows, variables: Sequence[str]) -> list[Key]:
    """Return the keys of the default order: ids in order of each variable's first appearance."""
    return [key for name in variables for key in by_id(context, rows, name)]


def row_keys(context: Context, rows: Rows, what: plan.ReadPlan) -> list[Key]:
    """Return all keys of an ungrouped query: its own, then ids in order of variable names."""
    if not what.order:
        return default_keys(context, rows, what.variables)
    keys = [by_value(context, rows, one.value, descending=one.descending) for one in what.order]
    return keys + default_keys(context, rows, sorted(what.variables))
