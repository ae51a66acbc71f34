"""Warnings about schemas that are valid but probably not intended.

The rules find unconventional names, and declarations that have no effect or are probably incomplete. Each rule is a
generator that examines one declaration, and `RULES` lists all rules. Only `check` can reject a schema; lint never does.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from omnigraph.errors import UsageError
from omnigraph.errors.diagnostics import Diagnostic, DiagnosticSeverity, SourceText, Span
from omnigraph.records.frozen import record

from . import model
from .check.annotations import KNOWN_ANNOTATIONS
from .codes import CODES
from .model import Annotation, Constraint, Declaration, EdgeDeclaration, InterfaceDeclaration, NodeDeclaration, Property
from .names import did_you_mean
from .parse import ParsedSchema

LintLevel = DiagnosticSeverity | Literal["off"]
_BARE_CONSTRAINT_HINTS = {
    "range": "write `@range(price, 0..)` in the body of a node",
    "check": 'write `@check(code, "^[A-Z]+$")` in the body of a node',
    "card": "write `@card(0..1)` directly after the target type of an edge",
    "default": "write `@default(value)` after a property",
}
_PASCAL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*")
_SNAKE_CASE = re.compile(r"[a-z_][a-z0-9_]*")


@record
class LintContext:
    """Facts about the whole schema, for rules that examine more than one declaration.

    `names_by_declaration` contains the declared names for each kind of declaration. `indexed_by_interface` maps each
    interface to the columns that its implementing nodes list in an `@index(…)`.
    """

    names_by_declaration: dict[type[Declaration], set[str]]
    indexed_by_interface: dict[str, set[str]]


@record
class SchemaLintFinding:
    """A problem that a rule reports. `owner_property` is the affected property, if any."""

    code: str
    span: Span
    message: str
    hint: str | None = None
    owner_property: Property | None = None


SchemaLintRule = Callable[[Declaration, LintContext], Iterator[SchemaLintFinding]]


def lint(parsed: ParsedSchema, severities: Mapping[str, LintLevel]) -> tuple[Diagnostic, ...]:
    """Return all findings that `@allow` does not suppress, sorted by position."""
    _require_known_codes(severities)
    lint_context = _build_lint_context(parsed.declarations)
    levels_by_code: dict[str, LintLevel] = {code: entry.severity for code, entry in CODES.items()}
    levels_by_code |= severities
    diagnostics = []
    for declaration in parsed.declarations:
        for rule in RULES:
            for finding in rule(declaration, lint_context):
                level = levels_by_code[finding.code]
                if level != "off" and finding.code not in _silenced_codes(declaration, finding.owner_property):
                    diagnostics.append(_to_diagnostic(parsed.source, finding, level))
    return tuple(sorted(diagnostics, key=lambda diagnostic: (diagnostic.start, diagnostic.end, diagnostic.code or "")))


def _require_known_codes(severities: Mapping[str, LintLevel]) -> None:
    for code in severities:
        if code not in CODES:
            hint = did_you_mean(code, CODES)
            raise UsageError(reason=f"unknown finding code `{code}`", hint=hint)


def _to_diagnostic(source: SourceText, finding: SchemaLintFinding, level: DiagnosticSeverity) -> Diagnostic:
    return Diagnostic.at_span(
        source, finding.span, finding.message, code=finding.code, kind="lint", severity=level, hint=finding.hint
    )


def _silenced_codes(declaration: Declaration, owner_property: Property | None) -> set[str]:
    annotations = declaration.annotations + (owner_property.annotations if owner_property is not None else ())
    return {
        annotation.arguments[0].text
        for annotation in annotations
        if annotation.name.text == "allow" and annotation.arguments
    }


def check_type_names(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report type names that are not in PascalCase.

    In queries, the name of an edge type is written with a lowercase first letter.
    """
    name = declaration.name
    if not _PASCAL_CASE.fullmatch(name.text):
        suggestion = "".join(name_part[:1].upper() + name_part[1:] for name_part in name.text.split("_"))
        message = f"the type name `{name.text}` is not in PascalCase"
        yield SchemaLintFinding("OG-NM-101", name.span, message, f"did you mean `{suggestion}`?")


