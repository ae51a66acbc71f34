"""Language services for editors: diagnostics, formatting, completion and explanations."""

from msgspec import UNSET

from omnigraph.api.builders.prepared_queries import read_query
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.lang.query import compile_queries, diagnose_queries, format_queries
from omnigraph.lang.schema import examine_schema, format_schema
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.services import complete, hover
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.entities import (
    CompleteOutput,
    CompletionOutput,
    DescribeOutput,
    DiagnoseOutput,
    DiagnosticOutput,
    FormatOutput,
    HoverOutput,
)
from omnigraph.server.models.requests import DescribeRequest, DiagnoseRequest, FormatRequest, PositionRequest
from omnigraph.server.wire.answer import Answer, json_answer


def diagnose(call: ServerCall) -> Answer:
    """Return all diagnostics for a source text. Queries are checked against a branch's schema."""
    body = call.body_as(DiagnoseRequest)
    if body.language == "schema":
        diagnostics = examine_schema(body.text)[1]
    else:
        catalog = call.graph_for_read(body.branch).refresh().schema.ir.catalog
        diagnostics = diagnose_queries(body.text, catalog)[1]
    return json_answer(DiagnoseOutput(diagnostics=[_diagnostic_output(diagnostic) for diagnostic in diagnostics]))


def _diagnostic_output(diagnostic: Diagnostic) -> DiagnosticOutput:
    return DiagnosticOutput(
        message=diagnostic.message,
        severity=diagnostic.severity,
        start=diagnostic.start,
        end=diagnostic.end,
        line=diagnostic.line,
        column=diagnostic.column,
        code=diagnostic.code or UNSET,
        hint=diagnostic.hint or UNSET,
    )


def describe(call: ServerCall) -> Answer:
    """Describe what a document's queries take, return, read and write; raise a language error if one is invalid."""
    body = call.body_as(DescribeRequest)
    graph = call.graph_for_read(body.branch, body.snapshot).refresh()
    text = read_query(engine_access.query_text(body.text), {})
    compiled = compile_queries(text.text, graph.schema.ir.catalog)
    return json_answer(DescribeOutput(queries=[query.to_json() for query in compiled]))


def format_text(call: ServerCall) -> Answer:
    """Format a text; raise `ParseError` if it has syntax errors."""
    body = call.body_as(FormatRequest)
    layout = format_schema if body.language == "schema" else format_queries
    return json_answer(FormatOutput(text=layout(body.text)))


def complete_text(call: ServerCall) -> Answer:
    """Return the completions at a position. Queries are completed from the schema of a branch."""
    body = call.body_as(PositionRequest)
    items = complete(body.text, body.offset, body.language, _catalog_for(call, body))
    completions = [
        CompletionOutput(
            text=item.insert_text,
            label=item.label,
            kind=item.kind,
            start=item.replaced.start,
            end=item.replaced.end,
            detail=item.detail or UNSET,
        )
        for item in items
    ]
    return json_answer(CompleteOutput(completions=completions))


def hover_text(call: ServerCall) -> Answer:
    """Explain the word at a position."""
    body = call.body_as(PositionRequest)
    explanation = hover(body.text, body.offset, body.language, _catalog_for(call, body))
    if explanation is None:
        return json_answer(HoverOutput(contents=None))
    span = explanation.span
    return json_answer(HoverOutput(contents=explanation.contents, start=span.start, end=span.end))


def _catalog_for(call: ServerCall, body: PositionRequest) -> Catalog | None:
    if body.language == "schema":
        return None
    return call.graph_for_read(body.branch).refresh().schema.ir.catalog
