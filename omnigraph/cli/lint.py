"""`omnigraph lint`: findings about queries and their schema, as text, JSON or SARIF."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from omnigraph.diagnostics import Diagnostic, Severity, Source
from omnigraph.errors import LanguageError
from omnigraph.record import record

from . import exits, files, show
from .options import schema_option, settings, shared_options


@record
class Report:
    """The findings in one file; `json_document` is its JSON form."""

    source: Source
    findings: tuple[Diagnostic, ...]
    document: dict[str, Any]


@click.command()
@schema_option
@click.option(
    "--query",
    "query_paths",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="Query file (.gq) or directory; may be repeated",
)
@click.option("--check", "strict", is_flag=True, help="Exit 5 if there are warnings")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Output format; sarif is for code hosts",
)
@shared_options
@click.pass_context
def lint(
    context: click.Context, schema_path: str, query_paths: tuple[str, ...], strict: bool, form: str
) -> None:
    """Check queries against a schema, and the schema itself.

    Every finding is reported with its position. Exits 1 if there are errors.
    """
    files.once(schema_path, *query_paths)
    schema, queries = lint_files(schema_path, query_paths)
    reports = [schema, *queries]
    form = "json" if settings().json else form
    if form == "sarif":
        from .sarif import log

        show.document(log([(report.source, report.findings) for report in reports]))
    elif form == "json":
        show.document(_document(schema, queries, schema_path, query_paths))
    else:
        _tell(reports)
    found = [one for report in reports for one in report.findings]
    context.exit(exits.of_findings(found, strict=strict))


def lint_files(schema_path: str, query_paths: Sequence[str]) -> tuple[Report, list[Report]]:
    """Lint a schema and each query file; queries are skipped if the schema has errors."""
    from omnigraph.lang.schema import examine_schema

    try:
        source = files.read_source(schema_path)
    except LanguageError as error:
        return _schema_report(error.source or Source(schema_path, ""), error.diagnostics), []
    catalog, found = examine_schema(source.text, source.name)
    report = _schema_report(source, found)
    if catalog is None:
        return report, []
    paths = files.expand(query_paths, ".gq")
    return report, [_lint_queries(path, catalog, schema_path) for path in paths]


def _lint_queries(path: str, catalog: Any, schema_path: str) -> Report:
    from omnigraph.lang.query import lint_queries

    try:
        source = files.read_source(path)
    except LanguageError as error:
        return _unreadable(error, path, schema_path)
    report = lint_queries(source.text, catalog, source.name, schema_path)
    found = sorted([*report.diagnostics, *_remarks(report)], key=lambda one: (one.start, one.end))
    return Report(source, tuple(found), report.to_json() | {"query_path": path})


def _remarks(report: Any) -> Iterator[Diagnostic]:
    """Return the lint warnings about whole queries, at the positions of their names."""
    for result in report.results:
        for remark in result.warnings:
            at = result.diagnosis.query.name.span
            yield Diagnostic.at(report.source, at, remark, kind="lint", severity="warning")


def _schema_report(source: Source, found: tuple[Diagnostic, ...]) -> Report:
    return Report(source, found, {"findings": _json(found)})


def _unreadable(error: LanguageError, path: str, schema_path: str) -> Report:
    found = tuple(replace(one, code="Q000") for one in error.diagnostics)
    facts = _facts(schema_path, path) | {"errors": len(found), "findings": _json(found)}
    return Report(error.source or Source(path, ""), found, facts)


def _facts(schema_path: str, path: str) -> dict[str, Any]:
    """Return the report of a file whose queries were not checked."""
    return {
        "status": "error",
        "schema_source": schema_path,
        "query_path": path,
        "queries_processed": 0,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [],
        "findings": [],
    }


def _json(found: Sequence[Diagnostic]) -> list[dict[str, object]]:
    return [one.to_json() for one in found]


def _document(
    schema: Report, queries: Sequence[Report], schema_path: str, paths: Sequence[str]
) -> dict[str, Any]:
    """Return the totals with the report of the only query file, or of each of several."""
    found = [one.severity for report in (schema, *queries) for one in report.findings]
    totals: dict[str, Any] = {"status": "error" if "error" in found else "ok"}
    totals["schema_source"] = schema_path
    totals["queries_processed"] = sum(report.document["queries_processed"] for report in queries)
    kinds: tuple[Severity, ...] = ("error", "warning", "info")
    totals |= {f"{kind}s": found.count(kind) for kind in kinds}
    if not files.lone(paths):
        return totals | {
            "schema": schema.document,
            "queries": [report.document for report in queries],
        }
    document = queries[0].document if queries else _facts(schema_path, paths[0])
    return document | totals | ({"schema": schema.document} if schema.findings else {})


def _tell(reports: Sequence[Report]) -> None:
    for report in reports:
        show.findings(report.findings, report.source)
    found = [one for report in reports for one in report.findings]
    queries = sum(len(report.document.get("results", ())) for report in reports)
    checked = f"{show.count(len(reports), 'file')}, {show.count(queries, 'query')} checked"
    show.result(f"{checked}: {show.summary(found)}")
