"""Rule actions for expressions and literals.

Owns the decoding of strings and numbers. It does not check types: date texts stay unparsed.
"""

import math
from typing import Any

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import literals

from .build import Builder, Make, is_token
from .model import Aggregate, Alias, Call, Expression, Field, ListLiteral, Literal, Now

_I64_DIGITS = 19
_I64_MAX = 2**63 - 1


def expression(b: Builder, kid: Any) -> Expression:
    """Return the child if it is a finished node, or the variable of a token."""
    made: Expression = b.variable(kid) if is_token(kid) else kid
    return made


def text_of(b: Builder, token: Any) -> str:
    """Return the content of a quoted string; report unknown escapes."""
    place = b.span(token).start
    for at, escape in literals.unknown_escapes(str(token)):
        message = f"unknown escape `{escape}` in a string"
        hint = r"the escapes are \" \\ \n \r \t; a backslash itself is written \\"
        b.report(Span(place + at, place + at + len(escape)), message, hint)
    return literals.decode(str(token))


def integer(b: Builder, token: Any) -> int:
    """Return an integer; report one that exceeds 64 bits."""
    text = str(token)
    digits = text.lstrip("-0") or "0"
    value = int(digits) if len(digits) <= _I64_DIGITS else _I64_MAX + 2
    value = -value if text.startswith("-") else value
    if -_I64_MAX - 1 <= value <= _I64_MAX:
        return value
    b.report(b.span(token), f"the number `{_short(text)}` does not fit in 64 bits")
    return 0


def literal(b: Builder, at: Span, kids: list[Any]) -> Literal:
    """A string, number or boolean."""
    token = kids[0]
    text = str(token)
    if token.type == "STRING":
        return Literal("string", text_of(b, token), at)
    if token.type == "BOOL":
        return Literal("bool", text, at)
    if token.type == "FLOAT":
        if not math.isfinite(float(text)):
            b.report(at, f"the number `{_short(text)}` is too large for F64")
        return Literal("float", text, at)
    integer(b, token)
    return Literal("int", text, at)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:20]}…{text[-10:]}"


def null(b: Builder, at: Span, kids: list[Any]) -> Literal:
    """The null literal."""
    return Literal("null", "null", at)


def date(b: Builder, at: Span, kids: list[Any]) -> Literal:
    """`date("..")` and `datetime("..")`; the text is parsed when its type is checked."""
    kind = "date" if kids[0] == "date" else "datetime"
    return Literal(kind, text_of(b, kids[1]), at)  # type: ignore[arg-type]


def list_literal(b: Builder, at: Span, kids: list[Any]) -> ListLiteral:
    """A flat list."""
    return ListLiteral(tuple(kids), at)


def field(b: Builder, at: Span, kids: list[Any]) -> Field:
    """`$x.title`."""
    return Field(str(kids[0])[1:], str(kids[1]), at)


def now(b: Builder, at: Span, kids: list[Any]) -> Now:
    """`now()`."""
    return Now(at)


def alias(b: Builder, at: Span, kids: list[Any]) -> Alias:
    """A bare word."""
    return Alias(str(kids[0]), at)


def call(b: Builder, at: Span, kids: list[Any]) -> Call:
    """A search or ranking function."""
    given = tuple(expression(b, kid) for kid in kids[1:] if kid is not None)
    return Call(str(kids[0]), given, at)  # type: ignore[arg-type]


def aggregate(b: Builder, at: Span, kids: list[Any]) -> Aggregate:
    """`count($x)`, `count(distinct $x)`."""
    distinct = kids[1] is not None
    return Aggregate(str(kids[0]), expression(b, kids[2]), distinct, at)  # type: ignore[arg-type]


def aggregate_of_alias(b: Builder, at: Span, kids: list[Any]) -> Aggregate:
    """`count(distinct)`, where `distinct` is the name of a column."""
    argument = Alias(str(kids[1]), b.span(kids[1]))
    return Aggregate(str(kids[0]), argument, False, at)  # type: ignore[arg-type]


RULES: dict[str, Make] = {
    "literal": literal,
    "null": null,
    "date": date,
    "list": list_literal,
    "field": field,
    "now": now,
    "alias": alias,
    "call": call,
    "aggregate": aggregate,
    "aggregate_of_alias": aggregate_of_alias,
}
