"""Compile text or a tree into queries: parse, check, lower, describe.

Owns `CompiledQuery`, which every layer above the language uses. One bad query must never hide
another; all diagnostics of a text are raised in one error.
"""

from dataclasses import replace
from typing import Literal as OneOf

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.errors import UsageError, language_error
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.record import record

from . import model as m
from . import plan
from .advice import advice
from .check import Checked, check_query
from .check.parameters import CheckedParameter
from .describe import Operation, describe
from .lower import lower_read
from .parse import read_queries

QueryKind = OneOf["read", "mutation"]


@record
class CompiledQuery:
    """A query that is valid for its schema, ready to run."""

    name: str
    kind: QueryKind
    parameters: tuple[CheckedParameter, ...]
    plan: plan.Plan
    operation: Operation
    warnings: tuple[Diagnostic, ...] = ()
    description: str | None = None
    instruction: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return what a client needs to call the query and to read its result."""
        found: dict[str, object] = {
            "name": self.name,
            "kind": self.kind,
            "params": [describe_parameter(one) for one in self.parameters],
            "operation": self.operation.to_json(),
            "description": self.description,
            "instruction": self.instruction,
        }
        return {name: value for name, value in found.items() if value is not None}


@record
class Diagnosis:
    """One query of a text: its diagnostics, and its compiled form if it is valid."""

    query: m.Query
    kind: QueryKind
    compiled: CompiledQuery | None
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]


def compile_query(
    query: str | m.Query,
    catalog: Catalog,
    *,
    name: str = "<query>",
    source: Source | None = None,
) -> CompiledQuery:
    """Compile a text that holds one query, or a tree; `source` is the text of the tree."""
    if isinstance(query, str):
        compiled = compile_queries(query, catalog, name)
        if len(compiled) != 1:
            raise UsageError(reason=f"expected one query, found {len(compiled)}")
        return compiled[0]
    text = source or Source(name, "")
    found = diagnose_query(query, catalog, text)
    if found.compiled is None:
        raise language_error(found.errors, text)
    return found.compiled


def compile_queries(
    text: str, catalog: Catalog, name: str = "<query>"
) -> tuple[CompiledQuery, ...]:
    """Compile every query of a text, or raise one error with all diagnostics."""
    source = Source(name, text)
    compiled, found = diagnose_queries(text, catalog, name)
    errors = [one for one in found if one.severity == "error"]
    if errors:
        raise language_error(errors, source)
    return compiled


def diagnose_queries(
    text: str, catalog: Catalog, name: str = "<query>"
) -> tuple[tuple[CompiledQuery, ...], tuple[Diagnostic, ...]]:
    """Return the valid queries of a text, and all diagnostics in source order. Never raises."""
    each, unreadable = diagnose_each(Source(name, text), catalog)
    found = list(unreadable)
    for one in each:
        found += [*one.errors, *one.warnings]
    compiled = tuple(one.compiled for one in each if one.compiled is not None)
    return compiled, tuple(sorted(found, key=lambda diagnostic: (diagnostic.start, diagnostic.end)))


def diagnose_each(
    source: Source, catalog: Catalog
) -> tuple[tuple[Diagnosis, ...], tuple[Diagnostic, ...]]:
    """Check each query that can be parsed; also return the syntax errors of the others."""
    file, unreadable = read_queries(source)
    seen: set[str] = set()
    found: list[Diagnosis] = []
    for query in file.queries:
        checked = diagnose_query(query, catalog, source)
        found.append(_unique(checked, source, taken=query.name.text in seen))
        seen.add(query.name.text)
    return tuple(found), unreadable


def diagnose_query(query: m.Query, catalog: Catalog, source: Source) -> Diagnosis:
    """Check one query and, if it is valid, compile it. Never raises."""
    checked = check_query(query, catalog, source)
    kind: QueryKind = "read" if isinstance(query.body, m.ReadBody) else "mutation"
    warnings = advice(query, checked, source)
    compiled = _compiled(query, kind, checked, catalog, warnings)
    return Diagnosis(query, kind, compiled, checked.errors, warnings)


def _compiled(
    query: m.Query,
    kind: QueryKind,
    checked: Checked,
    catalog: Catalog,
    warnings: tuple[Diagnostic, ...],
) -> CompiledQuery | None:
    if checked.body is None:
        return None
    body = checked.body
    made = body if isinstance(body, plan.WritePlan) else lower_read(body, catalog)
    return CompiledQuery(
        name=query.name.text,
        kind=kind,
        parameters=checked.parameters,
        plan=made,
        operation=describe(made, catalog),
        warnings=warnings,
        description=query.description,
        instruction=query.instruction,
    )


def _unique(found: Diagnosis, source: Source, taken: bool) -> Diagnosis:
    """Reject a query whose name is already defined: no call could reach it."""
    if not taken:
        return found
    name = found.query.name
    message = f"query `{name.text}` is already defined"
    twin = Diagnostic.at(source, name.span, message, kind="type")
    return replace(found, compiled=None, errors=(twin, *found.errors))


def describe_parameter(parameter: CheckedParameter) -> dict[str, object]:
    """Return `{name, type, nullable, default?}` of a parameter."""
    from omnigraph.values import encode_result

    found: dict[str, object] = {
        "name": parameter.name,
        "type": parameter.type.as_nullable(False).display(),
        "nullable": parameter.type.nullable,
    }
    if parameter.default is not None:
        found["default"] = encode_result(parameter.type, parameter.default.value)
    return found
