"""The schema language, `.pg`: text in, catalog or typed errors out.

The functions here are all that other packages need; each loads its part of the language when it
is first called. The data they give is in `model` (the tree) and `catalog` (the checked form).
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
    """The tree of a schema text; raises `ParseError` with every syntax error.

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
    """The checked form of a schema text; raises one language error with everything that is wrong.

    `existing` are names that the graph has already: they may be longer than new ones.

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
    """The checked form, or None and every error. Never raises for bad text.

    >>> diagnose_schema("edge Lights: Lamp -> Room")[1][0].message
    'edge `Lights` leads from `Lamp`, which is not a declared node type'
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
    """Every error in the order of the checks, then every warning that no `@allow` silences.

    `severities` sets the loudness of a code for this call, or switches it off.

    >>> [d.code for d in lint_schema("node Big_Lamp {}")]
    ['OG-NM-101']
    >>> lint_schema("node Big_Lamp {}", severities={"OG-NM-101": "off"})
    ()
    """
    return examine_schema(text, name, severities=severities)[1]


def examine_schema(
    text: str, name: str = "<schema>", *, severities: "Mapping[str, Level] | None" = None
) -> "tuple[Catalog | None, tuple[Diagnostic, ...]]":
    """The checked form, or None for a text with errors, and all that `lint_schema` finds.

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
    """The text in its canonical layout, comments kept; raises `ParseError` when it has none.

    >>> print(format_schema("node Lamp{watts:I32?name:String@key}"), end="")
    node Lamp {
        watts: I32?
        name: String @key
    }
    """
    from .format import format_text

    return format_text(text, parse_schema(text, name))
