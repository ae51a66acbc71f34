"""Ranking: which rows a ranking keeps, how it orders them, and the result columns of scores.

All rows that survive `match` are ranked; a limit is applied afterwards.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan

from .codes import Codes
from .context import Context
from .fuse import arm_ranks
from .nearest import narrowed
from .order import Key
from .rows import Ids, Rows
from .search import Scores, as_column, best_first, scores_of


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Rows with the score that each ranking of the query assigns to them."""

    context: Context
    rows: Rows
    scores: dict[plan.Ranking, Scores]

    def keys(self, ranking: plan.Ranking | None) -> list[Key]:
        """Return the sort keys of the ranking that orders the rows."""
        if ranking is None:
            return []
        found = [_by_number(best_first(ranking, self.scores[ranking]))]
        if isinstance(ranking, plan.Fuse):  # ties: the first arm decides, then the second
            found += [_by_number(one) for one in arm_ranks(self.context, self.rows, ranking)]
        return found

    def columns(self, positions: Ids) -> dict[plan.Ranking, pa.Array]:
        """Return the scores of some rows as result columns."""
        return {ranking: as_column(one[positions]) for ranking, one in self.scores.items()}


def has_scores(what: plan.ReadPlan) -> bool:
    """Return whether a plan ranks its rows or returns a score."""
    return what.ranking is not None or any(isinstance(c.value, plan.Score) for c in what.columns)


def score(context: Context, rows: Rows, what: plan.ReadPlan, most: int | None = None) -> Scored:
    """Return the rows that the ranking keeps, with all scores; only the best `limit` matter."""
    if isinstance(what.ranking, plan.Nearest) and most is not None and not _fuses(what):
        rows = narrowed(context, rows, what.ranking, most)
    wanted = [one.value.ranking for one in what.columns if isinstance(one.value, plan.Score)]
    wanted += [what.ranking] if what.ranking is not None else []
    scores = {ranking: scores_of(context, rows, ranking) for ranking in dict.fromkeys(wanted)}
    if what.ranking is None:
        return Scored(context, rows, scores)
    kept = np.flatnonzero(~np.isnan(scores[what.ranking]))
    left = {ranking: values[kept] for ranking, values in scores.items()}
    return Scored(context, rows.take(kept), left)


def _fuses(what: plan.ReadPlan) -> bool:
    """Return whether a column shows a fused score, which depends on all rows together."""
    scores = (one.value for one in what.columns if isinstance(one.value, plan.Score))
    return any(isinstance(value.ranking, plan.Fuse) for value in scores)


def _by_number(numbers: Scores | Ids) -> Key:
    def key(positions: Ids, most: int | None) -> Codes:
        return np.unique(numbers[positions], return_inverse=True)[1].astype(np.int64)

    return key
