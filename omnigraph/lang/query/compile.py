"""From text or tree to compiled queries: parse, check, lower, describe.

Owns the record that everything above the language holds. One bad query never hides another; all
findings of a text come in one error.
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
    """A query that fits its schema, ready to run."""

    name: str
    kind: QueryKind
    parameters: tuple[CheckedParameter, ...]
    plan: plan.Plan
    operation: Operation
    warnings: tuple[Diagnostic, ...] = ()
    description: str | None = None
    instruction: str | None = None

    def to_json(self) -> dict[str, object]:
        """What a client must know to call the query and to read its answer."""
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
    """One query of a text: compiled when it is right, and what was found in any case."""

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
    """Compile every query of a text, or raise one error with all findings."""
    source = Source(name, text)
    compiled, found = diagnose_queries(text, catalog, name)
    errors = [one for one in found if one.severity == "error"]
    if errors:
        raise language_error(errors, source)
    return compiled


def diagnose_queries(
    text: str, catalog: Catalog, name: str = "<query>"
) -> tuple[tuple[CompiledQuery, ...], tuple[Diagnostic, ...]]:
    """The queries of a text that are right, and all findings in source order. Never raises."""
    each, unreadable = diagnose_each(Source(name, text), catalog)
    found = list(unreadable)
    for one in each:
        found += [*one.errors, *one.warnings]
    compiled = tuple(one.compiled for one in each if one.compiled is not None)
    return compiled, tuple(sorted(found, key=lambda one: (one.start, one.end)))


def diagnose_each(
    source: Source, catalog: Catalog
) -> tuple[tuple[Diagnosis, ...], tuple[Diagnostic, ...]]:
    """Every query that can be read, checked for itself; and the syntax errors of the others."""
    file, unreadable = read_queries(source)
    seen: set[str] = set()
    found: list[Diagnosis] = []
    for query in file.queries:
        checked = diagnose_query(query, catalog, source)
        found.append(_unique(checked, source, taken=query.name.text in seen))
        seen.add(query.name.text)
    return tuple(found), unreadable


def diagnose_query(query: m.Query, catalog: Catalog, source: Source) -> Diagnosis:
    """Check one query and, when it is right, compile it. Never raises."""
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
    """A query whose name is taken is refused: nobody could call it."""
    if not taken:
        return found
    name = found.query.name
    message = f"a query called `{name.text}` exists already"
    twin = Diagnostic.at(source, name.span, message, kind="type")
    return replace(found, compiled=None, errors=(twin, *found.errors))


def describe_parameter(parameter: CheckedParameter) -> dict[str, object]:
    """`{name, type, nullable, default?}` of a parameter."""
    from omnigraph.values import encode_result

    found: dict[str, object] = {
        "name": parameter.name,
        "type": parameter.type.as_nullable(False).display(),
        "nullable": parameter.type.nullable,
    }
    if parameter.default is not None:
        found["default"] = encode_result(parameter.type, parameter.default.value)
    return found
