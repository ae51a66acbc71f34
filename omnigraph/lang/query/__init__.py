"""The `.gq` query language: compile query text into checked plans, or raise typed errors.

Other packages need only the functions in this module. Each function imports its part of the language on first use. The
returned objects are defined in `model` (syntax tree), `plan`, `compile`, `describe_query` and `lint`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from omnigraph.errors.diagnostics import Diagnostic, SourceText
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.values.coerce import ParameterMode

    from .check.parameters import CheckedParameter
    from .compile import CompiledQuery
    from .lint import QueryFileReport
    from .model import Query, QueryFile
    from .plan import Plan

__all__ = [
    "bind_parameters",
    "compile_queries",
    "compile_query",
    "diagnose_queries",
    "explain_plan",
    "format_queries",
    "lint_queries",
    "parse_queries",
]


def parse_queries(text: str, name: str = "<query>") -> "QueryFile":
    """Return a query file's syntax tree, or raise a `ParseError` that lists every syntax error.

    >>> parse_queries("query q() { match { $p: Person } return { $p.name } }").queries[0].name.text
    'q'
    """
    from . import parse

    return parse.parse_queries(text, name)


def format_queries(text: str, name: str = "<query>") -> str:
    """Return the text in canonical layout, with its comments. Raise `ParseError` if the text has syntax errors."""
    from . import format as layout

    return layout.format_queries(text, name)


def compile_query(
    query: "str | Query", catalog: "Catalog", *, name: str = "<query>", source: "SourceText | None" = None
) -> "CompiledQuery":
    """Compile one query from source text or a syntax tree. `source` is the text that the tree was parsed from.

    >>> from omnigraph.lang.schema import compile_schema
    >>> people = compile_schema("node Person { name: String @key }")
    >>> query = compile_query("query q() { match { $p: Person } return { $p.name } }", people)
    >>> print(explain_plan(query.plan))
    scan $p: Person
    return p.name = $p.name: String
    """
    from . import compile as compiler

    return compiler.compile_query(query, catalog, source_name=name, source=source)


def compile_queries(text: str, catalog: "Catalog", name: str = "<query>") -> "tuple[CompiledQuery, ...]":
    """Compile every query in the source text. If there are problems, raise one language error that lists them all."""
    from . import compile as compiler

    return compiler.compile_queries(text, catalog, name)


def diagnose_queries(
    text: str, catalog: "Catalog", name: str = "<query>"
) -> "tuple[tuple[CompiledQuery, ...], tuple[Diagnostic, ...]]":
    """Return the valid queries and all diagnostics, in source order. No exception is raised for invalid text.

    >>> from omnigraph.lang.schema import compile_schema
    >>> _, diagnostics = diagnose_queries(
    ...     "query q() { delete Lamp where id = 1 }", compile_schema("")
    ... )
    >>> diagnostics[0].code
    'T10'
    """
    from . import compile as compiler

    return compiler.diagnose_queries(text, catalog, name)


def lint_queries(
    text: str, catalog: "Catalog", name: str = "<query>", schema_source: str = "<schema>"
) -> "QueryFileReport":
    """Return a report of all findings in the source text. The report's `to_json` returns it as JSON.

    >>> from omnigraph.lang.schema import compile_schema
    >>> lint_queries("query bad() {", compile_schema("")).status
    'error'
    """
    from omnigraph.errors.diagnostics import SourceText

    from . import lint as linter

    return linter.lint_source(catalog, SourceText(name, text), schema_source)


def bind_parameters(
    parameters: "Iterable[CheckedParameter]",
    given: "Mapping[str, Any]",
    mode: "ParameterMode" = "standard",
    now: object = None,
) -> "dict[str, Any]":
    """Return each parameter's stored value. If there are problems, raise one `ParameterError` that lists them all."""
    from . import parameters as binding

    return binding.bind_parameters(parameters, given, mode, now)


def explain_plan(plan: "Plan") -> str:
    """Return a plan as text with one operator per line."""
    from . import print_plan

    return print_plan.explain_plan(plan)
