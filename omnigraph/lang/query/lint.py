"""Collect all lint findings in a `.gq` file into one report for tools.

This module defines the report format, the L201 check, and the warning about mutations without parameters. The
diagnostics from the parser and the checker are copied into the report unchanged.
"""

from collections.abc import Iterator
from dataclasses import field

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.records.frozen import record

from . import model as m
from . import plan
from .check.assignments import key_names
from .compile import QueryDiagnosis, diagnose_each_query

_SEVERITY_RANKS = {"error": 0, "warning": 1, "info": 2}
HARD_CODED_MESSAGE = "a mutation without parameters has hard-coded values"


@record
class LintFinding:
    """A finding in a file, other than a type error. Type errors belong to their query's `QueryLintResult`."""

    diagnostic: Diagnostic
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the finding as a JSON object without empty members."""
        diagnostic = self.diagnostic
        members: dict[str, object] = {"severity": diagnostic.severity, "code": diagnostic.code}
        members["message"] = diagnostic.message
        members |= {"type_name": self.type_name, "property": self.property}
        members["query_names"] = list(self.query_names) or None
        members |= {
            "line": diagnostic.line,
            "column": diagnostic.column,
            "start": diagnostic.start,
            "end": diagnostic.end,
        }
        members["hint"] = diagnostic.hint
        return {member_name: member_value for member_name, member_value in members.items() if member_value is not None}


@record
class QueryLintResult:
    """The lint result for one query. In its JSON form, `error` is a single string that contains all type errors."""

    diagnosis: QueryDiagnosis
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return a JSON object `{name, kind, status, warnings, diagnostics, error?, operation?}`."""
        diagnosis = self.diagnosis
        members: dict[str, object] = {"name": diagnosis.query.name.text, "kind": diagnosis.kind}
        members["status"] = "error" if diagnosis.errors else "ok"
        members["warnings"] = list(self.warnings)
        members["diagnostics"] = [error.to_json() for error in diagnosis.errors]
        if diagnosis.errors:
            members["error"] = "; ".join(_error_sentence(error) for error in diagnosis.errors)
        if diagnosis.compiled is not None:
            members["operation"] = diagnosis.compiled.operation.to_json()
        return members


