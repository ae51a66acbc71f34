"""Physical operators: internal replacements that plan rewrites insert into a plan.

Each operator returns the same rows as the logical operators that it replaces, but faster.
"""

from omnigraph.lang.query import plan
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType


@record
class KeyScan:
    """A scan whose filters fix every key member. It looks up at most one node, by its id.

    `key_members` lists the key members in the order used to form the id. `remaining_filters` must still be tested.
    `prefetch_columns` lists columns to read along with the node, which saves a second read.
    """

    scan: plan.NodeScan
    key_members: tuple[tuple[str, PropertyType, plan.Value], ...]
    remaining_filters: tuple[plan.Predicate, ...] = ()
    prefetch_columns: tuple[str, ...] = ()


@record
class EdgeExists:
    """Keep rows in which two variables are joined by an edge or, if `negated`, rows in which they are not joined.

    The edge is the one that `expansion` would follow from `expansion.source` to `target_variable`.
    """

    expansion: plan.Expand
    target_variable: str
    negated: bool = False


@record
class NoNeighbour:
    """Keep rows from which an expansion does not reach any node."""

    expansion: plan.Expand


@record
class WeightByDegree:
    """An expansion whose target is never read. It multiplies each row's weight by the number of neighbours."""

    expansion: plan.Expand


@record
class DistinctExpand:
    """An expansion that keeps only the distinct target nodes."""

    expansion: plan.Expand


@record
class DropVariables:
    """Drop variables that are not read by any later operator."""

    variables: tuple[str, ...]


@record
class DistinctValueScan:
    """A scan whose rows are read only by aggregates, which read only the listed columns."""

    scan: plan.NodeScan
    value_columns: tuple[str, ...]
