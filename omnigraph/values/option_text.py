"""Validate short strings that callers pass as options: commit messages, actors and idempotency keys.

These strings are stored in commits and tags, so a value that is not text must be rejected before anything is written.
This module does no I/O.
"""

from omnigraph.errors import InputError
from omnigraph.values.describe_value import describe

MAX_OPTION_CHARACTERS = 4096


def check_option_text(value: object, option_name: str) -> None:
    """Raise `InputError` unless a value is None or a string of at most 4,096 characters.

    >>> check_option_text(5, "message")
    Traceback (most recent call last):
    omnigraph.errors.input.InputError: message must be a string, got integer 5
    """
    if value is None:
        return
    if not isinstance(value, str):
        raise InputError(f"{option_name} must be a string, got {describe(value)}", reason="not a string")
    if len(value) > MAX_OPTION_CHARACTERS:
        raise InputError(f"{option_name} has more than {MAX_OPTION_CHARACTERS} characters", reason="too long")
