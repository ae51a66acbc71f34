"""Rows with their scores: what a ranking keeps, how it orders, and which columns show it.

Ranking looks at the rows that survive `match`; a limit cuts afterwards.
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
    """Rows, and the score that each ranking of the query gives them."""

    context: Context
    rows: Rows
    scores: dict[plan.Ranking, Scores]

    def keys(self, ranking: plan.Ranking | None) -> list[Key]:
        """The sort keys of the ranking that orders the rows."""
        if ranking is None:
            return []
        found = [_by_number(best_first(ranking, self.scores[ranking]))]
        if isinstance(ranking, plan.Fuse):  # equal scores: the first arm decides, then the second
            found += [_by_number(one) for one in arm_ranks(self.context, self.rows, ranking)]
        return found

    def columns(self, positions: Ids) -> dict[plan.Ranking, pa.Array]:
        """The scores of some rows as result columns."""
        return {ranking: as_column(one[positions]) for ranking, one in self.scores.items()}


def has_scores(what: plan.ReadPlan) -> bool:
    """Whether a plan ranks its rows or returns a score."""
    return what.ranking is not None or any(isinstance(c.value, plan.Score) for c in what.columns)


def score(context: Context, rows: Rows, what: plan.ReadPlan, most: int | None = None) -> Scored:
    """The rows that the ranking of a plan keeps, with all scores; only the `most` best matter."""
    if isinstance(what.ranking, plan.Nearest) and most is not None and not _fuses(what):
        rows = narrowed(context, rows, what.ranking, most)
    wanted = [one.value.ranking for one in what.columns if isinstance(one.value, plan.Score)]
    wanted += [what.ranking] if what.ranking is not None else []
    scores = {ranking: scores_of(context, rows, ranking) for ranking in dict.fromkeys(wanted)}
    if what.ranking is None:
        return Scored(context, rows, scores)
    kept = np.flatnonzero(~np.isnan(scores[what.ranking]))
    left = {ranking: one[kept] for ranking, one in scores.items()}
    return Scored(context, rows.take(kept), left)


def _fuses(what: plan.ReadPlan) -> bool:
    """Whether a column shows ranks, which all rows together decide."""
    scores = (one.value for one in what.columns if isinstance(one.value, plan.Score))
    return any(isinstance(one.ranking, plan.Fuse) for one in scores)


def _by_number(numbers: Scores | Ids) -> Key:
    def key(positions: Ids, most: int | None) -> Codes:
        return np.unique(numbers[positions], return_inverse=True)[1].astype(np.int64)

    return key
