"""`omnigraph lint`: report problems in queries and in their schema, as text, JSON or SARIF."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import Diagnostic, DiagnosticSeverity, SourceText
from omnigraph.records.frozen import record

from . import exits, files, show
from .address import GraphAddress, graph_arguments, open_snapshot, resolve_root
from .lint_fixes import fix_query_files, fix_schema_file
from .options import settings, shared_options


@record
class LintedFile:
    """The findings in one file; `json_document` is the file's report as JSON."""

    source: SourceText
    diagnostics: tuple[Diagnostic, ...]
    json_document: dict[str, Any]


@record
class LintedSchema:
    """The schema that queries are checked against; `location` is a file as typed, or the location of a graph."""

    location: str
    source: SourceText
    read_errors: tuple[Diagnostic, ...] = ()


@click.command()
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(allow_dash=True),
    help="Schema file (.pg), instead of the schema of GRAPH",
)
@click.option(
    "--query",
    "query_paths",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="Query file (.gq) or directory; may be repeated",
)
@click.option("--branch", help="Branch of GRAPH whose schema is used  [default: main]")
@click.option("--fix", is_flag=True, help="Correct misspelt names and format the files before checking them")
@click.option("--check", "strict", is_flag=True, help="Exit with code 5 if there are warnings")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Output format; sarif is for code scanning services",
)
@graph_arguments(direct=True)
@shared_options
@click.pass_context
def lint(
    context: click.Context,
    /,
    schema_path: str | None,
    query_paths: tuple[str, ...],
    address: GraphAddress,
    **options: Any,
) -> None:
    """Check queries against the schema of a graph or a schema file, and the schema itself.

    Every finding is reported with its position. Exits with code 1 if there are errors. With --fix, a correction is
    made only if it removes a finding: names for which there is one suggestion, words without effect, and the format.
    """
    files.reject_repeated_stdin(*((schema_path,) if schema_path is not None else ()), *query_paths)
    if schema_path is not None and options["fix"]:
        fix_schema_file(schema_path)
    schema = _read_schema(schema_path, address, options["branch"])
    if options["fix"]:
        fix_query_files(schema.source, query_paths)
    schema_report, query_reports = lint_files(schema, query_paths)
    reports = [schema_report, *query_reports]
    form = "json" if settings().json else options["form"]
    if form == "sarif":
        from .sarif import sarif_log

        show.document(sarif_log([(report.source, report.diagnostics) for report in reports]))
    elif form == "json":
        show.document(_report_document(schema_report, query_reports, schema.location, query_paths))
    else:
        _print_reports(reports)
    diagnostics = [diagnostic for report in reports for diagnostic in report.diagnostics]
    context.exit(exits.diagnostics_exit_code(diagnostics, strict=options["strict"]))


def _read_schema(schema_path: str | None, address: GraphAddress, branch: str | None) -> LintedSchema:
    """Read the schema from a file, or from a graph if no file is given."""
    if schema_path is None:
        return _read_graph_schema(address, branch)
    if address.spellings or branch is not None:
        raise click.UsageError("--schema and a graph both specify a schema: use only one of them")
    try:
        return LintedSchema(schema_path, files.read_source(schema_path))
    except LanguageError as error:
        return LintedSchema(schema_path, error.source or SourceText(schema_path, ""), error.diagnostics)


def _read_graph_schema(address: GraphAddress, branch: str | None) -> LintedSchema:
    root = resolve_root(address, alternative="--schema FILE")
    schema_text = open_snapshot(root.uri, branch, None).schema.source
    return LintedSchema(root.uri, SourceText(root.uri, schema_text))


def lint_files(schema: LintedSchema, query_paths: Sequence[str]) -> tuple[LintedFile, list[LintedFile]]:
    """Lint a schema and each query file; queries are skipped if the schema has errors."""
    from omnigraph.lang.schema import examine_schema

    if schema.read_errors:
        return _schema_report(schema.source, schema.read_errors), []
    catalog, diagnostics = examine_schema(schema.source.text, schema.source.name)
    schema_report = _schema_report(schema.source, diagnostics)
    if catalog is None:
        return schema_report, []
    expanded_paths = files.expand_directories(query_paths, ".gq")
    return schema_report, [_lint_queries(path, catalog, schema.location) for path in expanded_paths]


