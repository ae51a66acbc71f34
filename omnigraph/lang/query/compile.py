"""Compile query text or a syntax tree in four steps: parse, check, lower and describe.

This module defines `CompiledQuery`, which every layer above the language uses. Errors in one query must never hide
errors in another, so all diagnostics for the source text are raised together as one error.
"""

from dataclasses import replace
from typing import Literal as OneOf

from omnigraph.errors import UsageError, language_error
from omnigraph.errors.diagnostics import Diagnostic, SourceText
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record

from . import model as m
from . import plan
from .check import CheckedQuery, check_query
from .check.parameters import CheckedParameter
from .describe_query import Operation, describe_plan
from .lower_bodies import lower_body
from .parse import read_named_query, read_queries
from .query_warnings import collect_warnings

QueryKind = OneOf["read", "mutation"]


@record
class CompiledQuery:
    """A query that is valid for its schema and ready to run."""

    name: str
    kind: QueryKind
    parameters: tuple[CheckedParameter, ...]
    plan: plan.Plan
    operation: Operation
    warnings: tuple[Diagnostic, ...] = ()
    description: str | None = None
    instruction: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return a JSON object with everything that a client needs in order to call the query and read its result."""
        members: dict[str, object] = {
            "name": self.name,
            "kind": self.kind,
            "params": [describe_parameter(parameter) for parameter in self.parameters],
            "operation": self.operation.to_json(),
            "description": self.description,
            "instruction": self.instruction,
        }
        return {member_name: member_value for member_name, member_value in members.items() if member_value is not None}


@record
class QueryDiagnosis:
    """One query in the source text: its diagnostics, and its compiled form if it is valid."""

    query: m.Query
    kind: QueryKind
    compiled: CompiledQuery | None
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]


def compile_query(
    query: str | m.Query, catalog: Catalog, *, source_name: str = "<query>", source: SourceText | None = None
) -> CompiledQuery:
    """Compile one query from source text or a syntax tree.

    `source` is the text that the tree was parsed from. If the query is invalid, raise one language error.
    """
    if isinstance(query, str):
        compiled = compile_queries(query, catalog, source_name)
        if len(compiled) != 1:
            raise UsageError(reason=f"expected one query, found {len(compiled)}")
        return compiled[0]
    query_source = source or SourceText(source_name, "")
    diagnosis = diagnose_query(query, catalog, query_source)
    if diagnosis.compiled is None:
        raise language_error(diagnosis.errors, query_source)
    return diagnosis.compiled


def compile_named_query(
    query_text: str, catalog: Catalog, query_name: str, source_name: str = "<query>"
) -> CompiledQuery | None:
    """Compile only the query with this name. Return None if it is invalid, not found or defined more than once."""
    source = SourceText(source_name, query_text)
    query = read_named_query(source, query_name)
    return diagnose_query(query, catalog, source).compiled if query is not None else None


def compile_queries(query_text: str, catalog: Catalog, source_name: str = "<query>") -> tuple[CompiledQuery, ...]:
    """Compile every query in the source text. If any query is invalid, raise one error with all diagnostics."""
    source = SourceText(source_name, query_text)
    compiled, diagnostics = diagnose_queries(query_text, catalog, source_name)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    if errors:
        raise language_error(errors, source)
    return compiled


def diagnose_queries(
    query_text: str, catalog: Catalog, source_name: str = "<query>"
) -> tuple[tuple[CompiledQuery, ...], tuple[Diagnostic, ...]]:
    """Return the valid queries in the source text and all diagnostics, in source order. Never raises."""
    diagnoses, syntax_errors = diagnose_each_query(SourceText(source_name, query_text), catalog)
    diagnostics = list(syntax_errors)
    for diagnosis in diagnoses:
        diagnostics += [*diagnosis.errors, *diagnosis.warnings]
    compiled = tuple(diagnosis.compiled for diagnosis in diagnoses if diagnosis.compiled is not None)
    return compiled, tuple(sorted(diagnostics, key=lambda diagnostic: (diagnostic.start, diagnostic.end)))


def diagnose_each_query(
    source: SourceText, catalog: Catalog
) -> tuple[tuple[QueryDiagnosis, ...], tuple[Diagnostic, ...]]:
    """Return a diagnosis for each query that can be parsed, and the syntax errors in all other queries."""
    query_file, syntax_errors = read_queries(source)
    seen_names: set[str] = set()
    diagnoses: list[QueryDiagnosis] = []
    for query in query_file.queries:
        diagnosis = diagnose_query(query, catalog, source)
        diagnoses.append(_reject_duplicate_name(diagnosis, source, is_duplicate=query.name.text in seen_names))
        seen_names.add(query.name.text)
    return tuple(diagnoses), syntax_errors


def diagnose_query(query: m.Query, catalog: Catalog, source: SourceText) -> QueryDiagnosis:
    """Check one query, and compile it if it is valid. Never raises."""
    checked_query = check_query(query, catalog, source)
    kind: QueryKind = "mutation" if isinstance(query.body, m.WriteBody) else "read"
    warnings = collect_warnings(query, checked_query, source)
    compiled = _compile_checked(query, kind, checked_query, catalog, warnings)
    return QueryDiagnosis(query, kind, compiled, checked_query.errors, warnings)


def _compile_checked(
    query: m.Query, kind: QueryKind, checked_query: CheckedQuery, catalog: Catalog, warnings: tuple[Diagnostic, ...]
) -> CompiledQuery | None:
    if checked_query.body is None:
        return None
    query_plan = lower_body(checked_query.body, catalog)
    return CompiledQuery(
        name=query.name.text,
        kind=kind,
        parameters=checked_query.parameters,
        plan=query_plan,
        operation=describe_plan(query_plan, catalog),
        warnings=warnings,
        description=query.description,
        instruction=query.instruction,
    )


def _reject_duplicate_name(diagnosis: QueryDiagnosis, source: SourceText, is_duplicate: bool) -> QueryDiagnosis:
    """Reject a query whose name is already taken, because it could never be called."""
    if not is_duplicate:
        return diagnosis
    query_name = diagnosis.query.name
    message = f"query `{query_name.text}` is already defined"
    duplicate_error = Diagnostic.at_span(source, query_name.span, message, kind="type")
    return replace(diagnosis, compiled=None, errors=(duplicate_error, *diagnosis.errors))


def describe_parameter(parameter: CheckedParameter) -> dict[str, object]:
    """Describe a parameter as a JSON object `{name, type, nullable, default?}`."""
    from omnigraph.values import encode_result

    members: dict[str, object] = {
        "name": parameter.name,
        "type": parameter.type.as_nullable(False).display(),
        "nullable": parameter.type.nullable,
    }
    if parameter.default is not None:
        members["default"] = encode_result(parameter.type, parameter.default.value)
    return members
