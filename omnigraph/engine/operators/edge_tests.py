"""The adjacencies of an expansion, restricted to the edges that pass its edge test."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.filtered_adjacency import FilteredAdjacency
from omnigraph.engine.adjacency.neighbours import choose_adjacency
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .filter import matching_mask
from .rows import IntArray, Mask, Rows, VariableBinding

REVERSED_DIRECTIONS: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}


def choose_adjacencies(
    context: ExecutionContext,
    steps: Sequence[plan.PlanStep],
    edge_test: plan.EdgeTest | None,
    expected_sources: int,
    *,
    with_edges: bool = False,
) -> list[Adjacency]:
    """Return the neighbours along each step, over edges that pass the test."""
    adjacencies = [
        choose_adjacency(
            context, step.edge_type, step.direction, expected_sources, with_edges=with_edges or edge_test is not None
        )
        for step in steps
    ]
    if edge_test is None:
        return adjacencies
    return [
        FilteredAdjacency(adjacency, partial(accepted_edges, context, TableKey.edge(step.edge_type), edge_test))
        for adjacency, step in zip(adjacencies, steps, strict=True)
    ]


def accepted_edges(context: ExecutionContext, edge_key: TableKey, edge_test: plan.EdgeTest, edge_ids: IntArray) -> Mask:
    """Return whether each edge passes all predicates of the test."""
    is_accepted: Mask = np.ones(len(edge_ids), np.bool_)
    if len(edge_ids) == 0:
        return is_accepted
    edge_rows = Rows.from_bindings({edge_test.variable: VariableBinding((edge_key,), edge_ids)})
    for predicate in edge_test.predicates:
        is_accepted &= matching_mask(context, edge_rows, predicate)
    return is_accepted


def reverse_steps(steps: Sequence[plan.PlanStep]) -> tuple[plan.PlanStep, ...]:
    """Return the steps in the opposite direction."""
    return tuple(plan.PlanStep(step.edge_type, REVERSED_DIRECTIONS[step.direction]) for step in steps)
