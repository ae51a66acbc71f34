"""Check one read: its match, columns, groups and order.

This module determines the order of the checks, and requires every `match` to bind a variable.
"""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.query import model as m

from .checked import CheckedBinding, CheckedMatch, CheckedRead, CheckedTraversal
from .clauses import check_match
from .columns import check_columns
from .groups import check_having, is_grouped
from .mentions import visible_variables
from .orderings import check_order, check_row_count
from .scope import Scope


def check_read(scope: Scope, read_body: m.ReadBody) -> CheckedRead:
    """Check a read or one part of a union. `scope` must not contain any variables yet."""
    checked_match = check_whole_match(scope, read_body.clauses, read_body.span)
    grouped = is_grouped(read_body)
    columns = check_columns(scope, read_body.projections, grouped=grouped)
    having = check_having(scope, read_body, columns)
    checked_order = check_order(scope, read_body, columns)
    return CheckedRead(
        match=checked_match,
        columns=columns,
        aggregated=grouped,
        distinct=read_body.distinct,
        order=checked_order.keys,
        ranking=checked_order.ranking,
        limit=check_row_count(scope, read_body.limit, "limit"),
        offset=check_row_count(scope, read_body.offset, "offset"),
        having=having,
    )


def check_whole_match(scope: Scope, clauses: tuple[m.Clause, ...], body_span: Span) -> CheckedMatch:
    """Check the outermost list of clauses, which must bind a variable. `body_span` begins with `match`."""
    errors_before = scope.report.error_count
    scope.local_names = visible_variables(clauses)
    checked_match = check_match(scope, clauses)
    binds_variable = any(isinstance(clause, CheckedBinding | CheckedTraversal) for clause in checked_match.clauses)
    if not binds_variable and scope.report.error_count == errors_before:
        keyword_span = Span(body_span.start, body_span.start + len("match"))
        scope.report.error(keyword_span, "`match` must bind at least one variable")
    return checked_match
