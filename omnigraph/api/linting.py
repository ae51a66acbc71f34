"""`omnigraph.lint`: check a schema, and check queries against it.

This module builds the report that the command line prints for one or more files. It reads no graph and imports no data
library. Invalid text produces a finding, never an exception.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError, LanguageError
from omnigraph.errors.diagnostics import Diagnostic, DiagnosticSeverity, SourceText, render
from omnigraph.lang.parsing import decode_source
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from omnigraph.api.schema import SchemaText
    from omnigraph.lang.schema.catalog import Catalog

QueryInput = str | PathLike[str] | SourceText
_QUERY_NAME = "<query>"


@record
class LintedFile:
    """The findings in one file. `json_document` is the file's report as JSON."""

    source: SourceText
    diagnostics: tuple[Diagnostic, ...]
    json_document: dict[str, Any] = field(repr=False)


@record
class ReportedFinding:
    """A finding and the text that it refers to. `str(finding)` marks its position with a caret."""

    diagnostic: Diagnostic
    source: SourceText = field(repr=False)

    @property
    def path(self) -> str:
        """The file name, or `<schema>` or `<query>` if the input was text."""
        return self.source.name

    @property
    def severity(self) -> DiagnosticSeverity:
        """`error`, `warning` or `info`."""
        return self.diagnostic.severity

    @property
    def code(self) -> str | None:
        """The finding's code, such as `T22`."""
        return self.diagnostic.code

    @property
    def message(self) -> str:
        """A description of the problem."""
        return self.diagnostic.message

    @property
    def hint(self) -> str | None:
        """A suggested fix, or None."""
        return self.diagnostic.hint

    @property
    def line(self) -> int:
        """The line number, starting at 1."""
        return self.diagnostic.line

    @property
    def column(self) -> int:
        """The column number, starting at 1."""
        return self.diagnostic.column

    def __str__(self) -> str:
        return render(self.diagnostic, self.source)


