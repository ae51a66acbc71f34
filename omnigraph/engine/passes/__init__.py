"""Rewrites of a plan before it runs: a tuple of functions, one file each.

Each takes a plan and returns an equivalent one. They see the schema but never the data, so that
their result can be cached with the compiled query.
"""

from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR

from .anti_membership import anti_membership
from .close_by_probe import close_by_probe
from .count_only import count_only
from .find_by_key import find_by_key
from .fold_values import fold_values
from .forget import forget
from .push_filters import push_filters
from .reach_only import reach_only

PASSES = (
    push_filters,
    anti_membership,
    close_by_probe,
    count_only,
    fold_values,
    find_by_key,
    forget,
    reach_only,
)


def rewrite(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan after all rewrites."""
    for one in PASSES:
        what = one(what, ir)
    return what
