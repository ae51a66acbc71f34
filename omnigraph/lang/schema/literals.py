r"""Literals of a schema file: decoding of quoted strings and reading of numbers.

Owns the five escapes (`\"`, `\\`, `\n`, `\r`, `\t`) and exact number parsing. Knows no types.
"""

import math
import re

from .model import Literal

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LONGEST_INTEGER = 40  # exceeds every integer type, but stays below Python's limit for int()


def decode(quoted: str) -> str:
    r"""Return the content of a quoted string; an unknown escape is kept unchanged.

    >>> decode(r'"a\tb"')
    'a\tb'
    """
    body = quoted[1:-1]
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), body) if "\\" in body else body


def unknown_escapes(quoted: str) -> list[tuple[int, str]]:
    r"""Return the escapes without a meaning, with their offsets in the quoted text.

    >>> unknown_escapes(r'"a\qb"')
    [(2, '\\q')]
    """
    return [(m.start(), m[0]) for m in _ESCAPE.finditer(quoted, 1) if m[1] not in _ESCAPES]


def offset_in(quoted: str, index: int) -> int:
    r"""Return the offset in the quoted text of a character of the decoded string.

    >>> offset_in(r'"\\d{2"', 2)
    4
    """
    at = 1
    for _ in range(index):
        at += 2 if quoted[at] == "\\" and quoted[at + 1] in _ESCAPES else 1
    return at


def integer(literal: Literal) -> int | None:
    """Return the integer value of a literal, or None if it is no integer or far too long.

    >>> integer(Literal("int", "-7"))
    -7
    """
    if literal.kind != "int" or len(literal.text) > _LONGEST_INTEGER:
        return None
    return int(literal.text)


def number(literal: Literal) -> int | float | None:
    """Return the number of a literal, exact for integers; None if it is no finite number.

    >>> number(Literal("float", "1e3"))
    1000.0
    """
    if literal.kind == "int":
        return integer(literal)
    value = float(literal.text) if literal.kind == "float" else math.inf
    return value if math.isfinite(value) else None
