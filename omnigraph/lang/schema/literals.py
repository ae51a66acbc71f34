r"""Decode quoted strings and parse numbers in a schema file.

Strings may contain five escapes (`\"`, `\\`, `\n`, `\r`, `\t`), and numbers are parsed exactly. This module does not
take property types into account.
"""

import math
import re
from typing import Any

from omnigraph.errors.diagnostics import Span

from .model import Literal, LiteralKind

_ESCAPE_MEANINGS = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE_PATTERN = re.compile(r"\\(.)", re.DOTALL)
_MAX_INTEGER_DIGITS = 40  # more digits than any integer type has, but fewer than Python's limit for int()


def decode_string(quoted: str) -> str:
    r"""Return the content of a quoted string. Unknown escapes are kept unchanged.

    >>> decode_string(r'"a\tb"')
    'a\tb'
    """
    body = quoted[1:-1]
    return (
        _ESCAPE_PATTERN.sub(lambda escape_match: _ESCAPE_MEANINGS.get(escape_match[1], escape_match[0]), body)
        if "\\" in body
        else body
    )


def find_unknown_escapes(quoted: str) -> list[tuple[int, str]]:
    r"""Return the unknown escapes and their offsets in the quoted text.

    >>> find_unknown_escapes(r'"a\qb"')
    [(2, '\\q')]
    """
    return [
        (escape_match.start(), escape_match[0])
        for escape_match in _ESCAPE_PATTERN.finditer(quoted, 1)
        if escape_match[1] not in _ESCAPE_MEANINGS
    ]


def quoted_offset(quoted: str, decoded_index: int) -> int:
    r"""Convert the index of a character in the decoded string to its offset in the quoted text.

    >>> quoted_offset(r'"\\d{2"', 2)
    4
    """
    offset = 1
    for _ in range(decoded_index):
        offset += 2 if quoted[offset] == "\\" and quoted[offset + 1] in _ESCAPE_MEANINGS else 1
    return offset


def parse_integer(literal: Literal) -> int | None:
    """Return the integer value of a literal, or None if it is not an integer or has too many digits.

    >>> parse_integer(Literal("int", "-7"))
    -7
    """
    if literal.kind != "int" or len(literal.text) > _MAX_INTEGER_DIGITS:
        return None
    return int(literal.text)


def parse_number(literal: Literal) -> int | float | None:
    """Return the numeric value of a literal (exact for integers), or None if it is not a finite number.

    >>> parse_number(Literal("float", "1e3"))
    1000.0
    """
    if literal.kind == "int":
        return parse_integer(literal)
    value = float(literal.text) if literal.kind == "float" else math.inf
    return value if math.isfinite(value) else None


def number_literal(token: Any, span: Span) -> Literal:
    """Return a number token as a literal."""
    kind: LiteralKind = "int" if token.lstrip("-").isdigit() else "float"
    return Literal(kind, str(token), span)


def word_literal_kind(bare_word: str) -> LiteralKind:
    """Return the kind of an unquoted literal: a boolean, a finding code such as `OG-NM-101`, or any other word."""
    if bare_word in ("true", "false"):
        return "bool"
    return "code" if bare_word.startswith("OG-") else "word"
