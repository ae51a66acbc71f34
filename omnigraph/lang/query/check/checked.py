"""The checked form of a query: names are resolved, but clauses are still in source order rather than execution order.

The checker passes this form to lowering. Variables already have the names that they will have in the plan.
"""

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.lang.query import plan, plan_paths
from omnigraph.records.frozen import record


@record
class CheckedBinding:
    """A node variable, and the predicates that its nodes must satisfy."""

    variable: str
    predicates: tuple[plan.Predicate, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@record
class CheckedPath:
    """A traversal's path variable, its path mode, and the edge property to minimize."""

    variable: str
    mode: plan_paths.PathMode
    cost: plan.PropertyValue | None = None


@record
class CheckedTraversal:
    """A traversal as written. Each step has an edge type and the direction that leads from the source to the target.

    If `source` or `target` is None, that endpoint is anonymous.
    """

    source: str | None
    target: str | None
    source_type: str
    target_type: str
    steps: tuple[plan.PlanStep, ...]
    min_hops: int = 1
    max_hops: int = 1
    edge_variable: str | None = None
    edge_test: plan.EdgeTest | None = None
    path: "CheckedPath | None" = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class CheckedFilter:
    """A checked condition that is used as a clause."""

    predicate: plan.Predicate


@record
class CheckedNegation:
    """A checked `not { .. }`."""

    match: "CheckedMatch"


@record
class CheckedOptional:
    """A checked `optional { .. }`."""

    match: "CheckedMatch"


CheckedClause = CheckedBinding | CheckedTraversal | CheckedFilter | CheckedNegation | CheckedOptional


@record
class CheckedMatch:
    """A list of clauses and, in order of first appearance, the variables that they introduce.

    `node_types` maps each node variable to its node type.
    """

    clauses: tuple[CheckedClause, ...]
    introduced: tuple[str, ...]
    node_types: dict[str, str]


@record
class CheckedRead:
    """A checked read. Its `match` is not yet in execution order."""

    match: CheckedMatch
    columns: tuple[plan.PlanColumn, ...]
    aggregated: bool
    distinct: bool
    order: tuple[plan.SortKey, ...]
    ranking: plan.Ranking | None
    limit: plan.Value | None
    offset: plan.Value | None
    having: plan.Predicate | None = None


@record
class CheckedUnion:
    """A checked union. Each column has a type that can hold the values of the matching columns in all parts."""

    parts: tuple[CheckedRead, ...]
    columns: tuple[plan.PlanColumn, ...]
    keeps_duplicates: bool
    order: tuple[plan.SortKey, ...]
    limit: plan.Value | None
    offset: plan.Value | None


@record
class CheckedMatchedUpdate:
    """A checked `match { .. } update $p set { .. }`. See `plan.MatchedUpdate` for the columns of `matched`."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[plan.Assign, ...]
    matched: CheckedRead


@record
class CheckedMatchedDelete:
    """A checked `match { .. } delete $p`."""

    kind: OneOf["node", "edge"]
    type_name: str
    matched: CheckedRead
    cascades: tuple[str, ...] = ()


CheckedStatement = (
    plan.InsertRow
    | plan.UpsertRow
    | plan.PatchRow
    | plan.UpdateRows
    | plan.DeleteRows
    | CheckedMatchedUpdate
    | CheckedMatchedDelete
)


@record
class CheckedWrite:
    """A mutation's checked statements."""

    statements: tuple[CheckedStatement, ...]


CheckedBody = CheckedRead | CheckedUnion | CheckedWrite
