"""A checked `match`: clauses in textual order, every name resolved, not yet in execution order.

Owns the form between checker and lowering. Variables have their plan names.
"""

from dataclasses import field

from omnigraph.diagnostics import NOWHERE, Span
from omnigraph.lang.query import plan
from omnigraph.record import record


@record
class Bind:
    """A variable ranges over the nodes of its type that pass the predicates."""

    variable: str
    predicates: tuple[plan.Predicate, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@record
class Walk:
    """A traversal as written; None is the anonymous variable. Steps lead from source to target."""

    source: str | None
    target: str | None
    source_type: str
    target_type: str
    steps: tuple[plan.Step, ...]
    low: int = 1
    high: int = 1
    edge_variable: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@record
class Keep:
    """A condition."""

    predicate: plan.Predicate


@record
class Without:
    """`not { .. }`."""

    match: "Match"


@record
class Maybe:
    """`optional { .. }`."""

    match: "Match"


Clause = Bind | Walk | Keep | Without | Maybe


@record
class Match:
    """A list of clauses and the variables it introduces, in order of first appearance.

    `node_types` maps each node variable among them to its type.
    """

    clauses: tuple[Clause, ...]
    introduced: tuple[str, ...]
    node_types: dict[str, str]


@record
class CheckedRead:
    """A checked read; its `match` is not yet in execution order."""

    match: Match
    columns: tuple[plan.Column, ...]
    aggregated: bool
    distinct: bool
    order: tuple[plan.SortKey, ...]
    ranking: plan.Ranking | None
    limit: plan.Value | None
    offset: plan.Value | None
