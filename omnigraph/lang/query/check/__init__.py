"""Check one query against a schema.

Names are resolved in textual order, and one run reports all mistakes of a query. The result holds
resolved values and is the input of `lower`. Never reads data.
"""

from omnigraph.diagnostics import Diagnostic, Source, Span
from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.record import record

from .checked import Bind, CheckedRead, Walk
from .clauses import check_match
from .columns import check_columns, is_aggregated
from .mentions import visible_names
from .mutations import check_write
from .orderings import amount, check_order
from .parameters import CheckedParameter, check_parameters
from .report import Report
from .scope import Scope

__all__ = ["Checked", "CheckedParameter", "check_query"]


@record
class Checked:
    """The result of a check: the body if the query is valid, and every diagnostic."""

    parameters: tuple[CheckedParameter, ...]
    body: CheckedRead | plan.WritePlan | None
    used: frozenset[str]
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]


def check_query(query: m.Query, catalog: Catalog, source: Source) -> Checked:
    """Check a query; never raises. `source` is the text that its spans refer to."""
    report = Report(source)
    parameters = check_parameters(report, query.parameters)
    scope = Scope(catalog, report, {one.name: one.type for one in parameters})
    body: CheckedRead | plan.WritePlan | None
    if isinstance(query.body, m.ReadBody):
        body = _read(scope, query.body)
    else:
        body = check_write(scope, query.name, query.body)
    failed = bool(report.errors)
    return Checked(
        parameters=parameters,
        body=None if failed else body,
        used=frozenset(scope.used),
        errors=report.errors,
        warnings=report.warnings,
    )


def _read(scope: Scope, body: m.ReadBody) -> CheckedRead:
    scope.local = visible_names(body.clauses)
    match = check_match(scope, body.clauses)
    if not any(isinstance(one, Bind | Walk) for one in match.clauses) and not scope.report.errors:
        word = Span(body.span.start, body.span.start + len("match"))
        scope.report.error(word, "`match` binds no variable")
    columns = check_columns(scope, body.projections)
    order = check_order(scope, body, columns)
    return CheckedRead(
        match=match,
        columns=columns,
        aggregated=is_aggregated(body.projections),
        distinct=body.distinct,
        order=order.keys,
        ranking=order.ranking,
        limit=amount(scope, body.limit, "limit"),
        offset=amount(scope, body.offset, "offset"),
    )