@record
class QueryFileReport:
    """The lint report for one query file. Commands print its JSON form."""

    schema_source: str
    query_path: str
    results: tuple[QueryLintResult, ...]
    findings: tuple[LintFinding, ...]
    source: SourceText = field(repr=False, compare=False, default=SourceText("", ""))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every error, warning and note, in source order."""
        diagnostics = [finding.diagnostic for finding in self.findings]
        for query_result in self.results:
            diagnostics += query_result.diagnosis.errors
        return tuple(sorted(diagnostics, key=lambda diagnostic: (diagnostic.start, diagnostic.end)))

    @property
    def status(self) -> str:
        """`error` if there is at least one error, otherwise `ok`."""
        return "error" if self._count_severity("error") else "ok"

    def _count_severity(self, severity: str) -> int:
        return sum(diagnostic.severity == severity for diagnostic in self.diagnostics)

    def to_json(self) -> dict[str, object]:
        """Return the report as one JSON object."""
        hard_coded_count = sum(len(query_result.warnings) for query_result in self.results)
        return {
            "status": self.status,
            "schema_source": self.schema_source,
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self._count_severity("error"),
            "warnings": self._count_severity("warning") + hard_coded_count,
            "infos": self._count_severity("info"),
            "results": [query_result.to_json() for query_result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }


def lint_source(catalog: Catalog, source: SourceText, schema_source: str = "<schema>") -> QueryFileReport:
    """Lint every query in a `.gq` file. Text that cannot be parsed is reported as a `Q000` finding."""
    diagnoses, syntax_errors = diagnose_each_query(source, catalog)
    findings = [_syntax_error_finding(error) for error in syntax_errors]
    for diagnosis in diagnoses:
        findings += [LintFinding(warning, query_names=(diagnosis.query.name.text,)) for warning in diagnosis.warnings]
    findings += _find_unassigned_properties(catalog, diagnoses, source)
    query_results = tuple(QueryLintResult(diagnosis, _hard_coded_warnings(diagnosis)) for diagnosis in diagnoses)
    return QueryFileReport(schema_source, source.name, query_results, tuple(_sort_findings(findings)), source)


def _error_sentence(error: Diagnostic) -> str:
    return f"{error.code}: {error.message}" if error.code else error.message


def _syntax_error_finding(syntax_error: Diagnostic) -> LintFinding:
    from dataclasses import replace

    return LintFinding(replace(syntax_error, code="Q000"))


def _hard_coded_warnings(diagnosis: QueryDiagnosis) -> tuple[str, ...]:
    is_hard_coded = diagnosis.kind == "mutation" and not diagnosis.query.parameters
    return (HARD_CODED_MESSAGE,) if is_hard_coded else ()


def _sort_findings(findings: list[LintFinding]) -> list[LintFinding]:
    def finding_rank(finding: LintFinding) -> tuple[int, str, str, str, int]:
        diagnostic = finding.diagnostic
        subject_names = finding.type_name or "", finding.property or ""
        return (_SEVERITY_RANKS[diagnostic.severity], *subject_names, diagnostic.message, diagnostic.start)

    return sorted(findings, key=finding_rank)


@record
class _CheckedUpdate:
    """An update in a valid query: the properties that it assigns, and the position of its target."""

    query_name: str
    target: tuple[str, str]  # (kind, name)
    assigned_names: frozenset[str]
    target_span: Span


def _find_unassigned_properties(
    catalog: Catalog, diagnoses: tuple[QueryDiagnosis, ...], source: SourceText
) -> list[LintFinding]:
    """For each updated type, report the nullable properties that no update ever assigns."""
    updates = [update for diagnosis in diagnoses for update in _updates_of(diagnosis)]
    findings: list[LintFinding] = []
    entity_types: list[NodeType | EdgeType] = [*catalog.nodes, *catalog.edges]
    for entity_type in entity_types:
        type_updates = [update for update in updates if update.target == (entity_type.kind, entity_type.name)]
        findings += _find_unassigned_in_type(entity_type, type_updates, source) if type_updates else []
    return findings


def _updates_of(diagnosis: QueryDiagnosis) -> Iterator[_CheckedUpdate]:
    if diagnosis.compiled is None or not isinstance(diagnosis.query.body, m.WriteBody):
        return
    write_plan = diagnosis.compiled.plan
    plan_statements = write_plan.statements if isinstance(write_plan, plan.WritePlan) else ()
    for statement, plan_statement in zip(diagnosis.query.body.statements, plan_statements, strict=True):
        if isinstance(statement, m.Patch | m.Update | m.MatchedUpdate):
            target_node = statement.variable if isinstance(statement, m.MatchedUpdate) else statement.type_name
            assigned_names = frozenset(assignment.name.text for assignment in statement.assignments)
            target = (plan_statement.kind, plan_statement.type_name)
            yield _CheckedUpdate(diagnosis.query.name.text, target, assigned_names, target_node.span)


def _find_unassigned_in_type(
    entity_type: NodeType | EdgeType, updates: list[_CheckedUpdate], source: SourceText
) -> list[LintFinding]:
    assigned_names = frozenset[str]().union(*(update.assigned_names for update in updates))
    query_names = tuple(dict.fromkeys(update.query_name for update in updates))
    findings = []
    for declared_property in entity_type.properties:
        is_covered = (
            declared_property.name in assigned_names
            or declared_property.name in key_names(entity_type)
            or declared_property.embed is not None
        )
        if is_covered or not declared_property.type.nullable:
            continue
        message = f"no update assigns `{entity_type.name}.{declared_property.name}`"
        diagnostic = Diagnostic.at_span(
            source, updates[0].target_span, message, code="L201", kind="lint", severity="warning"
        )
        findings.append(LintFinding(diagnostic, entity_type.name, declared_property.name, query_names))
    return findings
