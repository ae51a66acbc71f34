"""The `having` clause, which filters groups by their keys and aggregates.

The condition is evaluated for each group in the same way as a filter is evaluated for each row. The column source
provides the keys and aggregates of the groups.
"""

from omnigraph.engine.expressions.evaluate import ColumnSource, true_mask
from omnigraph.lang.query import plan

from .rows import Mask


def having_mask(source: ColumnSource, having: plan.Predicate) -> Mask:
    """Return a mask of the groups for which the predicate is true."""
    return true_mask(source, having)
