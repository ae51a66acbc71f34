"""The `having` clause, which filters groups by their keys and aggregates.

The condition is evaluated for groups in the same way that a filter is evaluated for rows; the column source computes
keys and aggregates per group.
"""

from omnigraph.engine.expressions.evaluate import ColumnSource, true_mask
from omnigraph.lang.query import plan

from .rows import Mask


def having_mask(source: ColumnSource, having: plan.Predicate) -> Mask:
    """Return a mask of the source's groups for which the predicate is true."""
    return true_mask(source, having)
