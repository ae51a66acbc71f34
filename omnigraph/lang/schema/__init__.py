"""The schema language, `.pg`: text in, catalog or typed errors out.

Other packages need only the functions defined here; each one imports its part of the language on
first call. The data they return is defined in `model` (syntax tree) and `catalog` (checked form).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from omnigraph.diagnostics import Diagnostic

    from .catalog import Catalog
    from .lint import Level
    from .model import SchemaFile

__all__ = [
    "compile_schema",
    "diagnose_schema",
    "examine_schema",
    "format_schema",
    "lint_schema",
    "parse_schema",
]


def parse_schema(text: str, name: str = "<schema>") -> "SchemaFile":
    """Return the syntax tree of a schema text; raise `ParseError` with every syntax error.

    >>> [d.name.text for d in parse_schema("node Lamp {} edge Lights: Lamp -> Room").declarations]
    ['Lamp', 'Lights']
    """
    from omnigraph.diagnostics import Source
    from omnigraph.errors import language_error

    from .model import SchemaFile
    from .parse import parse

    parsed = parse(Source(name, text))
    if parsed.diagnostics:
        raise language_error(parsed.diagnostics, parsed.source)
    return SchemaFile(parsed.declarations)


def compile_schema(
    text: str, name: str = "<schema>", *, existing: "Container[str]" = ()
) -> "Catalog":
    """Return the catalog of a schema text; raise one language error that lists every mistake.

    `existing_names` are names that the graph already has: only those may exceed the length limit.

    >>> compile_schema("node Lamp { watts: I32  name: String @key }").nodes[0].key
    ('name',)
    """
    from omnigraph.diagnostics import Source
    from omnigraph.errors import language_error

    catalog, diagnostics = diagnose_schema(text, name, existing=existing)
    if catalog is None:
        raise language_error(diagnostics, Source(name, text))
    return catalog


def diagnose_schema(
    text: str, name: str = "<schema>", *, existing: "Container[str]" = ()
) -> "tuple[Catalog | None, tuple[Diagnostic, ...]]":
    """Return the catalog, or None if there are errors, and every error. Never raises for bad text.

    >>> diagnose_schema("edge Lights: Lamp -> Room")[1][0].message
    'edge `Lights` starts at `Lamp`, which is not a declared node type'
    """
    from omnigraph.diagnostics import Source

    from .check import check
    from .parse import parse

    parsed = parse(Source(name, text))
    catalog, errors = check(parsed, existing)
    found = parsed.diagnostics + errors
    return (None if found else catalog), found


def lint_schema(
    text: str, name: str = "<schema>", *, severities: "Mapping[str, Level] | None" = None
) -> "tuple[Diagnostic, ...]":
    """Return every error in the order of the checks, then every warning not silenced by `@allow`.

    `severities` overrides the severity of a code for this call; `off` disables the code.

    >>> [d.code for d in lint_schema("node Big_Lamp {}")]
    ['OG-NM-101']
    >>> lint_schema("node Big_Lamp {}", severities={"OG-NM-101": "off"})
    ()
    """
    return examine_schema(text, name, severities=severities)[1]


def examine_schema(
    text: str, name: str = "<schema>", *, severities: "Mapping[str, Level] | None" = None
) -> "tuple[Catalog | None, tuple[Diagnostic, ...]]":
    """Return the catalog, or None if there are errors, and the diagnostics of `lint_schema`.

    >>> catalog, found = examine_schema("node Big_Lamp {}")
    >>> catalog.nodes[0].name, found[0].severity
    ('Big_Lamp', 'warning')
    """
    from omnigraph.diagnostics import Source

    from .check import check
    from .lint import lint
    from .parse import parse

    parsed = parse(Source(name, text))
    catalog, errors = check(parsed)
    errors = parsed.diagnostics + errors
    wrong = {one.start for one in errors}
    remarks = tuple(one for one in lint(parsed, severities or {}) if one.start not in wrong)
    return (None if errors else catalog), errors + remarks


def format_schema(text: str, name: str = "<schema>") -> str:
    """Return the text in canonical layout with its comments; raise `ParseError` for invalid text.

    >>> print(format_schema("node Lamp{watts:I32?name:String@key}"), end="")
    node Lamp {
        watts: I32?
        name: String @key
    }
    """
    from .format import format_text

    return format_text(text, parse_schema(text, name))