@record
class LintReport:
    """All findings in a schema and its queries, in text order: first the schema, then each query file.

    A report is truthy if it has findings. `str(report)` returns the text that `omnigraph lint` prints, and `to_json`
    returns its JSON form.
    """

    schema: LintedFile
    files: tuple[LintedFile, ...]
    query_path: str | None = None  # the only query file, or None if several files were requested

    def __iter__(self) -> Iterator[ReportedFinding]:
        for linted_file in (self.schema, *self.files):
            ordered = sorted(linted_file.diagnostics, key=lambda diagnostic: (diagnostic.start, diagnostic.end))
            yield from (ReportedFinding(diagnostic, linted_file.source) for diagnostic in ordered)

    def __len__(self) -> int:
        return sum(len(linted_file.diagnostics) for linted_file in (self.schema, *self.files))

    @property
    def errors(self) -> list[ReportedFinding]:
        """The findings that make a schema or a query invalid."""
        return [finding for finding in self if finding.severity == "error"]

    @property
    def warnings(self) -> list[ReportedFinding]:
        """The findings about text that is valid but probably not what was intended."""
        return [finding for finding in self if finding.severity == "warning"]

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self) or "no findings"

    def __repr__(self) -> str:
        error_count, warning_count = len(self.errors), len(self.warnings)
        errors = f"{error_count} error{'s'[: error_count != 1]}"
        return f"<LintReport: {errors}, {warning_count} warning{'s'[: warning_count != 1]}>"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(finding.severity)}</td><td>{escape(finding.code or '')}</td>"
            f"<td>{escape(f'{finding.path}:{finding.line}:{finding.column}')}</td>"
            f"<td>{escape(finding.message)}</td></tr>"
            for finding in self
        )
        return f"<table><tbody>{rows}</tbody></table>" if rows else "<p>no findings</p>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON: the totals and one report per query file.

        If there is only one query file, its report is merged with the totals.
        """
        severities = [finding.severity for finding in self]
        severity_order: tuple[DiagnosticSeverity, ...] = ("error", "warning", "info")
        schema_name = self.schema.json_document["schema_source"]
        totals: dict[str, Any] = {"status": "error" if "error" in severities else "ok", "schema_source": schema_name}
        totals["queries_processed"] = sum(linted.json_document["queries_processed"] for linted in self.files)
        totals |= {f"{severity}s": severities.count(severity) for severity in severity_order}
        schema_document = {"findings": self.schema.json_document["findings"]}
        if self.query_path is None:
            return totals | {"schema": schema_document, "queries": [linted.json_document for linted in self.files]}
        document = self.files[0].json_document if self.files else _empty_document(schema_name, self.query_path)
        return document | totals | ({"schema": schema_document} if self.schema.diagnostics else {})


def lint(queries: QueryInput | Iterable[QueryInput], schema: "SchemaText") -> LintReport:
    """Check a schema, check queries against it, and return every finding.

    `queries` is query text, a path, or a list of these. A folder means all `.gq` files below it. `schema` is `.pg`
    text, a path, a `Schema` or `graph.schema`. If the schema has errors, the queries are not checked. Raises
    `InputError` if a file cannot be read.

    >>> report = lint("query q() { match { $p: Person } return { $p.nmae } }", "node Person { name: String @key }")
    >>> print(report)
    <query>:1:43: error[T6]: Person has no property `nmae`
      1 | query q() { match { $p: Person } return { $p.nmae } }
        |                                           ^^^^^^^
      hint: did you mean `name`?
    >>> report.ok, [finding.code for finding in report.errors]
    (False, ['T6'])
    """
    inputs = [queries] if isinstance(queries, str | PathLike | SourceText) else list(queries)
    sources = (source for query_input in inputs for source in _read_queries(query_input))
    query_path = _input_name(inputs[0]) if len(inputs) == 1 else None
    return lint_sources(_schema_source(schema), sources, query_path)


def lint_sources(
    schema: SourceText | LanguageError, queries: Iterable[SourceText | LanguageError], query_path: str | None
) -> LintReport:
    """Lint a schema and query texts. Text that could not be decoded is passed in as the decoding error.

    `queries` is not read if the schema has errors.
    """
    from omnigraph.lang.schema import examine_schema

    catalog: Catalog | None = None
    if isinstance(schema, LanguageError):
        diagnostics = schema.diagnostics
    else:
        catalog, diagnostics = examine_schema(schema.text, schema.name)
    source = _source_of(schema)
    members = {"schema_source": source.name, "findings": _to_documents(diagnostics)}
    schema_report = LintedFile(source, diagnostics, members)
    files = () if catalog is None else tuple(_lint_queries(query, catalog, source.name) for query in queries)
    return LintReport(schema_report, files, query_path)


def _lint_queries(query: SourceText | LanguageError, catalog: "Catalog", schema_name: str) -> LintedFile:
    from omnigraph.lang.query import lint_queries

    if isinstance(query, LanguageError):
        return _undecodable_report(query, schema_name)
    file_report = lint_queries(query.text, catalog, query.name, schema_name)
    diagnostics = sorted(
        [*file_report.diagnostics, *_query_remarks(file_report)],
        key=lambda diagnostic: (diagnostic.start, diagnostic.end),
    )
    return LintedFile(query, tuple(diagnostics), file_report.to_json())


def _query_remarks(file_report: Any) -> Iterator[Diagnostic]:
    """Yield the lint warnings about whole queries, positioned at the query names."""
    for query_result in file_report.results:
        for remark in query_result.warnings:
            name_span = query_result.diagnosis.query.name.span
            yield Diagnostic.at_span(file_report.source, name_span, remark, kind="lint", severity="warning")


def _undecodable_report(error: LanguageError, schema_name: str) -> LintedFile:
    source = _source_of(error)
    diagnostics = tuple(replace(diagnostic, code="Q000") for diagnostic in error.diagnostics)
    findings = {"errors": len(diagnostics), "findings": _to_documents(diagnostics)}
    return LintedFile(source, diagnostics, _empty_document(schema_name, source.name) | findings)


def _empty_document(schema_name: str, query_path: str) -> dict[str, Any]:
    """Return the report for a file whose queries were not checked."""
    return {
        "status": "error",
        "schema_source": schema_name,
        "query_path": query_path,
        "queries_processed": 0,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [],
        "findings": [],
    }


def _to_documents(diagnostics: Sequence[Diagnostic]) -> list[dict[str, object]]:
    return [diagnostic.to_json() for diagnostic in diagnostics]


def _source_of(text: SourceText | LanguageError) -> SourceText:
    return (text.source or SourceText("", "")) if isinstance(text, LanguageError) else text


def _schema_source(schema: "SchemaText") -> SourceText | LanguageError:
    from omnigraph.api.schema import read_schema_text

    try:
        text, name = read_schema_text(schema)
    except LanguageError as error:
        return error
    return SourceText(name, text)


def _read_queries(query_input: QueryInput) -> Iterator[SourceText | LanguageError]:
    if isinstance(query_input, SourceText):
        yield query_input
        return
    if isinstance(query_input, str):
        from omnigraph.api.builders.prepared_queries import reject_path_text

        yield SourceText(_QUERY_NAME, reject_path_text(query_input))
        return
    path = Path(query_input)
    for file_path in sorted(path.rglob("*.gq")) if path.is_dir() else [path]:
        yield _read_query_file(file_path)


def _input_name(query_input: QueryInput) -> str | None:
    """Return the name of a query file, `<query>` for query text, or None for a folder."""
    if isinstance(query_input, SourceText):
        return query_input.name
    if isinstance(query_input, str):
        return _QUERY_NAME
    return None if Path(query_input).is_dir() else str(query_input)


def _read_query_file(path: Path) -> SourceText | LanguageError:
    try:
        return decode_source(path.read_bytes(), str(path))
    except LanguageError as error:
        return error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from error
