"""Rule actions for whole queries: header, parameters, parts of a read, statements of a mutation."""

from typing import Any

from omnigraph.diagnostics import Span
from omnigraph.values import PropertyType, ScalarType

from .build import Builder, Make
from .build_clauses import RULES as CLAUSES
from .build_expressions import expression, integer, text_of
from .model import (
    Assignment,
    Call,
    Delete,
    Insert,
    Literal,
    Ordering,
    Parameter,
    Projection,
    Query,
    ReadBody,
    Update,
    Variable,
    WriteBody,
)


def declaration(b: Builder, at: Span, kids: list[Any]) -> Query:
    """One query."""
    name, parameters, *notes, body = kids
    said: dict[str, str] = {}
    for word, span, text in notes:
        if word in said:
            b.report(span, f"duplicate `@{word}`", f"a query has at most one `@{word}`")
        said.setdefault(word, text)
    texts = said.get("description"), said.get("instruction")
    return Query(b.name(name), parameters, body, *texts, at)


def parameters(b: Builder, at: Span, kids: list[Any]) -> tuple[Parameter, ...]:
    """The parameter list of a query."""
    return tuple(kids)


def parameter(b: Builder, at: Span, kids: list[Any]) -> Parameter:
    """`$n: I32? = 10`."""
    variable, kind, _, default = kids
    return Parameter(str(variable)[1:], kind, default, at)


def scalar_type(b: Builder, at: Span, kids: list[Any]) -> PropertyType:
    """`I32?`."""
    return PropertyType(ScalarType(str(kids[0])), nullable=kids[1] is not None)


def list_type(b: Builder, at: Span, kids: list[Any]) -> PropertyType:
    """`[I32]?`."""
    return PropertyType(ScalarType(str(kids[0])), nullable=kids[1] is not None, is_list=True)


def vector_type(b: Builder, at: Span, kids: list[Any]) -> PropertyType:
    """`Vector(3)?`."""
    length = integer(b, kids[0])
    return PropertyType(ScalarType.VECTOR, nullable=kids[1] is not None, vector_dim=length)


def note(b: Builder, at: Span, kids: list[Any]) -> tuple[str, Span, str]:
    """`@description("..")`."""
    return str(kids[0])[1:], b.span(kids[0]), text_of(b, kids[1])


def read(b: Builder, at: Span, kids: list[Any]) -> ReadBody:
    """match, return, order, limit, offset."""
    clauses, (distinct, projections), orderings, limit, offset = kids
    return ReadBody(clauses, projections, orderings or (), limit, offset, distinct, at)


def sequence(b: Builder, at: Span, kids: list[Any]) -> tuple[Any, ...]:
    """The items of a part, as a tuple."""
    return tuple(kids)


def return_part(b: Builder, at: Span, kids: list[Any]) -> tuple[bool, tuple[Projection, ...]]:
    """`return distinct { .. }`."""
    return kids[0] is not None, tuple(kids[1:])


def amount(b: Builder, at: Span, kids: list[Any]) -> Literal | Variable:
    """The number of `limit` and `offset`."""
    token = kids[0]
    if token.type == "VAR":
        return b.variable(token)
    integer(b, token)
    return Literal("int", str(token), b.span(token))


def projection(b: Builder, at: Span, kids: list[Any]) -> Projection:
    """`count($x) as n`; the span excludes a comma."""
    value, _, alias = kids
    made = expression(b, value)
    end = b.span(alias) if alias is not None else made.span
    return Projection(made, None if alias is None else b.name(alias), made.span.to(end))


def ordering(b: Builder, at: Span, kids: list[Any]) -> Ordering:
    """`$x.p desc`."""
    value, direction = kids
    made = expression(b, value)
    if direction is not None and isinstance(made, Call) and made.function == "nearest":
        message = f"`nearest(..)` takes no `{direction}`"
        b.report(b.span(direction), message, "the nearest rows always come first")
    way = None if direction is None else str(direction)
    return Ordering(made, way, at)  # type: ignore[arg-type]


def write(b: Builder, at: Span, kids: list[Any]) -> WriteBody:
    """The statements of a mutation."""
    return WriteBody(tuple(kids), at)


def insert(b: Builder, at: Span, kids: list[Any]) -> Insert:
    """`insert Person { .. }`."""
    return Insert(b.name(kids[1]), tuple(kids[2:]), at)


def update(b: Builder, at: Span, kids: list[Any]) -> Update:
    """`update Person set { .. } where ..`."""
    return Update(b.name(kids[1]), tuple(kids[2:-1]), kids[-1], at)


def delete(b: Builder, at: Span, kids: list[Any]) -> Delete:
    """`delete Person where ..`."""
    return Delete(b.name(kids[1]), kids[2], at)


def assignment(b: Builder, at: Span, kids: list[Any]) -> Assignment:
    """`age: 3`; the span excludes a comma."""
    name, value = b.name(kids[0]), expression(b, kids[1])
    return Assignment(name, value, name.span.to(value.span))


RULES: dict[str, Make] = CLAUSES | {
    "declaration": declaration,
    "parameters": parameters,
    "parameter": parameter,
    "scalar_type": scalar_type,
    "list_type": list_type,
    "vector_type": vector_type,
    "note": note,
    "read": read,
    "match_part": sequence,
    "return_part": return_part,
    "order_part": sequence,
    "limit_part": amount,
    "offset_part": amount,
    "projection": projection,
    "ordering": ordering,
    "write": write,
    "insert": insert,
    "update": update,
    "delete": delete,
    "assignment": assignment,
}
