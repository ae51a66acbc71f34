"""Type-mismatch errors, and the JSON stand-ins for values that JSON cannot represent.

A client converts values such as dates to JSON only if they match the type of their property or parameter. Otherwise, it
sends a stand-in, so that the server rejects the value with the same error as an embedded graph. A stand-in never
matches any type, so it is never stored.
"""

from collections.abc import Mapping
from typing import Any

STAND_IN_MEMBER = "$mismatch"
_MAX_CHARACTERS = 200
_NAMES = ("expected", "actual", "hint")


class ConversionMismatch(Exception):  # noqa: N818 - never leaves this package
    """Raised if a value does not match its type. `expected` and `actual` describe the mismatch."""

    def __init__(self, expected: str, actual: str, hint: str | None = None) -> None:
        super().__init__(expected, actual)
        self.expected = expected
        self.actual = actual
        self.hint = hint


def write_stand_in(mismatch: ConversionMismatch) -> dict[str, Any]:
    """Return the JSON object to send instead of a value.

    >>> write_stand_in(ConversionMismatch("String", "bytes"))
    {'$mismatch': {'expected': 'String', 'actual': 'bytes', 'hint': None}}
    """
    return {STAND_IN_MEMBER: {name: getattr(mismatch, name) for name in _NAMES}}


def read_stand_in(value: object) -> ConversionMismatch | None:
    """Return the mismatch that a stand-in describes, or None for any other value.

    >>> read_stand_in({"$mismatch": {"expected": "String", "actual": "bytes", "hint": None}}).actual
    'bytes'
    """
    if not isinstance(value, Mapping) or len(value) != 1 or not isinstance(value.get(STAND_IN_MEMBER), Mapping):
        return None
    texts = [value[STAND_IN_MEMBER].get(name) for name in _NAMES]
    expected, actual, hint = [_clean_text(text) if isinstance(text, str) else None for text in texts]
    return None if expected is None or actual is None else ConversionMismatch(expected, actual, hint)


def _clean_text(text: str) -> str:
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text[:_MAX_CHARACTERS]
    )
