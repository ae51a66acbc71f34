"""`omnigraph lint`: report problems in queries and in their schema, as text, JSON or SARIF."""

from collections.abc import Sequence
from typing import Any

import click

from omnigraph.api.linting import LintReport, lint_sources
from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import SourceText

from . import exits, files, show
from .address import GraphAddress, graph_arguments, open_snapshot, resolve_target
from .lint_fixes import fix_query_files, fix_schema_file
from .options import settings, shared_options


@click.command()
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(allow_dash=True),
    help="Schema file (.pg) to use instead of the schema of GRAPH",
)
@click.option(
    "--query",
    "query_paths",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="Query file (.gq) or directory; may be repeated",
)
@click.option("--branch", help="Branch of GRAPH to read the schema from  [default: main]")
@click.option("--fix", is_flag=True, help="Correct misspelled names and format the files before checking them")
@click.option("--check", "strict", is_flag=True, help="Exit with code 5 if there are warnings")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Output format; sarif is for code scanning services",
)
@graph_arguments()
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
    """Check a schema and the queries that use it.

    Every finding is reported with its position. Exits with code 1 if there are errors. With --fix,
    misspelled names that have a single suggestion are corrected, redundant words are removed, and the files are
    formatted. A correction is kept only if there are then no more findings than before.
    """
    files.reject_repeated_stdin(*((schema_path,) if schema_path is not None else ()), *query_paths)
    if schema_path is not None and options["fix"]:
        fix_schema_file(schema_path)
    schema = _read_schema(schema_path, address, options["branch"])
    if options["fix"] and isinstance(schema, SourceText):
        fix_query_files(schema, query_paths)
    report = lint_files(schema, query_paths)
    form = "json" if settings().json else options["form"]
    if form == "sarif":
        from .sarif import sarif_log

        show.document(sarif_log([(linted.source, linted.diagnostics) for linted in (report.schema, *report.files)]))
    elif form == "json":
        show.document(_with_path_arguments(report.to_json()))
    else:
        _print_report(report)
    diagnostics = [finding.diagnostic for finding in report]
    context.exit(exits.diagnostics_exit_code(diagnostics, strict=options["strict"]))


def _read_schema(schema_path: str | None, address: GraphAddress, branch: str | None) -> SourceText | LanguageError:
    """Read the schema from a file, or from a graph if no file is given."""
    if schema_path is None:
        return _read_graph_schema(address, branch)
    if address.spellings or branch is not None:
        raise click.UsageError("--schema and a graph both specify a schema: use only one of them")
    return _read_file(schema_path)


def _read_graph_schema(address: GraphAddress, branch: str | None) -> SourceText:
    root = resolve_target(address, alternative="--schema FILE")
    return SourceText(root.uri, open_snapshot(root, branch, None).schema.source)


def lint_files(schema: SourceText | LanguageError, query_paths: Sequence[str]) -> LintReport:
    """Lint a schema and each query file; queries are skipped if the schema has errors."""
    sources = (_read_file(path) for path in files.expand_directories(query_paths, ".gq"))
    only_path = files.display_name(query_paths[0]) if files.is_single_file(query_paths) else None
    return lint_sources(schema, sources, only_path)


def _read_file(path: str) -> SourceText | LanguageError:
    try:
        return files.read_source(path)
    except LanguageError as error:
        return error


def _with_path_arguments(document: dict[str, Any]) -> dict[str, Any]:
    """Return the report with standard input shown as `-`, as on the command line."""
    for report in (document, *document.get("queries", ())):
        for member_name in ("schema_source", "query_path"):
            if report.get(member_name) == files.display_name(files.STDIN):
                report[member_name] = files.STDIN
    return document


def _print_report(report: LintReport) -> None:
    for linted in (report.schema, *report.files):
        show.findings(linted.diagnostics, linted.source)
    query_count = sum(len(linted.json_document.get("results", ())) for linted in report.files)
    checked_scope = f"{show.count(1 + len(report.files), 'file')}, {show.count(query_count, 'query')} checked"
    show.result(f"{checked_scope}: {show.summary([finding.diagnostic for finding in report])}")