def _lint_queries(query_path: str, catalog: Any, schema_path: str) -> LintedFile:
    from omnigraph.lang.query import lint_queries

    try:
        source = files.read_source(query_path)
    except LanguageError as error:
        return _unreadable_report(error, query_path, schema_path)
    lint_report = lint_queries(source.text, catalog, source.name, schema_path)
    diagnostics = sorted(
        [*lint_report.diagnostics, *_query_remarks(lint_report)],
        key=lambda diagnostic: (diagnostic.start, diagnostic.end),
    )
    return LintedFile(source, tuple(diagnostics), lint_report.to_json() | {"query_path": query_path})


def _query_remarks(lint_report: Any) -> Iterator[Diagnostic]:
    """Return the lint warnings about whole queries, positioned at the query names."""
    for query_result in lint_report.results:
        for remark in query_result.warnings:
            name_span = query_result.diagnosis.query.name.span
            yield Diagnostic.at_span(lint_report.source, name_span, remark, kind="lint", severity="warning")


def _schema_report(source: SourceText, diagnostics: tuple[Diagnostic, ...]) -> LintedFile:
    return LintedFile(source, diagnostics, {"findings": _diagnostic_documents(diagnostics)})


def _unreadable_report(error: LanguageError, query_path: str, schema_path: str) -> LintedFile:
    diagnostics = tuple(replace(diagnostic, code="Q000") for diagnostic in error.diagnostics)
    members = _empty_document(schema_path, query_path) | {
        "errors": len(diagnostics),
        "findings": _diagnostic_documents(diagnostics),
    }
    return LintedFile(error.source or SourceText(query_path, ""), diagnostics, members)


def _empty_document(schema_path: str, query_path: str) -> dict[str, Any]:
    """Return the report of a file whose queries were not checked."""
    return {
        "status": "error",
        "schema_source": schema_path,
        "query_path": query_path,
        "queries_processed": 0,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [],
        "findings": [],
    }


def _diagnostic_documents(diagnostics: Sequence[Diagnostic]) -> list[dict[str, object]]:
    return [diagnostic.to_json() for diagnostic in diagnostics]


def _report_document(
    schema_report: LintedFile, query_reports: Sequence[LintedFile], schema_path: str, query_paths: Sequence[str]
) -> dict[str, Any]:
    """Return the totals with the report of the only query file, or with one report per file."""
    severities = [
        diagnostic.severity for report in (schema_report, *query_reports) for diagnostic in report.diagnostics
    ]
    totals: dict[str, Any] = {"status": "error" if "error" in severities else "ok"}
    totals["schema_source"] = schema_path
    totals["queries_processed"] = sum(report.json_document["queries_processed"] for report in query_reports)
    severity_order: tuple[DiagnosticSeverity, ...] = ("error", "warning", "info")
    totals |= {f"{severity}s": severities.count(severity) for severity in severity_order}
    if not files.is_single_file(query_paths):
        return totals | {
            "schema": schema_report.json_document,
            "queries": [report.json_document for report in query_reports],
        }
    document = query_reports[0].json_document if query_reports else _empty_document(schema_path, query_paths[0])
    return document | totals | ({"schema": schema_report.json_document} if schema_report.diagnostics else {})


def _print_reports(reports: Sequence[LintedFile]) -> None:
    for report in reports:
        show.findings(report.diagnostics, report.source)
    diagnostics = [diagnostic for report in reports for diagnostic in report.diagnostics]
    query_count = sum(len(report.json_document.get("results", ())) for report in reports)
    checked_scope = f"{show.count(len(reports), 'file')}, {show.count(query_count, 'query')} checked"
    show.result(f"{checked_scope}: {show.summary(diagnostics)}")
