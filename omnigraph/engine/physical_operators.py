"""Physical operators, which plan rewrites substitute for logical operators.

Each one produces the same result as the logical operators that it replaces, but in less time.
"""

from omnigraph.lang.query import plan
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType


@record
class KeyScan:
    """A scan whose filters specify every key member, so that it looks up at most one node by id.

    `key_members` lists the key members in the order used to form the id. `remaining_filters` must still be evaluated.
    `prefetch_columns` lists the columns to read along with the row id, which makes a second read unnecessary.
    """

    scan: plan.NodeScan
    key_members: tuple[tuple[str, PropertyType, plan.Value], ...]
    remaining_filters: tuple[plan.Predicate, ...] = ()
    prefetch_columns: tuple[str, ...] = ()


@record
class EdgeExists:
    """Keep the rows in which an edge joins two variables or, if `negated` is true, in which no edge does.

    An edge joins them if `expansion` would follow it from `expansion.source` to `target_variable`.
    """

    expansion: plan.Expand
    target_variable: str
    negated: bool = False


@record
class NoNeighbor:
    """Keep the rows from which an expansion reaches no node."""

    expansion: plan.Expand


@record
class WeightByDegree:
    """An expansion whose target is never read.

    Instead of adding rows, it multiplies each row's weight by the number of neighbors.
    """

    expansion: plan.Expand


@record
class DistinctExpand:
    """An expansion that keeps only its target nodes and no other variables; some of the nodes may be duplicates."""

    expansion: plan.Expand


@record
class DropVariables:
    """Drop variables that are not read by any later operator."""

    variables: tuple[str, ...]


@record
class DistinctValueScan:
    """A node scan in a plan whose filters, group keys and aggregates read only the listed columns."""

    scan: plan.NodeScan
    value_columns: tuple[str, ...]
