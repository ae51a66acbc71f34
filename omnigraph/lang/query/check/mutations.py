"""Mutations: insert, update and delete.

This module checks the target, the assignments and the `where` of a statement (T10 to T14, T16, T3, T7, D2). Constraints
on data, such as keys and ranges, are checked when the statement runs.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean

from .assignments import check_assignments, check_key_unchanged
from .checked import CheckedStatement, CheckedWrite
from .matched_writes import check_matched_delete, check_matched_update, incident_edges
from .row_conditions import check_row_condition
from .scope import Scope


def check_write(scope: Scope, query_name: m.Name, write_body: m.WriteBody) -> CheckedWrite | None:
    """Return the checked statements of a mutation, or None after reporting errors."""
    _check_no_mixed_deletes(scope, query_name, write_body)
    checked_statements = [_check_statement(scope, statement) for statement in write_body.statements]
    valid_statements = tuple(statement for statement in checked_statements if statement is not None)
    return CheckedWrite(valid_statements) if len(valid_statements) == len(checked_statements) else None


def _check_no_mixed_deletes(scope: Scope, query_name: m.Name, write_body: m.WriteBody) -> None:
    """Reject a mix of deletes, which act on the committed state, and statements that also see earlier writes."""
    deletes = [statement for statement in write_body.statements if isinstance(statement, m.Delete | m.MatchedDelete)]
    if deletes and len(deletes) < len(write_body.statements):
        target = deletes[0].type_name if isinstance(deletes[0], m.Delete) else deletes[0].variable
        message = f"query `{query_name.text}` mixes `delete` with `insert` or `update`"
        hint = "use two queries; run them on a branch if they must take effect together"
        scope.report.error(target.span, message, "D2", hint=hint)


def _check_statement(scope: Scope, statement: m.Statement) -> CheckedStatement | None:
    if isinstance(statement, m.MatchedUpdate):
        return check_matched_update(scope.without_variables(), statement)
    if isinstance(statement, m.MatchedDelete):
        return check_matched_delete(scope.without_variables(), statement)
    target_type = _resolve_target(scope, statement.type_name)
    match statement:
        case m.Insert():
            return _check_insert(scope, statement, target_type)
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


def _check_insert(scope: Scope, insert: m.Insert, target_type: NodeType | EdgeType | None) -> plan.InsertRow | None:
    checked_assignments = check_assignments(scope, target_type, insert.assignments)
    if target_type is None:
        return None
    if not insert.assignments:
        scope.report.error(insert.type_name.span, "an insert must have at least one assignment", "T10")
    assigned_names = {assignment.name.text for assignment in insert.assignments}
    missing_names = _missing_required(target_type, assigned_names) if insert.assignments else []
    if missing_names:
        message = f"{target_type.name} needs {_join_names(missing_names)}"
        scope.report.error(insert.type_name.span, message, "T12")
    return plan.InsertRow(
        "node" if isinstance(target_type, NodeType) else "edge", target_type.name, checked_assignments
    )


def _missing_required(target_type: NodeType | EdgeType, assigned_names: set[str]) -> list[str]:
    required_names = ["from", "to"] if isinstance(target_type, EdgeType) else []
    for declared_property in target_type.properties:
        is_embedded = declared_property.embed is not None and declared_property.embed.source in assigned_names
        if not declared_property.type.nullable and declared_property.default is None and not is_embedded:
            required_names.append(declared_property.name)
    return [required_name for required_name in required_names if required_name not in assigned_names]


def _join_names(names: list[str]) -> str:
    quoted_names = [f"`{name}`" for name in names]
    return quoted_names[0] if len(quoted_names) == 1 else f"{', '.join(quoted_names[:-1])} and {quoted_names[-1]}"


def _check_update(scope: Scope, update: m.Update, target_type: NodeType | EdgeType | None) -> plan.UpdateRows | None:
    if isinstance(target_type, EdgeType):
        message = f"{target_type.name} is an edge type, and edges cannot be updated"
        hint = "delete the edge and insert it again"
        scope.report.error(update.type_name.span, message, "T16", hint=hint)
        return None
    checked_assignments = check_assignments(scope, target_type, update.assignments)
    row_predicate = check_row_condition(scope, target_type, update.where)
    if target_type is None:
        return None
    if not update.assignments:
        scope.report.error(update.type_name.span, "an update must have at least one assignment", "T10")
    check_key_unchanged(scope, target_type, update.assignments)
    return plan.UpdateRows(target_type.name, checked_assignments, row_predicate) if row_predicate is not None else None


def _check_delete(scope: Scope, delete: m.Delete, target_type: NodeType | EdgeType | None) -> plan.DeleteRows | None:
    row_predicate = check_row_condition(scope, target_type, delete.where)
    if target_type is None or row_predicate is None:
        return None
    if isinstance(target_type, EdgeType):
        return plan.DeleteRows("edge", target_type.name, row_predicate)
    return plan.DeleteRows("node", target_type.name, row_predicate, incident_edges(scope.catalog, target_type))
