"""Warnings for schemas that are valid but probably not intended.

Owns the rules for style and for declarations without effect. A rule is a generator over one
declaration; `RULES` lists all of them. Never rejects a schema: `check` does that.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from omnigraph.diagnostics import Diagnostic, Severity, Source, Span
from omnigraph.errors import UsageError
from omnigraph.record import record

from . import model
from .check.annotations import KNOWN
from .codes import CODES
from .model import (
    Annotation,
    Constraint,
    Declaration,
    EdgeDeclaration,
    InterfaceDeclaration,
    NodeDeclaration,
    Property,
)
from .names import did_you_mean
from .parse import ParsedSchema

Level = Severity | Literal["off"]
_BARE = {
    "range": "write `@range(price, 0..)` as a member of a node",
    "check": 'write `@check(code, "^[A-Z]+$")` as a member of a node',
    "card": "write `@card(0..1)` directly after the target type of an edge",
    "default": "write `@default(value)` after a property",
}
_PASCAL = re.compile(r"[A-Z][A-Za-z0-9]*")
_SNAKE = re.compile(r"[a-z_][a-z0-9_]*")


@record
class Whole:
    """Facts about the entire schema, for rules that need more than one declaration.

    `names_by_declaration` holds the names of each kind of declaration, `indexed_by_interface` the
    columns in an `@index(…)` of the nodes that implement each interface.
    """

    names: dict[type[Declaration], set[str]]
    indexed: dict[str, set[str]]


@record
class Remark:
    """A problem that a rule reports; `owner_property` is the property it concerns, if any."""

    code: str
    span: Span
    message: str
    hint: str | None = None
    at: Property | None = None


Rule = Callable[[Declaration, Whole], Iterator[Remark]]


def lint(parsed: ParsedSchema, severities: Mapping[str, Level]) -> tuple[Diagnostic, ...]:
    """Return the findings of every parsed declaration not silenced by `@allow`, by position."""
    _check_codes(severities)
    whole = _look_around(parsed.declarations)
    levels: dict[str, Level] = {code: entry.severity for code, entry in CODES.items()}
    levels |= severities
    found = []
    for declaration in parsed.declarations:
        for rule in RULES:
            for one in rule(declaration, whole):
                level = levels[one.code]
                if level != "off" and one.code not in _allowed(declaration, one.at):
                    found.append(_diagnostic(parsed.source, one, level))
    return tuple(sorted(found, key=lambda d: (d.start, d.end, d.code or "")))


def _check_codes(severities: Mapping[str, Level]) -> None:
    for code in severities:
        if code not in CODES:
            hint = did_you_mean(code, CODES)
            raise UsageError(reason=f"unknown finding code `{code}`", hint=hint)


def _diagnostic(source: Source, one: Remark, level: Severity) -> Diagnostic:
    return Diagnostic.at(
        source,
        one.span,
        one.message,
        code=one.code,
        kind="lint",
        severity=level,
        hint=one.hint,
    )


def _allowed(declaration: Declaration, at: Property | None) -> set[str]:
    notes = declaration.annotations + (at.annotations if at is not None else ())
    return {n.arguments[0].text for n in notes if n.name.text == "allow" and n.arguments}


def type_names(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Type names are in PascalCase: queries lower-case only the first letter."""
    name = declaration.name
    if not _PASCAL.fullmatch(name.text):
        better = "".join(part[:1].upper() + part[1:] for part in name.text.split("_"))
        message = f"the type name `{name.text}` is not in PascalCase"
        yield Remark("OG-NM-101", name.span, message, f"`{better}`?")


