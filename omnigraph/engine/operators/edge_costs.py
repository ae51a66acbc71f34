"""Edge costs: the numeric property that a path search reads for each edge it follows.

Negative costs are rejected, because they could make a path cheaper each time it repeats a cycle.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.errors import QueryExecutionError
from omnigraph.lang.query import plan
from omnigraph.storage.scan import row_id_array, scan
from omnigraph.values.table_key import TableKey

from .fetch import fetch_columns
from .path_layers import EdgeLayer
from .rows import VariableBinding

_Costs = npt.NDArray[np.float64]
_FULL_READ_DIVISOR = 4  # once 1/4 of the costs have been looked up, all costs are read


@dataclass(slots=True, eq=False)
class EdgeCosts:
    """A function that returns edge costs. A null cost becomes NaN."""

    context: ExecutionContext
    edge_keys: tuple[TableKey, ...]
    cost: plan.PropertyValue
    _looked_up: int = 0
    _all_costs: dict[TableKey, _Costs] = field(default_factory=dict)

    def __call__(self, layer: EdgeLayer) -> _Costs:
        """Return the cost of each edge in a layer; raise an error if a cost is negative."""
        self._looked_up += len(layer.edges)
        edge_count = sum(self.context.row_count(edge_key) for edge_key in self.edge_keys)
        reads_all = self._looked_up * _FULL_READ_DIVISOR > edge_count
        costs = self._take_from_all(layer) if reads_all else self._look_up(layer)
        if bool((costs < 0).any()):
            raise QueryExecutionError(
                reason=f"the edge cost `{self.cost.name}` is negative ({float(np.nanmin(costs)):g})",
                hint=f"exclude edges of negative cost with `where ${self.cost.variable}.{self.cost.name} >= 0`",
            )
        return costs

    def _look_up(self, layer: EdgeLayer) -> _Costs:
        edge_types = layer.edge_types if len(self.edge_keys) > 1 else None
        binding = VariableBinding(self.edge_keys, layer.edges, edge_types)
        return _as_costs(fetch_columns(self.context, binding, [self.cost.name])[0])

    def _take_from_all(self, layer: EdgeLayer) -> _Costs:
        costs = np.empty(len(layer.edges))
        for type_index, edge_key in enumerate(self.edge_keys):
            of_type = layer.edge_types == type_index
            costs[of_type] = self._read_all(edge_key)[layer.edges[of_type]]
        return costs

    def _read_all(self, edge_key: TableKey) -> _Costs:
        if edge_key not in self._all_costs:
            self.context.meter.charge_bytes(self.context.row_count(edge_key) * 24)
            rows = scan(self.context.table(edge_key), [self.cost.name], row_ids=True)
            row_ids = row_id_array(rows)
            costs = np.full(int(row_ids.max(initial=-1)) + 1, np.nan)
            costs[row_ids] = _as_costs(rows[self.cost.name].combine_chunks())
            self._all_costs[edge_key] = costs
        return self._all_costs[edge_key]


def _as_costs(column: object) -> _Costs:
    costs: _Costs = column.cast("float64", safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)  # type: ignore[attr-defined]
    return costs
