"""Choose the adjacencies for an expansion, restricted to the edges that pass its edge test."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.filtered_adjacency import FilteredAdjacency
from omnigraph.engine.adjacency.neighbors import choose_adjacency
from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

from .filter import matching_mask
from .rows import IntArray, Mask, Rows, VariableBinding
from .scan import filtered_row_ids

_FULL_SCAN_DIVISOR = 4  # once 1/4 of the edges have been tested, the test is evaluated for all edges
REVERSED_DIRECTIONS: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}


def choose_adjacencies(
    context: ExecutionContext,
    steps: Sequence[plan.PlanStep],
    edge_test: plan.EdgeTest | None,
    expected_sources: int,
    *,
    with_edges: bool = False,
) -> list[Adjacency]:
    """Return the adjacency for each edge type and direction in `steps`, restricted to the edges that pass the test."""
    adjacencies = [
        choose_adjacency(
            context, step.edge_type, step.direction, expected_sources, with_edges=with_edges or edge_test is not None
        )
        for step in steps
    ]
    if edge_test is None:
        return adjacencies
    return [
        FilteredAdjacency(adjacency, EdgeAcceptance(context, TableKey.edge(step.edge_type), edge_test))
        for adjacency, step in zip(adjacencies, steps, strict=True)
    ]


@dataclass(slots=True, eq=False)
class EdgeAcceptance:
    """A function that decides which edges of one type pass a test."""

    context: ExecutionContext
    edge_key: TableKey
    edge_test: plan.EdgeTest
    _tested_count: int = 0
    _is_accepted: Mask | None = None

    def __call__(self, edge_ids: IntArray) -> Mask:
        """Return whether each edge passes all predicates in the test."""
        self._tested_count += len(edge_ids)
        if self._is_accepted is None and self._tested_count * _FULL_SCAN_DIVISOR > self.context.row_count(
            self.edge_key
        ):
            self._is_accepted = self._test_all()
        if self._is_accepted is not None:
            # The mask ends after the highest accepted id. Higher edge ids use its last entry, which is False.
            return self._is_accepted[np.minimum(edge_ids, len(self._is_accepted) - 1)]
        return self._test_some(edge_ids)

    def _test_all(self) -> Mask:
        accepted_ids = filtered_row_ids(self.context, self.edge_key, self.edge_test.predicates)
        is_accepted = np.zeros(int(accepted_ids.max(initial=-1)) + 2, np.bool_)
        is_accepted[accepted_ids] = True
        return is_accepted

    def _test_some(self, edge_ids: IntArray) -> Mask:
        is_accepted: Mask = np.ones(len(edge_ids), np.bool_)
        if len(edge_ids) == 0:
            return is_accepted
        edge_rows = Rows.from_bindings({self.edge_test.variable: VariableBinding((self.edge_key,), edge_ids)})
        for predicate in self.edge_test.predicates:
            is_accepted &= matching_mask(self.context, edge_rows, predicate)
        return is_accepted


def reverse_steps(steps: Sequence[plan.PlanStep]) -> tuple[plan.PlanStep, ...]:
    """Return the same edge types, each followed in the opposite direction."""
    return tuple(plan.PlanStep(step.edge_type, REVERSED_DIRECTIONS[step.direction]) for step in steps)
