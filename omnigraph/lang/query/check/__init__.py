"""Check one query against a schema.

Names are resolved in textual order, and a single run reports every mistake in a query. The result contains resolved
values, which `lower` converts to a plan. Checking never reads data.
"""

from omnigraph.errors.diagnostics import Diagnostic, SourceText
from omnigraph.lang.query import model as m
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record

from .checked import CheckedBody
from .parameters import CheckedParameter, check_parameters
from .reads import check_read
from .report import CheckReport
from .scope import Scope

__all__ = ["CheckedParameter", "CheckedQuery", "check_query"]


@record
class CheckedQuery:
    """The result of a check: all diagnostics, and the checked body if the query is valid."""

    parameters: tuple[CheckedParameter, ...]
    body: CheckedBody | None
    used_parameters: frozenset[str]
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]


def check_query(query: m.Query, catalog: Catalog, source: SourceText) -> CheckedQuery:
    """Check a query without raising an error. `source` is the text that the query's spans refer to."""
    report = CheckReport(source)
    parameters = check_parameters(report, query.parameters)
    scope = Scope(catalog, report, {parameter.name: parameter.type for parameter in parameters})
    checked_body = _check_body(scope, query)
    has_errors = bool(report.errors)
    return CheckedQuery(
        parameters=parameters,
        body=None if has_errors else checked_body,
        used_parameters=frozenset(scope.used_parameters),
        errors=report.errors,
        warnings=report.warnings,
    )


def _check_body(scope: Scope, query: m.Query) -> CheckedBody | None:
    match query.body:
        case m.ReadBody():
            return check_read(scope, query.body)
        case m.UnionBody():
            from .unions import check_union

            return check_union(scope, query.body)
        case m.WriteBody():
            from .mutations import check_write

            return check_write(scope, query.body)
