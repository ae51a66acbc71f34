"""Ranking: determine which rows a ranking keeps and in what order, and compute the result columns for scores.

All matching rows are ranked, and the limit is applied afterward.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import Codes
from omnigraph.engine.identity_cache import IdentityCache
from omnigraph.engine.operators.order import SortKeyFunction
from omnigraph.engine.operators.rows import IntArray, Rows
from omnigraph.lang.query import plan
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from .scoring import Scores


@record(eq=False)
class ScoredRows:
    """Rows, and the scores that each ranking in the query assigns to them."""

    context: ExecutionContext
    rows: Rows
    scores: "dict[plan.Ranking, Scores]"

    def sort_keys(self, ranking: plan.Ranking | None) -> list[SortKeyFunction]:
        """Return the sort keys for the ranking that orders the rows."""
        if ranking is None:
            return []
        from .fuse import arm_ranks
        from .scoring import ascending_from_best

        keys = [_sort_by_number(ascending_from_best(ranking, self.scores[ranking]))]
        if isinstance(ranking, plan.Fuse):  # ties are broken by the first ranking, then by the second
            keys += [_sort_by_number(arm_rank) for arm_rank in arm_ranks(self.context, self.rows, ranking)]
        return keys

    def score_columns(self, positions: IntArray) -> dict[plan.Ranking, pa.Array]:
        """Return the scores of the given rows as result columns."""
        from .scoring import score_column

        return {ranking: score_column(ranking_scores[positions]) for ranking, ranking_scores in self.scores.items()}


def _has_scores(read_plan: plan.ReadPlan) -> bool:
    return read_plan.ranking is not None or any(isinstance(column.value, plan.Score) for column in read_plan.columns)


has_scores = IdentityCache(_has_scores)
"""Return whether a plan ranks its rows or returns a score."""


def score_rows(context: ExecutionContext, rows: Rows, read_plan: plan.ReadPlan, limit: int | None = None) -> ScoredRows:
    """Return the rows that the ranking keeps, with all scores. Rows after the first `limit` may be missing."""
    from .nearest import narrow_to_nearest
    from .scoring import compute_scores

    if isinstance(read_plan.ranking, plan.Nearest) and limit is not None and not _returns_fused_score(read_plan):
        rows = narrow_to_nearest(context, rows, read_plan.ranking, limit)
    rankings = [column.value.ranking for column in read_plan.columns if isinstance(column.value, plan.Score)]
    rankings += [read_plan.ranking] if read_plan.ranking is not None else []
    scores_by_ranking = {ranking: compute_scores(context, rows, ranking) for ranking in dict.fromkeys(rankings)}
    if read_plan.ranking is None:
        return ScoredRows(context, rows, scores_by_ranking)
    ranked_positions = np.flatnonzero(~np.isnan(scores_by_ranking[read_plan.ranking]))
    ranked_scores = {ranking: ranking_scores[ranked_positions] for ranking, ranking_scores in scores_by_ranking.items()}
    return ScoredRows(context, rows.take(ranked_positions), ranked_scores)


def _returns_fused_score(read_plan: plan.ReadPlan) -> bool:
    """Return whether a result column contains a fused score, which depends on all rows."""
    score_values = (column.value for column in read_plan.columns if isinstance(column.value, plan.Score))
    return any(isinstance(score_value.ranking, plan.Fuse) for score_value in score_values)


def _sort_by_number(numbers: "Scores | IntArray") -> SortKeyFunction:
    def number_order(positions: IntArray, limit: int | None) -> Codes:
        return np.unique(numbers[positions], return_inverse=True)[1].astype(np.int64)

    return number_order
