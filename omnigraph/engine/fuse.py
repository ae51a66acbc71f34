"""Reciprocal rank fusion: combine two rankings of one variable.

Entities are ranked, not rows: an entity in many rows has a single rank in each arm.
"""

import numpy as np

from omnigraph.errors import ParameterError
from omnigraph.lang.query import plan

from .codes import dense, entity_codes
from .context import Context
from .order import arrange, by_id
from .rows import Binding, Ids, Rows
from .search import Scores, best_first, entity_scores


def fused(context: Context, rows: Rows, fuse: plan.Fuse) -> Scores:
    """Return the score of every row: the sum of 1 / (k + rank + 1) over the arms that rank it."""
    codes, _, scores = _ranks(context, rows, fuse)
    return scores[codes] if len(codes) else np.empty(0)


def arm_ranks(context: Context, rows: Rows, fuse: plan.Fuse) -> list[Ids]:
    """Return the rank of each row's entity in both arms; unranked entities come last."""
    codes, ranks, _ = _ranks(context, rows, fuse)
    return [one[codes] for one in ranks]


def _ranks(context: Context, rows: Rows, fuse: plan.Fuse) -> tuple[Ids, list[Ids], Scores]:
    binding = rows[fuse.first.field.variable]
    codes, first = dense(entity_codes(binding))
    each = binding.take(first)
    arms = (fuse.first, fuse.second)
    ranks = [_arm(context, each, one) for one in arms]
    k = _k(context, fuse)
    scores = np.zeros(len(first))
    for one in ranks:
        scores += np.where(one < len(first), 1.0 / (k + one + 1), 0.0)
    return codes, ranks, np.where(scores > 0, scores, np.nan)


def _k(context: Context, fuse: plan.Fuse) -> int:
    """Return the fusion constant; a parameter may hold an invalid one."""
    found: int | None = context.constant(fuse.k)
    if found is None or found < 1:
        name = fuse.k.name if isinstance(fuse.k, plan.Parameter) else None
        raise ParameterError(parameter=name, expected="a positive number for `rrf`", actual=found)
    return found


def _arm(context: Context, each: Binding, arm: plan.Bm25 | plan.Nearest) -> Ids:
    """Return the rank of each entity in one arm, from 0; ties by id; unranked: the entity count."""
    scores = best_first(arm, entity_scores(context, each, arm))
    inside = np.flatnonzero(~np.isnan(scores))
    rows = Rows.of({"_": each.take(inside)})
    places = np.unique(scores[inside], return_inverse=True)[1].astype(np.int64)
    keys = [lambda positions, _: places[positions], *by_id(context, rows, "_")]
    order = arrange(context, len(inside), keys)
    ranks = np.full(len(each.ids), len(each.ids), np.int64)
    ranks[inside[order]] = np.arange(len(inside))
    return ranks
