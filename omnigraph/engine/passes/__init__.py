"""Plan rewrites that run before execution, each in its own module.

Each function takes a plan and returns an equivalent plan. Rewrites use the schema but never the stored rows, so the
rewritten plan can be cached with the compiled query.
"""

from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR

from .anti_join_probe import anti_join_probe
from .close_by_probe import close_by_probe
from .count_only import count_only
from .deduplicate_expansions import deduplicate_expansions
from .drop_variables import drop_variables
from .find_by_key import find_by_key
from .push_filters import push_filters
from .use_distinct_value_scan import use_distinct_value_scan

PASSES = (
    push_filters,
    anti_join_probe,
    close_by_probe,
    count_only,
    use_distinct_value_scan,
    find_by_key,
    drop_variables,
    deduplicate_expansions,
)


def rewrite_plan(read_plan: plan.ReadPlan, schema_ir: SchemaIR) -> plan.ReadPlan:
    """Apply all rewrites to a plan."""
    for rewrite_pass in PASSES:
        read_plan = rewrite_pass(read_plan, schema_ir)
    return read_plan
