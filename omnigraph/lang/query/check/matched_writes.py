"""Check updates and deletes of entities that a `match` binds.

This module resolves the variable whose entities change, the values assigned to them, and the columns that the statement
needs from the match. The match itself is checked in the same way as in a read.
"""

from typing import Literal as OneOf

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_variables import variables_of
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import ScalarType

from .assignments import check_assignments, check_identity_unchanged
from .checked import CheckedMatch, CheckedMatchedDelete, CheckedMatchedUpdate, CheckedRead
from .columns import BLOB_HINT
from .reads import check_whole_match
from .scope import EdgeVariable, HopEdgeVariable, NodeVariable, PathVariable, Scope
from .typed_values import STRING

ID_COLUMN = "id"  # a name that no property can have
_ROW_VALUES = plan.PropertyValue | plan.SystemValue | plan.ScalarValue


def check_matched_update(scope: Scope, update: m.MatchedUpdate) -> CheckedMatchedUpdate | None:
    """Check an update of matched nodes or edges. `scope` must not contain any variables yet."""
    checked_match = check_whole_match(scope, update.clauses, update.span)
    target = _resolve_target(scope, update.variable)
    target_type = _resolve_type(scope, update.variable, target) if target is not None else None
    assignments = check_assignments(scope, target_type, update.assignments)
    if target_type is None or target is None:
        return None
    if not update.assignments:
        scope.report.error(update.variable.span, "an update must have at least one assignment", "T10")
    check_identity_unchanged(scope, target_type, update.assignments)
    _reject_blobs(scope, update, assignments)
    row_columns = [
        plan.PlanColumn(assignment.name, assignment.value, assignment.value.type)
        for assignment in assignments
        if isinstance(assignment.value, _ROW_VALUES) and variables_of(assignment.value)
    ]
    kind: OneOf["node", "edge"] = "node" if isinstance(target_type, NodeType) else "edge"
    return CheckedMatchedUpdate(kind, target_type.name, assignments, _read_of(checked_match, target, row_columns))


def check_matched_delete(scope: Scope, delete: m.MatchedDelete) -> CheckedMatchedDelete | None:
    """Check a delete of matched nodes or edges. `scope` must not contain any variables yet."""
    checked_match = check_whole_match(scope, delete.clauses, delete.span)
    target = _resolve_target(scope, delete.variable)
    if target is None:
        return None
    target_type = _resolve_type(scope, delete.variable, target)
    if target_type is None:
        return None
    matched_read = _read_of(checked_match, target, [])
    if isinstance(target_type, EdgeType):
        return CheckedMatchedDelete("edge", target_type.name, matched_read)
    return CheckedMatchedDelete("node", target_type.name, matched_read, incident_edges(scope.catalog, target_type))


def incident_edges(catalog: Catalog, node_type: NodeType) -> tuple[str, ...]:
    """Return the edge types whose edges are deleted together with a node of the given type."""
    return tuple(sorted(edge.name for edge in catalog.edges if node_type.name in (edge.source, edge.target)))


def _resolve_target(scope: Scope, variable: m.Variable) -> NodeVariable | EdgeVariable | None:
    target = scope.variables.get(variable.name)
    if target is None:
        message = f"the `match` does not bind `${variable.name}`"
        scope.report.error(variable.span, message, "T10", hint=did_you_mean(variable.name, scope.variables))
    if isinstance(target, PathVariable | HopEdgeVariable):
        message = f"`${variable.name}` represents several entities, so it cannot be changed"
        scope.report.error(variable.span, message, "T10", hint="change a node, or an edge of a single-hop traversal")
    return target if isinstance(target, NodeVariable | EdgeVariable) else None


def _resolve_type(
    scope: Scope, variable: m.Variable, target: NodeVariable | EdgeVariable
) -> NodeType | EdgeType | None:
    if isinstance(target, EdgeVariable):
        return _resolve_edge_type(scope, variable, target)
    node_type = scope.catalog.node(target.type_name)
    if node_type is None:
        message = f"`${variable.name}` is bound to the interface {target.type_name}, not to a node type"
        hint = "write one statement for each node type that implements the interface"
        scope.report.error(variable.span, message, "T10", hint=hint)
    return node_type


def _resolve_edge_type(scope: Scope, variable: m.Variable, target: EdgeVariable) -> EdgeType | None:
    if len(target.edge_types) == 1:
        return scope.catalog.edge(target.edge_types[0])
    message = f"`${variable.name}` represents edges of several types: {', '.join(target.edge_types)}"
    scope.report.error(variable.span, message, "T23", hint="write one statement for each edge type")
    return None


def _reject_blobs(scope: Scope, update: m.MatchedUpdate, assignments: tuple[plan.Assign, ...]) -> None:
    spans = {assignment.name.text: assignment.value.span for assignment in update.assignments}
    for assignment in assignments:
        value = assignment.value
        if isinstance(value, plan.PropertyValue) and value.type.scalar is ScalarType.BLOB:
            scope.report.error(spans[assignment.name], "queries cannot read Blobs", "T24", hint=BLOB_HINT)


def _read_of(
    checked_match: CheckedMatch, target: NodeVariable | EdgeVariable, row_columns: list[plan.PlanColumn]
) -> CheckedRead:
    """Return a read that yields each distinct combination of an entity's id and the values assigned to the entity."""
    id_type = STRING.as_nullable(target.optional)
    id_column = plan.PlanColumn(ID_COLUMN, plan.SystemValue(target.name, "id", id_type), id_type)
    return CheckedRead(
        match=checked_match,
        columns=(id_column, *row_columns),
        aggregated=False,
        distinct=True,
        order=(),
        ranking=None,
        limit=None,
        offset=None,
    )
