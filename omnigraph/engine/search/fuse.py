"""Reciprocal rank fusion, which combines two rankings of the same variable.

Fusion ranks entities rather than rows, so an entity that occurs in many rows has a single rank in each ranking.
"""

import numpy as np

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.value_codes import dense_codes, entity_codes
from omnigraph.engine.operators.order import sort_by_id, sorted_positions
from omnigraph.engine.operators.rows import IntArray, Rows, VariableBinding
from omnigraph.errors import ParameterError
from omnigraph.lang.query import plan

from .scoring import Scores, ascending_from_best, entity_scores


def fused_scores(context: ExecutionContext, rows: Rows, fusion: plan.Fuse) -> Scores:
    """Return each row's score: the sum of 1 / (k + rank + 1) over the rankings that include it, or NaN if none does."""
    codes, _, scores = _rank_arms(context, rows, fusion)
    return scores[codes] if len(codes) else np.empty(0)


def arm_ranks(context: ExecutionContext, rows: Rows, fusion: plan.Fuse) -> list[IntArray]:
    """For each of the two rankings, return the rank of the entity in each row. Unranked entities come last."""
    codes, ranks_by_arm, _ = _rank_arms(context, rows, fusion)
    return [entity_ranks[codes] for entity_ranks in ranks_by_arm]


def _rank_arms(context: ExecutionContext, rows: Rows, fusion: plan.Fuse) -> tuple[IntArray, list[IntArray], Scores]:
    binding = rows[fusion.first.field.variable]
    codes, first_rows = dense_codes(entity_codes(binding))
    entities = binding.take(first_rows)
    arms = (fusion.first, fusion.second)
    ranks_by_arm = [_rank_arm(context, entities, entity_ranks) for entity_ranks in arms]
    fusion_constant = _fusion_constant(context, fusion)
    scores = np.zeros(len(first_rows))
    for entity_ranks in ranks_by_arm:
        scores += np.where(entity_ranks < len(first_rows), 1.0 / (fusion_constant + entity_ranks + 1), 0.0)
    return codes, ranks_by_arm, np.where(scores > 0, scores, np.nan)


def _fusion_constant(context: ExecutionContext, fusion: plan.Fuse) -> int:
    """Return the fusion constant; raise an error if a parameter supplies an invalid value."""
    constant: int | None = context.constant(fusion.k)
    if constant is None or constant < 1:
        parameter_name = fusion.k.name if isinstance(fusion.k, plan.Parameter) else None
        raise ParameterError(parameter=parameter_name, expected="a positive number for `rrf`", actual=constant)
    return constant


def _rank_arm(context: ExecutionContext, entities: VariableBinding, arm: plan.Bm25 | plan.Nearest) -> IntArray:
    """Return the rank of each entity, counted from 0, with ties broken by id.

    The rank of an unranked entity is the number of entities.
    """
    scores = ascending_from_best(arm, entity_scores(context, entities, arm))
    scored_positions = np.flatnonzero(~np.isnan(scores))
    scored_rows = Rows.from_bindings({"_": entities.take(scored_positions)})
    score_ranks = np.unique(scores[scored_positions], return_inverse=True)[1].astype(np.int64)
    sort_keys = [lambda positions, _: score_ranks[positions], *sort_by_id(context, scored_rows, "_")]
    ranked_positions = sorted_positions(context, len(scored_positions), sort_keys)
    entity_ranks = np.full(len(entities.row_ids), len(entities.row_ids), np.int64)
    entity_ranks[scored_positions[ranked_positions]] = np.arange(len(scored_positions))
    return entity_ranks
