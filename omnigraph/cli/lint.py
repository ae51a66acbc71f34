"""`omnigraph lint`: every finding about queries and their schema, as text, JSON or SARIF."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.errors import LanguageError

from . import exits, files, show
from .options import settings, shared_options


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in one file; `document` is its JSON form."""

    source: Source
    findings: tuple[Diagnostic, ...]
    document: dict[str, Any]


@click.command()
@click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(allow_dash=True),
    help="The schema (.pg) that the queries are for.",
)
@click.option(
    "--query",
    "query_paths",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="A query file (.gq) or a directory; may be given more than once.",
)
@click.option("--check", "strict", is_flag=True, help="Exit 5 when there are warnings.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    help="How findings are printed; sarif is what code hosts read.",
)
@shared_options
@click.pass_context
def lint(
    context: click.Context, schema_path: str, query_paths: tuple[str, ...], strict: bool, form: str
) -> None:
    """Check queries against a schema, and the schema itself.

    Every finding is reported with its place. Exits 1 when there is an error.
    """
    schema, queries = lint_files(schema_path, query_paths)
    reports = [schema, *queries]
    form = "json" if settings().json else form
    if form == "sarif":
        from .sarif import log

        show.document(log([(one.source, one.findings) for one in reports]))
    elif form == "json":
        show.document(_document(schema, queries))
    else:
        _tell(reports)
    found = [one for report in reports for one in report.findings]
    context.exit(exits.of_findings(found, strict=strict))


def lint_files(schema_path: str, query_paths: Sequence[str]) -> tuple[Report, list[Report]]:
    """The report of a schema, and of each query file; without a schema no query is checked."""
    from omnigraph.lang.schema import diagnose_schema, lint_schema

    try:
        source = files.read_source(schema_path)
    except LanguageError as error:
        return _unreadable(error, schema_path), []
    catalog, _ = diagnose_schema(source.text, source.name)
    found = lint_schema(source.text, source.name)
    report = Report(source, found, {"schema_source": schema_path, "findings": _json(found)})
    if catalog is None:
        return report, []
    paths = files.expand(query_paths, ".gq")
    return report, [_lint_queries(path, catalog, schema_path) for path in paths]


def _lint_queries(path: str, catalog: Any, schema_path: str) -> Report:
    from omnigraph.lang.query import lint_queries

    try:
        source = files.read_source(path)
    except LanguageError as error:
        return _unreadable(error, path)
    report = lint_queries(source.text, catalog, source.name, schema_path)
    return Report(source, report.diagnostics, report.to_json())


def _unreadable(error: LanguageError, path: str) -> Report:
    source = error.source or Source(path, "")
    found = error.diagnostics
    facts = {"status": "error", "query_path": path, "queries_processed": 0, "results": []}
    counts = {"errors": len(found), "warnings": 0, "infos": 0, "findings": _json(found)}
    return Report(source, found, facts | counts)


def _json(found: Sequence[Diagnostic]) -> list[dict[str, object]]:
    return [one.to_json() for one in found]


def _document(schema: Report, queries: Sequence[Report]) -> dict[str, Any]:
    """One query file gives its report; several, or none, give a list beside the schema's."""
    if len(queries) == 1 and not schema.findings:
        return queries[0].document
    found = [one for report in (schema, *queries) for one in report.findings]
    bad = any(one.severity == "error" for one in found)
    return {
        "status": "error" if bad else "ok",
        "schema": schema.document,
        "queries": [one.document for one in queries],
    }


def _tell(reports: Sequence[Report]) -> None:
    for one in reports:
        show.findings(one.findings, one.source)
    found = [one for report in reports for one in report.findings]
    queries = sum(len(one.document.get("results", ())) for one in reports)
    checked = f"{show.count(len(reports), 'file')}, {show.count(queries, 'query')} checked"
    show.result(f"{checked}: {show.summary(found)}")
