"""Check the statements in a mutation, including those that select rows with `where`.

This module checks each statement's target, assignments and `where` (codes T3, T7, T10, T11, T13, T14 and T16).
Constraints on data, such as keys and ranges, are checked when the statement runs.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean

from .assignments import check_assignments, check_identity_unchanged
from .checked import CheckedStatement, CheckedWrite
from .matched_writes import check_matched_delete, check_matched_update, incident_edges
from .row_conditions import check_row_condition, resolve_row_value
from .row_writes import check_row_write, entity_kind
from .scope import Scope


def check_write(scope: Scope, write_body: m.WriteBody) -> CheckedWrite | None:
    """Return a mutation's checked statements, or None after reporting errors."""
    checked_statements = [_check_statement(scope, statement) for statement in write_body.statements]
    valid_statements = tuple(statement for statement in checked_statements if statement is not None)
    return CheckedWrite(valid_statements) if len(valid_statements) == len(checked_statements) else None


def _check_statement(scope: Scope, statement: m.Statement) -> CheckedStatement | None:
    if isinstance(statement, m.MatchedUpdate):
        return check_matched_update(scope.without_variables(), statement)
    if isinstance(statement, m.MatchedDelete):
        return check_matched_delete(scope.without_variables(), statement)
    target_type = _resolve_target(scope, statement.type_name)
    match statement:
        case m.Insert() | m.Upsert() | m.Patch():
            return check_row_write(scope, statement, target_type)
        case m.Update():
            return _check_update(scope, statement, target_type)
        case m.Delete():
            return _check_delete(scope, statement, target_type)


def _resolve_target(scope: Scope, type_name: m.Name) -> NodeType | EdgeType | None:
    target_type = scope.catalog.node(type_name.text) or scope.catalog.edge(type_name.text)
    if target_type is None:
        type_names = [declared_type.name for declared_type in scope.catalog.nodes]
        type_names += [declared_type.name for declared_type in scope.catalog.edges]
        hint = did_you_mean(type_name.text, type_names)
        message = f"unknown type `{type_name.text}`"
        scope.report.error(type_name.span, message, "T10", hint=hint)
    return target_type


def _check_update(scope: Scope, update: m.Update, target_type: NodeType | EdgeType | None) -> plan.UpdateRows | None:
    checked_assignments = check_assignments(
        scope,
        target_type,
        update.assignments,
        resolve_value=lambda expression: resolve_row_value(scope, target_type, expression),
    )
    row_predicate = check_row_condition(scope, target_type, update.where)
    if target_type is None:
        return None
    if not update.assignments:
        scope.report.error(update.type_name.span, "an update must have at least one assignment", "T10")
    check_identity_unchanged(scope, target_type, update.assignments)
    if row_predicate is None:
        return None
    return plan.UpdateRows(target_type.name, checked_assignments, row_predicate, entity_kind(target_type))


def _check_delete(scope: Scope, delete: m.Delete, target_type: NodeType | EdgeType | None) -> plan.DeleteRows | None:
    row_predicate = check_row_condition(scope, target_type, delete.where)
    if target_type is None or row_predicate is None:
        return None
    if isinstance(target_type, EdgeType):
        return plan.DeleteRows("edge", target_type.name, row_predicate)
    return plan.DeleteRows("node", target_type.name, row_predicate, incident_edges(scope.catalog, target_type))
