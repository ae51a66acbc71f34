"""Lower any kind of checked query to a plan: a read, a union of reads, or a mutation."""

from omnigraph.lang.schema.catalog import Catalog

from . import plan
from .check.checked import (
    CheckedBody,
    CheckedMatchedDelete,
    CheckedMatchedUpdate,
    CheckedRead,
    CheckedStatement,
    CheckedUnion,
)
from .lower import lower_read


def lower_body(checked_body: CheckedBody, catalog: Catalog) -> plan.Plan:
    """Return the plan for a checked query."""
    if isinstance(checked_body, CheckedRead):
        return lower_read(checked_body, catalog)
    if isinstance(checked_body, CheckedUnion):
        return plan.UnionPlan(
            parts=tuple(lower_read(part, catalog) for part in checked_body.parts),
            columns=checked_body.columns,
            keeps_duplicates=checked_body.keeps_duplicates,
            order=checked_body.order,
            limit=checked_body.limit,
            offset=checked_body.offset,
        )
    return plan.WritePlan(tuple(_lower_statement(statement, catalog) for statement in checked_body.statements))


def _lower_statement(statement: CheckedStatement, catalog: Catalog) -> plan.WriteStatement:
    match statement:
        case CheckedMatchedUpdate():
            matched = lower_read(statement.matched, catalog)
            return plan.MatchedUpdate(statement.type_name, statement.assignments, matched, statement.kind)
        case CheckedMatchedDelete():
            matched = lower_read(statement.matched, catalog)
            return plan.MatchedDelete(statement.kind, statement.type_name, matched, statement.cascades)
    return statement
