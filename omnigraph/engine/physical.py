"""Operators that only the engine knows: what rewrites of a plan put in place of its own.

Each says the same as the operators it replaces, faster.
"""

from omnigraph.lang.query import plan
from omnigraph.record import record
from omnigraph.values import PropertyType


@record
class KeyScan:
    """A scan whose filters fix every member of the key: at most one node, found by its id.

    `key` has the members in the order of the id; `rest` are the filters that remain to be tested.
    `columns` are read along, so that nobody has to come back for one node.
    """

    scan: plan.NodeScan
    key: tuple[tuple[str, PropertyType, plan.Value], ...]
    rest: tuple[plan.Predicate, ...] = ()
    columns: tuple[str, ...] = ()


@record
class Linked:
    """Keep rows whose two variables an edge joins, or with `negated` those that none joins.

    `walk` is the expansion from `walk.source` whose target would have to be `right`.
    """

    walk: plan.Expand
    right: str
    negated: bool = False


@record
class Alone:
    """Keep rows from which an expansion leads nowhere."""

    walk: plan.Expand


@record
class Weigh:
    """An expansion whose nodes nobody looks at: rows count as often as they have neighbours."""

    walk: plan.Expand


@record
class Reach:
    """An expansion of which nothing is kept but its target, each node once."""

    walk: plan.Expand


@record
class Forget:
    """Drop variables that nobody asks for any more."""

    names: tuple[str, ...]


@record
class FoldScan:
    """A scan of which nothing but these columns is looked at, and rows are only aggregated."""

    scan: plan.NodeScan
    columns: tuple[str, ...]


Physical = plan.Operator | KeyScan | Linked | Alone | Weigh | FoldScan | Forget | Reach
