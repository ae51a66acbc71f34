"""Describe a value for an error message by its JSON kind and a short excerpt.

Secrets in URIs are removed from the excerpt.
"""

from datetime import datetime
from typing import Any

from omnigraph.errors import redact_text

from .mismatch import read_stand_in

_MAX_SHOWN_CHARACTERS = 40


def describe(value: Any) -> str:
    """Return the kind of a value, followed by a number, an excerpt of a string, or the length of an array.

    >>> describe("soon"), describe(None), describe([1, 2]), describe(2**200)
    ("string 'soon'", 'null', 'array of length 2', '201-bit integer')
    """
    match value:
        case None:
            return "null"
        case int() | float():
            return _describe_number(value)
        case str():
            return f"string '{_truncate_text(value)}'"
        case list() | tuple():
            return f"array of length {len(value)}"
        case datetime():
            return f"datetime {value.isoformat()}"
    return _describe_object(value) if isinstance(value, dict) else type(value).__name__


def _describe_object(value: dict[Any, Any]) -> str:
    mismatch = read_stand_in(value)
    return "object" if mismatch is None else mismatch.actual


def _describe_number(number: int | float) -> str:
    if isinstance(number, bool):
        return str(number).lower()
    if isinstance(number, float):
        return f"number {float(number)!r}"
    # Python raises an error when formatting an integer with thousands of digits.
    bits = number.bit_length()
    return f"integer {int(number)}" if bits <= 128 else f"{bits}-bit integer"


def _truncate_text(text: str) -> str:
    redacted_text = redact_text(text[:1000])
    shortened_text = (
        redacted_text if len(redacted_text) <= _MAX_SHOWN_CHARACTERS else redacted_text[:_MAX_SHOWN_CHARACTERS] + "…"
    )
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shortened_text
    )
