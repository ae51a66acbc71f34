"""Joins with a nested list of operators (`not { }`, `optional { }`), and closing of cycles.

The inner operators run once per distinct combination of the outer variables they need. Each
combination carries a number, by which the inner rows are matched to the outer rows.
"""

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.lang.query import plan

from .codes import Codes, combination_codes
from .context import Context
from .rows import NULL, Binding, Ids, Mask, Rows

Run = Callable[[Context, Rows, Sequence[plan.Operator]], Rows]
_AT = "#at"  # variable that carries the combination number through the inner operators


def close(context: Context, rows: Rows, op: plan.Close) -> Rows:
    """Return the rows whose two variables are the same entity; null never equals null."""
    left, right = rows[op.left], rows[op.right]
    same: Mask = (left.ids == right.ids) & (left.ids != NULL)
    if left.kinds is not None or right.kinds is not None or left.types != right.types:
        types = tuple(dict.fromkeys((*left.types, *right.types)))
        mine, yours = left.as_types(types).kinds, right.as_types(types).kinds
        if mine is not None and yours is not None:
            same &= mine == yours
    kept = rows.filter(same)
    return kept.only(name for name in kept.bindings if name != op.left)


def anti_join(context: Context, rows: Rows, op: plan.AntiJoin, run: Run) -> Rows:
    """Return the rows for which the inner operators produce nothing."""
    if rows.count == 0:
        return rows
    codes, found = _inner(context, rows, op.outer, op.inner, run)
    some = np.zeros(int(codes.max()) + 1, np.bool_)
    some[found[_AT].ids] = True
    return rows.filter(~some[codes])


def left_join(context: Context, rows: Rows, op: plan.LeftJoin, run: Run) -> Rows:
    """Return the rows joined with all inner results, or with nulls if there are none."""
    codes, found = _inner(context, rows, op.outer, op.inner, run)
    order = np.argsort(found[_AT].ids, kind="stable")
    found = found.take(order)
    many = np.bincount(found[_AT].ids, minlength=int(codes.max()) + 1 if len(codes) else 0)
    first = np.cumsum(many) - many
    times = np.maximum(many[codes], 1)
    total = int(times.sum())
    context.meter.charge(total * (rows.width + 8 * (2 + len(op.introduced))))
    positions = np.repeat(np.arange(rows.count), times)
    inner = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
    inner += first[codes][positions]
    inner[(many[codes] == 0)[positions]] = NULL
    added = {name: _or_null(found[name], inner) for name in op.introduced}
    return rows.joined(positions, added)


def _inner(
    context: Context,
    rows: Rows,
    outer: tuple[str, ...],
    inner: tuple[plan.Operator, ...],
    run: Run,
) -> tuple[Codes, Rows]:
    """Return the combination number of each row, and the inner rows of all combinations."""
    codes, first = combination_codes(rows, outer)
    each = Rows(rows.count, {name: rows[name] for name in outer}).take(first)
    tagged = each.with_binding(_AT, Binding((), np.arange(len(first))))
    return codes, run(context, tagged, inner)


def _or_null(binding: Binding, positions: Ids) -> Binding:
    """Take a variable by position; null where the position is negative."""
    missing = positions < 0
    if len(binding.ids) == 0:
        kinds = np.zeros(len(positions), np.int16) if binding.kinds is not None else None
        return Binding(binding.types, np.full(len(positions), NULL, np.int64), kinds)
    taken = binding.take(np.where(missing, 0, positions))
    return Binding(binding.types, np.where(missing, NULL, taken.ids), taken.kinds)
