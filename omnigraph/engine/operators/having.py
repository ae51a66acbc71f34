"""The condition in `having`: which groups are kept, by their keys and aggregates.

Each key and aggregate becomes a column with one value per group, on which the condition is tested like on rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.evaluate import TableSource, is_constant, true_mask
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_values import replace_values, values_in
from omnigraph.values import PropertyType, ScalarType

from .rows import Mask

_UNUSED_TYPE = PropertyType(ScalarType.STRING)  # columns are evaluated by their Arrow types


def having_mask(
    context: ExecutionContext,
    having: plan.Predicate,
    group_count: int,
    group_values: Callable[[plan.Value], pa.Array],
) -> Mask:
    """Return a mask of the groups for which the predicate is true; `group_values` computes a value per group."""
    columns: dict[plan.Value, plan.Value] = {}
    arrays: list[pa.Array] = []
    for value in values_in(having):
        if not is_constant(value) and value not in columns:
            columns[value] = plan.PropertyValue(plan.ROW_VARIABLE, str(len(arrays)), _UNUSED_TYPE)
            arrays.append(group_values(value))
    if not arrays:  # only constants, which hold for all groups or for none
        arrays.append(pa.nulls(group_count))
    table = pa.table(arrays, names=[str(number) for number in range(len(arrays))])
    mask: Any = true_mask(TableSource(table, context.params), replace_values(having, lambda v: columns.get(v, v)))
    return np.asarray(mask, np.bool_)
