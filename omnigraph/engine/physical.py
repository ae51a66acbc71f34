"""Physical operators: engine-internal replacements that plan rewrites put into a plan.

Each returns the same rows as the logical operators that it replaces, only faster.
"""

from omnigraph.lang.query import plan
from omnigraph.record import record
from omnigraph.values import PropertyType


@record
class KeyScan:
    """A scan whose filters fix every key member: at most one node, looked up by its id.

    `key_members` are in the order in which they form the id; `remaining_filters` are still to be
    tested. `prefetch_columns` are read along, which saves a second read of the one node.
    """

    scan: plan.NodeScan
    key: tuple[tuple[str, PropertyType, plan.Value], ...]
    rest: tuple[plan.Predicate, ...] = ()
    columns: tuple[str, ...] = ()


@record
class Linked:
    """Keep rows whose two variables are joined by an edge or, if `negated`, by none.

    `expansion` starts at `expansion.source`; its target would have to be `target_variable`.
    """

    walk: plan.Expand
    right: str
    negated: bool = False


@record
class Alone:
    """Keep rows from which an expansion reaches no node."""

    walk: plan.Expand


@record
class Weigh:
    """An expansion whose target is never read: multiplies row weights by the degree."""

    walk: plan.Expand


@record
class Reach:
    """An expansion of which only the distinct target nodes are kept."""

    walk: plan.Expand


@record
class Forget:
    """Drop variables that no later operator reads."""

    names: tuple[str, ...]


@record
class FoldScan:
    """A scan of which only these columns are read, and only by aggregates."""

    scan: plan.NodeScan
    columns: tuple[str, ...]


Physical = plan.Operator | KeyScan | Linked | Alone | Weigh | FoldScan | Forget | Reach
