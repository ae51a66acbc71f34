"""Translates predicates of Python callers, such as `age > 30 and name starts_with 'A'`.

Owns the step from bare property names to those of a query variable, and the declared types of the
parameters. Values never become text: they stay parameters, and the query language checks the rest.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InputError, UsageError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.prepared import type_of
from omnigraph.values import PropertyType

_TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
      | (?P<variable>\$[a-z_][A-Za-z0-9_]*) | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>-?[0-9][0-9.eE+-]*) | (?P<sign><=|>=|!=|==|[<>=]) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"""\\.|\"""", re.DOTALL)
_INFIX = frozenset({"contains", "starts_with"})
_WORDS = _INFIX | {"and", "or", "not", "in", "is", "null", "true", "false"}
_SIGNS = frozenset({"=", "==", "!=", "<", "<=", ">", ">=", "in", *_INFIX})
_OURS = re.compile(r"[nep][0-9]+")

Token = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate in the query language, and the declared type of each of its parameters."""

    text: str
    types: Mapping[str, str]


def translate(
    text: str,
    properties: Mapping[str, PropertyType],
    given: Mapping[str, Any],
    *,
    prefix: str = "",
    owner: str = "this type",
) -> Predicate:
    """Return the predicate with `prefix` before each property name.

    >>> from omnigraph.values import ScalarType
    >>> age = PropertyType(ScalarType.I32)
    >>> predicate = translate("age > $min", {"age": age}, {"min": 3}, prefix="$n0.")
    >>> predicate.text, predicate.types
    ('$n0.age > $min', {'min': 'I32'})
    """
    if not isinstance(text, str):
        raise UsageError(
            reason=f"a predicate must be a string, not {type(text).__name__}",
            hint='such as "age > 30"; "id != \'\'" is true for every entity',
        )
    tokens = [(m.lastgroup or "other", m.group()) for m in _TOKEN.finditer(text)]
    solid = _lists(_infix([token for token in tokens if token[0] != "space"]))
    types = _parameter_types(solid, properties, given)
    words = [_word(solid, at, properties, prefix, owner) for at in range(len(solid))]
    return Predicate(_joined(words), types)


def _word(tokens: list[Token], at: int, properties: Iterable[str], prefix: str, owner: str) -> str:
    kind, text = tokens[at]
    called = at + 1 < len(tokens) and tokens[at + 1][1] == "("
    if kind == "text" and text[0] == "'":
        return f'"{_ESCAPE.sub(_requoted, text[1:-1])}"'
    if kind == "sign":
        return "=" if text == "==" else text
    if kind != "word" or text in _WORDS or called:
        return text
    if text in properties:
        return prefix + text
    raise InputError(
        f"{owner} has no property '{text}'",
        reason="unknown property",
        hint=did_you_mean(text, properties, "quote a text, and pass a value as a parameter"),
    )


def _requoted(found: "re.Match[str]") -> str:
    """Convert one escape of a single-quoted text to its form in double quotes."""
    return {"\\'": "'", '"': '\\"'}.get(found.group(), found.group())


def _joined(words: list[str]) -> str:
    """Join the words with single spaces, without spaces inside brackets and calls."""
    text = ""
    for word in words:
        call = word == "(" and text[-1:].isalnum() and _last(text) not in _WORDS
        tight = not text or text[-1] in "([" or word in ")]," or call
        text += word if tight else f" {word}"
    return text


def _last(text: str) -> str:
    return re.split(r"[ (\[]", text)[-1]


def _infix(tokens: list[Token]) -> list[Token]:
    """Rewrite `starts_with(name, 'A')` as `name starts_with 'A'`; keep everything else."""
    for at, (kind, text) in enumerate(tokens[:-1]):
        if kind == "word" and text in _INFIX and tokens[at + 1][1] == "(" and _begins(tokens, at):
            comma, end = _arguments(tokens, at + 1)
            if comma and end:
                first, second = tokens[at + 2 : comma], tokens[comma + 1 : end]
                turned = [*first, (kind, text), *second]
                return [*tokens[:at], *turned, *_infix(tokens[end + 1 :])]
    return tokens


def _lists(tokens: list[Token]) -> list[Token]:
    """Rewrite `age in (1, 2)` as `age in [1, 2]`; keep everything else."""
    found = list(tokens)
    for at in range(len(found) - 1):
        if found[at] == ("word", "in") and found[at + 1][1] == "(":
            _, end = _arguments(found, at + 1)
            if end:
                found[at + 1], found[end] = ("other", "["), ("other", "]")
    return found


def _begins(tokens: list[Token], at: int) -> bool:
    """Return whether a condition begins here: first, after a bracket or after a connective."""
    return at == 0 or tokens[at - 1][1] in ("(", "and", "or", "not")


def _arguments(tokens: list[Token], start: int) -> tuple[int, int]:
    """Return the positions of the comma between two arguments and of the closing bracket."""
    depth, comma = 0, 0
    for at in range(start, len(tokens)):
        text = tokens[at][1]
        depth += (text in "([") - (text in ")]")
        if depth == 0:
            return comma, at
        if text == "," and depth == 1:
            comma = at
    return 0, 0


def _parameter_types(
    tokens: list[Token], properties: Mapping[str, PropertyType], given: Mapping[str, Any]
) -> dict[str, str]:
    used = {text[1:]: at for at, (kind, text) in enumerate(tokens) if kind == "variable"}
    for name in given:
        if name not in used:
            raise InputError(f"${name} does not occur in the predicate", reason="unused parameter")
        if _OURS.fullmatch(name):
            message = f"a parameter cannot be called ${name} here: the name is reserved"
            raise InputError(message, reason="reserved name")
    for name in used:
        if name not in given:
            raise InputError(f"${name} has no value", reason="missing parameter")
    return {name: _declared(tokens, at, properties, given[name]) for name, at in used.items()}


def _declared(
    tokens: list[Token], at: int, properties: Mapping[str, PropertyType], value: Any
) -> str:
    """Return the type of the property that a parameter is compared with, or of its value."""
    sign, other = "", ""
    if at >= 2 and tokens[at - 1][1] in _SIGNS:
        sign, other = tokens[at - 1][1], tokens[at - 2][1]
    elif at + 2 < len(tokens) and tokens[at + 1][1] in _SIGNS:
        sign, other = tokens[at + 1][1], tokens[at + 2][1]
    kind = properties.get(other)
    if kind is None:
        return type_of(value)
    if sign == "in":
        return declared(PropertyType(kind.scalar, is_list=True), value)
    return declared(kind.element() if sign == "contains" else kind, value)


def declared(kind: PropertyType, value: Any = 0) -> str:
    """Return the declaration of a parameter: enums as strings, `?` only for None."""
    plain = PropertyType(
        kind.scalar, value is None, is_list=kind.is_list, vector_dim=kind.vector_dim
    )
    return plain.display()
