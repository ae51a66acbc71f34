"""Check one query against a schema.

Names are resolved in textual order, and one run reports all mistakes in a query. The result contains
resolved values and is the input of `lower`. Checking never reads data.
"""

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record

from .checked import CheckedBinding, CheckedRead, CheckedTraversal
from .clauses import check_match
from .columns import check_columns, is_aggregated
from .mentions import visible_variables
from .mutations import check_write
from .orderings import check_order, check_row_count
from .parameters import CheckedParameter, check_parameters
from .report import CheckReport
from .scope import Scope

__all__ = ["CheckedParameter", "CheckedQuery", "check_query"]


@record
class CheckedQuery:
    """The result of a check: the body if the query is valid, and every diagnostic."""

    parameters: tuple[CheckedParameter, ...]
    body: CheckedRead | plan.WritePlan | None
    used_parameters: frozenset[str]
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]


def check_query(query: m.Query, catalog: Catalog, source: SourceText) -> CheckedQuery:
    """Check a query; never raises. `source` is the text that the query's spans refer to."""
    report = CheckReport(source)
    parameters = check_parameters(report, query.parameters)
    scope = Scope(catalog, report, {parameter.name: parameter.type for parameter in parameters})
    checked_body: CheckedRead | plan.WritePlan | None
    if isinstance(query.body, m.ReadBody):
        checked_body = _check_read(scope, query.body)
    else:
        checked_body = check_write(scope, query.name, query.body)
    has_errors = bool(report.errors)
    return CheckedQuery(
        parameters=parameters,
        body=None if has_errors else checked_body,
        used_parameters=frozenset(scope.used_parameters),
        errors=report.errors,
        warnings=report.warnings,
    )


def _check_read(scope: Scope, read_body: m.ReadBody) -> CheckedRead:
    scope.local_names = visible_variables(read_body.clauses)
    checked_match = check_match(scope, read_body.clauses)
    if (
        not any(isinstance(clause, CheckedBinding | CheckedTraversal) for clause in checked_match.clauses)
        and not scope.report.errors
    ):
        keyword_span = Span(read_body.span.start, read_body.span.start + len("match"))
        scope.report.error(keyword_span, "`match` must bind at least one variable")
    columns = check_columns(scope, read_body.projections)
    checked_order = check_order(scope, read_body, columns)
    return CheckedRead(
        match=checked_match,
        columns=columns,
        aggregated=is_aggregated(read_body.projections),
        distinct=read_body.distinct,
        order=checked_order.keys,
        ranking=checked_order.ranking,
        limit=check_row_count(scope, read_body.limit, "limit"),
        offset=check_row_count(scope, read_body.offset, "offset"),
    )