def check_property_names(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report property names that are not in snake_case."""
    for declared_property in _declared_properties(declaration):
        if not _SNAKE_CASE.fullmatch(declared_property.name.text):
            suggestion = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", declared_property.name.text).lower()
            message = f"the property name `{declared_property.name.text}` is not in snake_case"
            yield SchemaLintFinding(
                "OG-NM-102", declared_property.name.span, message, f"did you mean `{suggestion}`?", declared_property
            )


def check_annotations(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report unknown annotations, and constraint annotations that have no effect where they are written."""
    for annotation, owner_property in _annotations_with_owner(declaration):
        annotation_name = annotation.name.text
        if annotation_name in _BARE_CONSTRAINT_HINTS and not (annotation_name == "default" and annotation.arguments):
            message = f"`@{annotation_name}` has no effect here"
            yield SchemaLintFinding(
                "OG-NM-104", annotation.span, message, _BARE_CONSTRAINT_HINTS[annotation_name], owner_property
            )
        elif annotation_name not in KNOWN_ANNOTATIONS and annotation_name not in _BARE_CONSTRAINT_HINTS:
            suggestion = did_you_mean(
                f"@{annotation_name}",
                (f"@{known_name}" for known_name in (*KNOWN_ANNOTATIONS, *_BARE_CONSTRAINT_HINTS)),
            )
            message = f"unknown annotation `@{annotation_name}` is stored but has no effect"
            yield SchemaLintFinding("OG-NM-103", annotation.span, message, suggestion, owner_property)


def check_rename_hints(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report a rename hint whose old name is still in use, because the hint has no effect."""
    used_type_names = lint_context.names_by_declaration[type(declaration)]
    used_property_names = {declared_property.name.text for declared_property in _declared_properties(declaration)}
    for annotation, owner_property in _annotations_with_owner(declaration):
        if annotation.name.text == "rename_from" and annotation.arguments:
            old_name = annotation.arguments[0].text
            if old_name in (used_type_names if owner_property is None else used_property_names):
                message = f"`@rename_from`: `{old_name}` is still declared, so nothing is renamed"
                hint = "remove `@rename_from` once every graph uses the new name"
                yield SchemaLintFinding("OG-NM-105", annotation.span, message, hint, owner_property)


def check_allowed_codes(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report `@allow` with a code that does not exist."""
    for annotation, owner_property in _annotations_with_owner(declaration):
        code_literal = annotation.arguments[0] if annotation.name.text == "allow" and annotation.arguments else None
        if code_literal is not None and code_literal.text not in CODES:
            message = f"`@allow`: unknown finding code `{code_literal.text}`"
            yield SchemaLintFinding(
                "OG-NM-106", code_literal.span, message, did_you_mean(code_literal.text, CODES), owner_property
            )


def check_vectors(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report a vector that is neither computed nor indexed, because its declaration is probably incomplete."""
    indexed_columns = _body_indexed_columns(declaration)
    if isinstance(declaration, InterfaceDeclaration):
        indexed_columns = lint_context.indexed_by_interface[declaration.name.text]
    for declared_property in _declared_properties(declaration):
        annotation_names = {annotation.name.text for annotation in declared_property.annotations}
        if (
            declared_property.type.is_vector
            and not annotation_names & {"index", "embed"}
            and declared_property.name.text not in indexed_columns
        ):
            message = f"the vector `{declared_property.name.text}` has neither `@index` nor `@embed`"
            hint = "without an index, a search reads every vector; add `@index`"
            yield SchemaLintFinding("OG-VE-201", declared_property.name.span, message, hint, declared_property)


def check_self_loops(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report an edge type that has no `@card` and whose edges may connect a node to itself."""
    if not isinstance(declaration, EdgeDeclaration) or declaration.cardinality is not None:
        return
    if declaration.source.text == declaration.target.text:
        message = f"edge `{declaration.name.text}` may connect a node to itself"
        hint = "use `@card(0..n)` to limit the number of edges per node"
        yield SchemaLintFinding("OG-ED-201", declaration.name.span, message, hint)


def check_traversable_names(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report an edge type whose name in queries would be the keyword `not`."""
    if isinstance(declaration, EdgeDeclaration) and declaration.name.text == "Not":
        message = "edge `Not` cannot be traversed: in queries, `not` begins a negation"
        yield SchemaLintFinding("OG-ED-202", declaration.name.span, message, "rename the edge type")


def check_implied_uniqueness(declaration: Declaration, lint_context: LintContext) -> Iterator[SchemaLintFinding]:
    """Report a `@unique` constraint whose columns include the whole key, because keys are already unique."""
    constraints = list(_column_constraints(declaration))
    key_columns = next((columns for kind, columns, _, _ in constraints if kind == "key"), None)
    for kind, columns, span, owner_property in constraints:
        if kind == "unique" and key_columns and key_columns <= columns:
            message = f"`@unique({', '.join(sorted(columns))})` has no effect: `@key` already ensures uniqueness"
            yield SchemaLintFinding("OG-NM-107", span, message, "remove `@unique`", owner_property)


RULES: tuple[SchemaLintRule, ...] = (
    check_type_names,
    check_property_names,
    check_annotations,
    check_rename_hints,
    check_allowed_codes,
    check_vectors,
    check_self_loops,
    check_traversable_names,
    check_implied_uniqueness,
)


def _declared_properties(declaration: Declaration) -> list[Property]:
    if isinstance(declaration, InterfaceDeclaration):
        return list(declaration.properties)
    return [member for member in declaration.members if isinstance(member, Property)]


def _annotations_with_owner(declaration: Declaration) -> Iterator[tuple[Annotation, Property | None]]:
    yield from ((annotation, None) for annotation in declaration.annotations)
    for declared_property in _declared_properties(declaration):
        yield from ((annotation, declared_property) for annotation in declared_property.annotations)


def _column_constraints(declaration: Declaration) -> Iterator[tuple[str, set[str], Span, Property | None]]:
    """Yield each constraint's kind, columns and position, and the property that it is written on, if any."""
    for annotation, owner_property in _annotations_with_owner(declaration):
        if owner_property is not None:
            yield annotation.name.text, {owner_property.name.text}, annotation.span, owner_property
    for member in () if isinstance(declaration, InterfaceDeclaration) else declaration.members:
        if isinstance(member, Constraint):
            columns = {argument.text for argument in member.arguments if isinstance(argument, model.Literal)}
            yield member.kind, columns, member.span, None


def _build_lint_context(declarations: tuple[Declaration, ...]) -> LintContext:
    lint_context = LintContext(defaultdict(set), defaultdict(set))
    for declaration in declarations:
        lint_context.names_by_declaration[type(declaration)].add(declaration.name.text)
        if isinstance(declaration, NodeDeclaration):
            for interface in declaration.implements:
                lint_context.indexed_by_interface[interface.text] |= _body_indexed_columns(declaration)
    return lint_context


def _body_indexed_columns(declaration: Declaration) -> set[str]:
    """Return the columns in the body's `@index(…)` constraints."""
    if isinstance(declaration, InterfaceDeclaration):
        return set()
    return {
        argument.text
        for member in declaration.members
        if isinstance(member, Constraint) and member.kind == "index"
        for argument in member.arguments
        if isinstance(argument, model.Literal)
    }
