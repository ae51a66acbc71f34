"""Lint: every finding about a `.gq` text, as one report for tools.

Owns the form of the report, L201 and the warning about mutations without parameters. Diagnostics
of parser and checker are only arranged here.
"""

from dataclasses import field

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.lang.schema.catalog import Catalog, Node
from omnigraph.record import record

from . import model as m
from .compile import Diagnosis, diagnose_each

_RANKS = {"error": 0, "warning": 1, "info": 2}
HARD_CODED = "a mutation without parameters has hard-coded values"


@record
class Finding:
    """One finding about a text; type errors are in the results of their queries instead."""

    diagnostic: Diagnostic
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the members that a tool reads; members without a value are omitted."""
        one = self.diagnostic
        found: dict[str, object] = {"severity": one.severity, "code": one.code}
        found["message"] = one.message
        found |= {"type_name": self.type_name, "property": self.property}
        found["query_names"] = list(self.query_names) or None
        found |= {"line": one.line, "column": one.column, "start": one.start, "end": one.end}
        found["hint"] = one.hint
        return {name: value for name, value in found.items() if value is not None}


@record
class QueryResult:
    """The lint result of one query; `error` in its JSON joins the type errors."""

    diagnosis: Diagnosis
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return `{name, kind, status, warnings, diagnostics, error?, operation?}`."""
        one = self.diagnosis
        found: dict[str, object] = {"name": one.query.name.text, "kind": one.kind}
        found["status"] = "error" if one.errors else "ok"
        found["warnings"] = list(self.warnings)
        found["diagnostics"] = [error.to_json() for error in one.errors]
        if one.errors:
            found["error"] = "; ".join(_sentence(error) for error in one.errors)
        if one.compiled is not None:
            found["operation"] = one.compiled.operation.to_json()
        return found


@record
class LintReport:
    """The complete report; commands print its `to_json()`."""

    schema_source: str
    query_path: str
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]
    source: Source = field(repr=False, compare=False, default=Source("", ""))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every error, warning and note, in source order."""
        found = [one.diagnostic for one in self.findings]
        for result in self.results:
            found += result.diagnosis.errors
        return tuple(sorted(found, key=lambda diagnostic: (diagnostic.start, diagnostic.end)))

    @property
    def status(self) -> str:
        """`error` if there is at least one error, otherwise `ok`."""
        return "error" if self._count("error") else "ok"

    def _count(self, severity: str) -> int:
        return sum(one.severity == severity for one in self.diagnostics)

    def to_json(self) -> dict[str, object]:
        """Return the report as one JSON object."""
        hard_coded = sum(len(one.warnings) for one in self.results)
        return {
            "status": self.status,
            "schema_source": self.schema_source,
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self._count("error"),
            "warnings": self._count("warning") + hard_coded,
            "infos": self._count("info"),
            "results": [one.to_json() for one in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }


def lint(catalog: Catalog, source: Source, schema_source: str = "<schema>") -> LintReport:
    """Lint every query of a text. Never raises; text that cannot be parsed is a `Q000` finding."""
    each, unreadable = diagnose_each(source, catalog)
    findings = [_unreadable(error) for error in unreadable]
    for one in each:
        findings += [Finding(w, query_names=(one.query.name.text,)) for w in one.warnings]
    findings += _never_assigned(catalog, each, source)
    results = tuple(QueryResult(one, _hard_coded(one)) for one in each)
    return LintReport(schema_source, source.name, results, tuple(_sorted(findings)), source)


def _sentence(error: Diagnostic) -> str:
    return f"{error.code}: {error.message}" if error.code else error.message


def _unreadable(one: Diagnostic) -> Finding:
    from dataclasses import replace

    return Finding(replace(one, code="Q000"))


def _hard_coded(one: Diagnosis) -> tuple[str, ...]:
    hard = one.kind == "mutation" and not one.query.parameters
    return (HARD_CODED,) if hard else ()


def _sorted(findings: list[Finding]) -> list[Finding]:
    def rank(one: Finding) -> tuple[int, str, str, str, int]:
        d = one.diagnostic
        names = one.type_name or "", one.property or ""
        return _RANKS[d.severity], *names, d.message, d.start

    return sorted(findings, key=rank)


def _never_assigned(catalog: Catalog, each: tuple[Diagnosis, ...], source: Source) -> list[Finding]:
    """Report nullable properties that no update of their type assigns, although updates exist."""
    updates = [
        (one.query.name.text, statement)
        for one in each
        if one.compiled is not None and isinstance(one.query.body, m.WriteBody)
        for statement in one.query.body.statements
        if isinstance(statement, m.Update)
    ]
    found: list[Finding] = []
    for node in catalog.nodes:
        here = [(name, update) for name, update in updates if update.type_name.text == node.name]
        found += _gaps(node, here, source) if here else []
    return found


def _gaps(node: Node, updates: list[tuple[str, m.Update]], source: Source) -> list[Finding]:
    assigned = {a.name.text for _, update in updates for a in update.assignments}
    names = tuple(dict.fromkeys(name for name, _ in updates))
    span = updates[0][1].type_name.span
    found = []
    for one in node.properties:
        kept = one.name in assigned or one.name in (node.key or ()) or one.embed is not None
        if kept or not one.type.nullable:
            continue
        message = f"no update assigns `{node.name}.{one.name}`"
        at = Diagnostic.at(source, span, message, code="L201", kind="lint", severity="warning")
        found.append(Finding(at, node.name, one.name, names))
    return found
