"""Makes expansions return each node once, where the result only depends on the set of nodes.

`count(distinct ..)`, `min` and `max` over all rows ignore how often a row occurs. An expansion
after which only its target is still bound then returns a set, and the next one starts from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.engine.physical import Forget, Reach, Weigh
from omnigraph.lang.query import plan
from omnigraph.lang.schema.ir import SchemaIR

from .forget import made


def reach_only(what: plan.ReadPlan, ir: SchemaIR) -> plan.ReadPlan:
    """Return the plan with its last expansions as sets of nodes, if repeated rows do not matter."""
    if not _ignores_repeats(what):
        return what
    operators: Any = tuple(_reaching(what.operators))
    return replace(what, operators=operators)


def _ignores_repeats(what: plan.ReadPlan) -> bool:
    weighed = any(isinstance(one, Weigh) for one in what.operators)
    plain = what.aggregated and not what.order and what.ranking is None and not weighed
    return plain and all(_ignores(column.value) for column in what.columns)


def _ignores(value: plan.Value) -> bool:
    if not isinstance(value, plan.Aggregate):
        return False
    return value.function in ("min", "max") or (value.function == "count" and value.distinct)


def _reaching(operators: Sequence[Any]) -> Iterator[Any]:
    there: set[str] = set()
    skipped = False
    for at, one in enumerate(operators):
        if skipped:
            skipped = False
            continue
        after = operators[at + 1] if at + 1 < len(operators) else None
        there |= made(one)
        if isinstance(after, Forget):
            there -= set(after.names)
        skipped = _is_reach(one, after, there)
        yield Reach(one) if skipped else one


def _is_reach(one: Any, after: Any, there: set[str]) -> bool:
    """Return whether only the target of an expansion stays bound after it."""
    return (
        isinstance(one, plan.Expand)
        and isinstance(after, Forget)
        and one.edge_variable is None
        and one.target is not None
        and there == {one.target}
    )
