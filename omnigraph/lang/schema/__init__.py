"""The `.pg` schema language: compile schema text into a catalog, or raise typed errors.

Other packages need only the functions in this module. Each function imports its part of the language on first use. The
returned objects are defined in `model` (syntax tree) and `catalog` (checked form).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from omnigraph.errors.diagnostics import Diagnostic

    from .catalog import Catalog
    from .lint import LintLevel
    from .model import SchemaFile

__all__ = ["compile_schema", "diagnose_schema", "examine_schema", "format_schema", "lint_schema", "parse_schema"]


def parse_schema(schema_text: str, source_name: str = "<schema>") -> "SchemaFile":
    """Return a schema's syntax tree, or raise a `ParseError` that lists every syntax error.

    >>> [d.name.text for d in parse_schema("node Lamp {} edge Lights: Lamp -> Room").declarations]
    ['Lamp', 'Lights']
    """
    from omnigraph.errors import language_error
    from omnigraph.errors.diagnostics import SourceText

    from .model import SchemaFile
    from .parse import parse

    parsed_schema = parse(SourceText(source_name, schema_text))
    if parsed_schema.diagnostics:
        raise language_error(parsed_schema.diagnostics, parsed_schema.source)
    return SchemaFile(parsed_schema.declarations)


def compile_schema(
    schema_text: str, source_name: str = "<schema>", *, existing_names: "Container[str]" = ()
) -> "Catalog":
    """Return a schema's catalog, or raise one language error that lists every mistake.

    `existing_names` are the names already in use in the graph. Only these names may exceed the length limit.

    >>> compile_schema("node Lamp { watts: I32  name: String @key }").nodes[0].key
    ('name',)
    """
    from omnigraph.errors import language_error
    from omnigraph.errors.diagnostics import SourceText

    catalog, diagnostics = diagnose_schema(schema_text, source_name, existing_names=existing_names)
    if catalog is None:
        raise language_error(diagnostics, SourceText(source_name, schema_text))
    return catalog


def diagnose_schema(
    schema_text: str, source_name: str = "<schema>", *, existing_names: "Container[str]" = ()
) -> "tuple[Catalog | None, tuple[Diagnostic, ...]]":
    """Return the catalog (None if there are errors) and all errors. No exception is raised for invalid text.

    >>> diagnose_schema("edge Lights: Lamp -> Room")[1][0].message
    'edge `Lights` starts at `Lamp`, which is not a declared node type'
    """
    from omnigraph.errors.diagnostics import SourceText

    from .check import check
    from .parse import parse

    parsed_schema = parse(SourceText(source_name, schema_text))
    catalog, check_errors = check(parsed_schema, existing_names)
    all_diagnostics = parsed_schema.diagnostics + check_errors
    return (None if all_diagnostics else catalog), all_diagnostics


def lint_schema(
    schema_text: str, source_name: str = "<schema>", *, severities: "Mapping[str, LintLevel] | None" = None
) -> "tuple[Diagnostic, ...]":
    """Return every error in the order of the checks, then every warning that `@allow` does not suppress.

    `severities` overrides the severity of individual codes. A severity of `off` disables the check.

    >>> [d.code for d in lint_schema("node Big_Lamp {}")]
    ['OG-NM-101']
    >>> lint_schema("node Big_Lamp {}", severities={"OG-NM-101": "off"})
    ()
    """
    return examine_schema(schema_text, source_name, severities=severities)[1]


def examine_schema(
    schema_text: str, source_name: str = "<schema>", *, severities: "Mapping[str, LintLevel] | None" = None
) -> "tuple[Catalog | None, tuple[Diagnostic, ...]]":
    """Return the catalog (None if there are errors) and the diagnostics that `lint_schema` returns.

    >>> catalog, diagnostics = examine_schema("node Big_Lamp {}")
    >>> catalog.nodes[0].name, diagnostics[0].severity
    ('Big_Lamp', 'warning')
    """
    from omnigraph.errors.diagnostics import SourceText

    from .check import check
    from .lint import lint
    from .parse import parse

    parsed_schema = parse(SourceText(source_name, schema_text))
    catalog, errors = check(parsed_schema)
    errors = parsed_schema.diagnostics + errors
    error_starts = {diagnostic.start for diagnostic in errors}
    lint_diagnostics = tuple(
        diagnostic for diagnostic in lint(parsed_schema, severities or {}) if diagnostic.start not in error_starts
    )
    return (None if errors else catalog), errors + lint_diagnostics


def format_schema(schema_text: str, source_name: str = "<schema>") -> str:
    """Return the text in canonical layout, with its comments. Raise `ParseError` if the text is invalid.

    >>> print(format_schema("node Lamp{watts:I32?name:String@key}"), end="")
    node Lamp {
        watts: I32?
        name: String @key
    }
    """
    from .format import format_tree

    return format_tree(schema_text, parse_schema(schema_text, source_name))
