"""Describe a value in an error message: its JSON kind and a short excerpt.

Never shows secrets in URIs, and never more than a few characters.
"""

from typing import Any

from omnigraph.errors import redact_text

_GLIMPSE = 40


def describe(value: Any) -> str:
    """Return the JSON kind of a value, with the value itself where it is short.

    >>> describe("soon"), describe(None), describe([1, 2]), describe(2**200)
    ("string 'soon'", 'null', 'array of 2', 'integer of 201 bits')
    """
    match value:
        case None:
            return "null"
        case int() | float():
            return _number(value)
        case str():
            return f"string '{_glimpse(value)}'"
        case list() | tuple():
            return f"array of {len(value)}"
    return "object" if isinstance(value, dict) else type(value).__name__


def _number(value: int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"number {float(value)!r}"
    # Python refuses to format integers with thousands of digits.
    bits = value.bit_length()
    return f"integer {int(value)}" if bits <= 128 else f"integer of {bits} bits"


def _glimpse(text: str) -> str:
    safe = redact_text(text[:1000])
    short = safe if len(safe) <= _GLIMPSE else safe[:_GLIMPSE] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in short)
