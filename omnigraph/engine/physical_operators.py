"""Physical operators: engine-internal replacements that plan rewrites put into a plan.

Each returns the same rows as the logical operators that it replaces, only faster.
"""

from omnigraph.lang.query import plan
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType


@record
class KeyScan:
    """A scan whose filters fix every key member: at most one node, looked up by its id.

    `key_members` are in the order in which they form the id; `remaining_filters` are still to be
    tested. `prefetch_columns` are read along, which saves a second read of the one node.
    """

    scan: plan.NodeScan
    key_members: tuple[tuple[str, PropertyType, plan.Value], ...]
    remaining_filters: tuple[plan.Predicate, ...] = ()
    prefetch_columns: tuple[str, ...] = ()


@record
class EdgeExists:
    """Keep rows whose two variables are joined by an edge or, if `negated`, by none.

    `expansion` starts at `expansion.source`; its target would have to be `target_variable`.
    """

    expansion: plan.Expand
    target_variable: str
    negated: bool = False


@record
class NoNeighbour:
    """Keep rows from which an expansion reaches no node."""

    expansion: plan.Expand


@record
class WeightByDegree:
    """An expansion whose target is never read: multiplies row weights by the degree."""

    expansion: plan.Expand


@record
class DistinctExpand:
    """An expansion of which only the distinct target nodes are kept."""

    expansion: plan.Expand


@record
class DropVariables:
    """Drop variables that no later operator reads."""

    variables: tuple[str, ...]


@record
class DistinctValueScan:
    """A scan of which only these columns are read, and only by aggregates."""

    scan: plan.NodeScan
    value_columns: tuple[str, ...]
