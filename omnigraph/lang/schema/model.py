"""The syntax tree of a `.pg` file.

The parser builds these nodes, and the formatter prints them. Nothing is resolved or checked: interfaces are not
expanded, and names may be undefined (see `catalog` for the checked form). Equality ignores spans, so two files with the
same meaning have equal trees. A declaration's `body` is the span from `{` to `}`.
"""

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

ConstraintKind = OneOf["key", "unique", "index", "range", "check"]
LiteralKind = OneOf["string", "int", "float", "bool", "word", "code"]


@record
class Name:
    """An identifier or type name with its position."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Literal:
    """A literal argument. `text` is the decoded string, or the number as written."""

    kind: LiteralKind
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Option:
    """A keyword argument: `model="demo/e1"`."""

    name: Name
    value: Literal


@record
class Annotation:
    """An annotation such as `@name`, `@name(argument, ...)` or `@name(argument, key=value)`."""

    name: Name
    arguments: tuple[Literal, ...] = ()
    options: tuple[Option, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Property:
    """A property declaration such as `title: String? @index`.

    `type_rejected` is true if an error in the type has already been reported. `type` is then a placeholder.
    """

    name: Name
    type: PropertyType
    annotations: tuple[Annotation, ...] = ()
    type_span: Span = field(default=NO_SPAN, compare=False)
    span: Span = field(default=NO_SPAN, compare=False)
    type_rejected: bool = field(default=False, compare=False)


@record
class Bounds:
    """The bounds in a `@range`, such as `0..9`, `0..` or `..9`."""

    low: Literal | None
    high: Literal | None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Constraint:
    """A body constraint such as `@key(a, b)`, `@range(year, 1600..)` or `@index(a, kind="btree")`."""

    kind: ConstraintKind
    arguments: tuple[Literal | Bounds, ...]
    options: tuple[Option, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Cardinality:
    """The limits on the number of edges per source node, `@card(low..high)`. If `high` is None, there is no maximum."""

    low: int
    high: int | None
    span: Span = field(default=NO_SPAN, compare=False)


DeclarationMember = Property | Constraint


@record
class InterfaceDeclaration:
    """A declaration such as `interface Titled { title: String }`. Its only allowed annotation is `@allow`."""

    name: Name
    properties: tuple[Property, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)
    body: Span | None = field(default=None, compare=False)


@record
class NodeDeclaration:
    """A declaration such as `node Paper @description("..") implements Titled { ... }`."""

    name: Name
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[Name, ...] = ()
    members: tuple[DeclarationMember, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)
    body: Span | None = field(default=None, compare=False)


@record
class EdgeDeclaration:
    """A declaration such as `edge Cites: Paper -> Paper @card(0..9) { ... }`."""

    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None = None
    annotations: tuple[Annotation, ...] = ()
    members: tuple[DeclarationMember, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)
    body: Span | None = field(default=None, compare=False)


Declaration = InterfaceDeclaration | NodeDeclaration | EdgeDeclaration


@record
class SchemaFile:
    """All declarations in a `.pg` file, in source order."""

    declarations: tuple[Declaration, ...] = ()
