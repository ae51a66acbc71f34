"""Rule actions for expressions and literals.

This module decodes strings and numbers, but does not check types, so it leaves date strings unparsed.
"""

import math
from typing import Any

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.schema import literals

from .build import Builder, RuleAction, is_token
from .model import Aggregate, Alias, AllRows, Call, Expression, Field, ListLiteral, Literal, Now

_I64_MAX_DIGITS = 19
_I64_MAX = 2**63 - 1


def as_expression(builder: Builder, child: Any) -> Expression:
    """Return the child if it is already a node. If it is a token, convert it to a variable."""
    built_expression: Expression = builder.make_variable(child) if is_token(child) else child
    return built_expression


def decode_string(builder: Builder, token: Any) -> str:
    """Return the content of a quoted string, and report any unknown escapes."""
    token_start = builder.token_span(token).start
    for escape_offset, escape in literals.find_unknown_escapes(str(token)):
        message = f"unknown escape `{escape}` in a string"
        hint = r"the supported escapes are \" \\ \n \r \t; write a literal backslash as \\"
        builder.report_problem(
            Span(token_start + escape_offset, token_start + escape_offset + len(escape)), message, hint
        )
    return literals.decode_string(str(token))


def parse_integer(builder: Builder, token: Any) -> int:
    """Parse an integer, and report a value that does not fit in 64 bits."""
    number_text = str(token)
    digits = number_text.lstrip("-0") or "0"
    parsed_number = int(digits) if len(digits) <= _I64_MAX_DIGITS else _I64_MAX + 2
    parsed_number = -parsed_number if number_text.startswith("-") else parsed_number
    if -_I64_MAX - 1 <= parsed_number <= _I64_MAX:
        return parsed_number
    builder.report_problem(
        builder.token_span(token), f"the number `{_shorten_number(number_text)}` does not fit in 64 bits"
    )
    return 0


def literal(builder: Builder, rule_span: Span, children: list[Any]) -> Literal:
    """Build a literal from a string, number or boolean token."""
    token = children[0]
    literal_text = str(token)
    if token.type == "STRING":
        return Literal("string", decode_string(builder, token), rule_span)
    if token.type == "BOOL":
        return Literal("bool", literal_text, rule_span)
    if token.type == "FLOAT" or not literal_text.lstrip("-").isdecimal():
        if not math.isfinite(float(literal_text)):
            builder.report_problem(rule_span, f"the number `{_shorten_number(literal_text)}` is too large for F64")
        return Literal("float", literal_text, rule_span)
    parse_integer(builder, token)
    return Literal("int", literal_text, rule_span)


def _shorten_number(number_text: str) -> str:
    return number_text if len(number_text) <= 40 else f"{number_text[:20]}…{number_text[-10:]}"


def null(builder: Builder, rule_span: Span, children: list[Any]) -> Literal:
    """Build the null literal."""
    return Literal("null", "null", rule_span)


def date(builder: Builder, rule_span: Span, children: list[Any]) -> Literal:
    """Build a `date("..")` or `datetime("..")` literal. The string is parsed later, when the literal is checked."""
    literal_kind = "date" if children[0] == "date" else "datetime"
    return Literal(literal_kind, decode_string(builder, children[1]), rule_span)  # type: ignore[arg-type]


def list_literal(builder: Builder, rule_span: Span, children: list[Any]) -> ListLiteral:
    """Build a list literal."""
    return ListLiteral(tuple(children), rule_span)


def field(builder: Builder, rule_span: Span, children: list[Any]) -> Field:
    """Build a property access, such as `$x.title`."""
    return Field(str(children[0])[1:], str(children[1]), rule_span)


def now(builder: Builder, rule_span: Span, children: list[Any]) -> Now:
    """Build a call to `now()`."""
    return Now(rule_span)


def alias(builder: Builder, rule_span: Span, children: list[Any]) -> Alias:
    """Build a node for a bare word."""
    return Alias(str(children[0]), rule_span)


def call(builder: Builder, rule_span: Span, children: list[Any]) -> Call:
    """Build a call to a search or ranking function."""
    call_arguments = tuple(as_expression(builder, child) for child in children[1:] if child is not None)
    return Call(str(children[0]), call_arguments, rule_span)  # type: ignore[arg-type]


def aggregate(builder: Builder, rule_span: Span, children: list[Any]) -> Aggregate:
    """Build an aggregate, such as `count($x)` or `count(distinct $x)`."""
    is_distinct = children[1] is not None
    return Aggregate(str(children[0]), as_expression(builder, children[2]), is_distinct, rule_span)  # type: ignore[arg-type]


def aggregate_of_alias(builder: Builder, rule_span: Span, children: list[Any]) -> Aggregate:
    """Build `count(distinct)`, where `distinct` is the name of a column."""
    argument = Alias(str(children[1]), builder.token_span(children[1]))
    return Aggregate(str(children[0]), argument, False, rule_span)  # type: ignore[arg-type]


def aggregate_of_rows(builder: Builder, rule_span: Span, children: list[Any]) -> Aggregate:
    """Build the aggregate `count(*)`."""
    function = str(children[0])
    if function != "count":
        builder.report_problem(rule_span, f"`{function}(*)` is not supported", "only `count` accepts `*`")
    return Aggregate(function, AllRows(rule_span), False, rule_span)  # type: ignore[arg-type]


RULES: dict[str, RuleAction] = {
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
    "aggregate_of_rows": aggregate_of_rows,
}
