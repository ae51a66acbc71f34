r"""Literals of a schema file: what a quoted string says, and what a number is.

Owns the five escapes (`\"`, `\\`, `\n`, `\r`, `\t`) and exact reading of numbers. Knows no types.
"""

import math
import re

from .model import Literal

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LONGEST_INTEGER = 40  # digits; more than any integer type holds, less than Python refuses to read


def decode(quoted: str) -> str:
    r"""What a quoted string says; an unknown escape is kept as it is.

    >>> decode(r'"a\tb"')
    'a\tb'
    """
    body = quoted[1:-1]
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), body) if "\\" in body else body


def unknown_escapes(quoted: str) -> list[tuple[int, str]]:
    r"""The escapes that mean nothing, with their offsets in the quoted text.

    >>> unknown_escapes(r'"a\qb"')
    [(2, '\\q')]
    """
    return [(m.start(), m[0]) for m in _ESCAPE.finditer(quoted, 1) if m[1] not in _ESCAPES]


def offset_in(quoted: str, index: int) -> int:
    r"""Where the character `index` of the decoded string stands in the quoted text.

    >>> offset_in(r'"\\d{2"', 2)
    4
    """
    at = 1
    for _ in range(index):
        at += 2 if quoted[at] == "\\" and quoted[at + 1] in _ESCAPES else 1
    return at


def integer(literal: Literal) -> int | None:
    """The integer a literal spells, or None; absurdly long ones are None too.

    >>> integer(Literal("int", "-7"))
    -7
    """
    if literal.kind != "int" or len(literal.text) > _LONGEST_INTEGER:
        return None
    return int(literal.text)


def number(literal: Literal) -> int | float | None:
    """The number a literal spells, exact for integers; None when it is none or is not finite.

    >>> number(Literal("float", "1e3"))
    1000.0
    """
    if literal.kind == "int":
        return integer(literal)
    value = float(literal.text) if literal.kind == "float" else math.inf
    return value if math.isfinite(value) else None