def property_names(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Property names are in snake_case."""
    for one in _properties(declaration):
        if not _SNAKE.fullmatch(one.name.text):
            better = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", one.name.text).lower()
            message = f"the property name `{one.name.text}` is not in snake_case"
            yield Remark("OG-NM-102", one.name.span, message, f"`{better}`?", one)


def annotations(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Report unknown annotations and constraint annotations that have no effect here."""
    for note, at in _annotations(declaration):
        name = note.name.text
        if name in _BARE and not (name == "default" and note.arguments):
            message = f"`@{name}` has no effect here"
            yield Remark("OG-NM-104", note.span, message, _BARE[name], at)
        elif name not in KNOWN and name not in _BARE:
            close = did_you_mean(f"@{name}", (f"@{known}" for known in (*KNOWN, *_BARE)))
            message = f"unknown annotation `@{name}`: it is stored, but has no effect"
            yield Remark("OG-NM-103", note.span, message, close, at)


def rename_hints(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Report a rename hint whose old name is still in use: it renames nothing."""
    same = whole.names[type(declaration)]
    siblings = {p.name.text for p in _properties(declaration)}
    for note, at in _annotations(declaration):
        if note.name.text == "rename_from" and note.arguments:
            old = note.arguments[0].text
            if old in (same if at is None else siblings):
                message = f"`@rename_from`: `{old}` is still declared, so nothing is renamed"
                hint = "remove the hint once every graph has the new name"
                yield Remark("OG-NM-105", note.span, message, hint, at)


def allowed_codes(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Report `@allow` with a code that does not exist."""
    for note, at in _annotations(declaration):
        code = note.arguments[0] if note.name.text == "allow" and note.arguments else None
        if code is not None and code.text not in CODES:
            message = f"`@allow`: unknown finding code `{code.text}`"
            yield Remark("OG-NM-106", code.span, message, did_you_mean(code.text, CODES), at)


def vectors(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Report a vector that is neither computed nor indexed: it is probably unfinished."""
    indexed = _indexed(declaration)
    if isinstance(declaration, InterfaceDeclaration):
        indexed = whole.indexed[declaration.name.text]
    for one in _properties(declaration):
        marks = {note.name.text for note in one.annotations}
        if one.type.is_vector and not marks & {"index", "embed"} and one.name.text not in indexed:
            message = f"the vector `{one.name.text}` has neither `@index` nor `@embed`"
            hint = "without an index, a search reads every vector; add `@index`"
            yield Remark("OG-VE-201", one.name.span, message, hint, one)


def self_loops(declaration: Declaration, whole: Whole) -> Iterator[Remark]:
    """Report an edge type whose endpoints have the same type: a node may point at itself."""
    if not isinstance(declaration, EdgeDeclaration) or declaration.cardinality is not None:
        return
    if declaration.source.text == declaration.target.text:
        message = f"edge `{declaration.name.text}` may connect a node to itself"
        hint = "`@card(0..n)` limits the edges of a node"
        yield Remark("OG-ED-201", declaration.name.span, message, hint)


RULES: tuple[Rule, ...] = (
    type_names,
    property_names,
    annotations,
    rename_hints,
    allowed_codes,
    vectors,
    self_loops,
)


def _properties(declaration: Declaration) -> list[Property]:
    if isinstance(declaration, InterfaceDeclaration):
        return list(declaration.properties)
    return [m for m in declaration.members if isinstance(m, Property)]


def _annotations(declaration: Declaration) -> Iterator[tuple[Annotation, Property | None]]:
    yield from ((note, None) for note in declaration.annotations)
    for one in _properties(declaration):
        yield from ((note, one) for note in one.annotations)


def _look_around(declarations: tuple[Declaration, ...]) -> Whole:
    whole = Whole(defaultdict(set), defaultdict(set))
    for one in declarations:
        whole.names[type(one)].add(one.name.text)
        if isinstance(one, NodeDeclaration):
            for interface in one.implements:
                whole.indexed[interface.text] |= _indexed(one)
    return whole


def _indexed(declaration: Declaration) -> set[str]:
    """Return the columns of the `@index(…)` constraints in the body."""
    if isinstance(declaration, InterfaceDeclaration):
        return set()
    return {
        argument.text
        for member in declaration.members
        if isinstance(member, Constraint) and member.kind == "index"
        for argument in member.arguments
        if isinstance(argument, model.Literal)
    }
