"""Validate names for new branches, tags, streams and types.

The rules are the same for every store, so that a graph root can be moved between a local disk and S3. New names are
checked before anything is written. Existing names are never checked, so branches and tags can be read, listed, renamed
and deleted regardless of their names. This module does no I/O.
"""

import re
import unicodedata
from collections.abc import Iterable

from omnigraph.errors import InputError
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.describe_value import describe

# The maximum length of a stored name in bytes. File systems allow 255 bytes per path segment, so this limit leaves room
# for suffixes such as `.lance` or `.partial`, which exports and copying tools append.
MAX_NAME_BYTES = 200
ALLOWED_CHARACTERS = "use letters, digits, '.', '-', '_', and '/' between parts"
_MAX_SHOWN_CHARACTERS = 80  # maximum number of characters shown from a name in an error message
_ALLOWED_PATTERN = re.compile(r"[A-Za-z0-9._/-]+")
_RESERVED_PATTERNS = (
    (re.compile(r"\A(?i:head)\Z"), "'HEAD' is reserved"),
    (re.compile(r"\A(?i:main)\Z"), "'main' is reserved"),
    (re.compile(r"\A__"), "names that begin with '__' are reserved"),
    (re.compile(r"\A-"), "a name may not begin with '-'"),
    (re.compile(r"\.\."), "'..' is not allowed"),
    (re.compile(r"(?:\A|/)\.|\.(?:/|\Z)"), "no part of a name may begin or end with '.'"),
    (re.compile(r"\.lock(?:/|\Z)"), "no part of a name may end in '.lock'"),
    (re.compile(r"\A[0-9]{10}\.json\Z"), "names of this form are reserved for files in a graph"),
)


def quote_name(name: object) -> str:
    r"""Format a name for an error message: quoted, shortened, and with unprintable characters escaped.

    >>> print(quote_name("review/a"), quote_name("a\x07b"), quote_name(5))
    'review/a' 'a\x07b' integer 5
    """
    if not isinstance(name, str):
        return describe(name)
    length_note = f" ({len(name)} characters)" if len(name) > _MAX_SHOWN_CHARACTERS else ""
    return f"'{shorten_name(name)}'{length_note}"


def shorten_name(name: str) -> str:
    """Shorten and escape a name in the same way as `quote_name`, but without adding quotes."""
    visible_text = "".join(
        character if character.isprintable() else _escape_character(character)
        for character in name[:_MAX_SHOWN_CHARACTERS]
    )
    return visible_text if len(name) <= _MAX_SHOWN_CHARACTERS else f"{visible_text}…"


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def require_text(value: object, name_kind: str) -> str:
    """Return the value if it is a string. Otherwise, raise `InputError`.

    >>> require_text(b"x", "branch")
    Traceback (most recent call last):
    omnigraph.errors.input.InputError: a branch name must be a string, got bytes
    """
    if isinstance(value, str):
        return value
    message = f"a {name_kind} name must be a string, got {describe(value)}"
    raise InputError(message, reason="not a string")


def require_names(names: object, name_kind: str = "type") -> list[str]:
    """Return the names as a list. `names` may be a single string or several strings.

    >>> require_names("Person"), require_names(("Person", "City"))
    (['Person'], ['Person', 'City'])
    """
    if isinstance(names, str):
        return [names]
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        message = f"expected {name_kind} names, got {describe(names)}"
        raise InputError(message, reason="expected a string or a list of strings")
    return [require_text(name, name_kind) for name in names]


def strip_name(name: object, name_kind: str = "branch") -> str:
    """Return the name without surrounding whitespace. Raise `InputError` if nothing remains.

    >>> strip_name("  review/a ")
    'review/a'
    """
    stripped_name = require_text(name, name_kind).strip()
    if not stripped_name:
        raise InputError(f"a {name_kind} name must not be empty", reason=f"empty {name_kind} name")
    return stripped_name


def check_new_ref_name(name: object, name_kind: str = "branch") -> str:
    """Return the name if it is allowed for a new branch or tag. Otherwise, raise `InputError`.

    This function does not check whether the name is already in use.
    """
    ref_name = strip_name(name, name_kind)
    if ref_name == "main":
        raise InputError("'main' always exists and cannot be created", reason="reserved name")
    return _raise_on_fault(ref_name, name_kind, _find_character_fault(ref_name) or _find_ref_fault(ref_name))


def check_new_stream_name(name: object) -> str:
    """Return the name if it is allowed for a new stream. Otherwise, raise `InputError`.

    >>> check_new_stream_name("orders of 2026")
    'orders of 2026'
    """
    stream_name = require_text(name, "stream")
    strip_name(stream_name, "stream")
    return _raise_on_fault(stream_name, "stream", _find_stream_fault(stream_name))


def find_length_fault(stored_name: str) -> str | None:
    """Return an error message if a name is too long to store, or None if it is short enough.

    >>> find_length_fault("x" * 201)
    'it is 201 bytes long, but at most 200 bytes are allowed'
    """
    byte_count = len(stored_name.encode())
    return (
        f"it is {byte_count} bytes long, but at most {MAX_NAME_BYTES} bytes are allowed"
        if byte_count > MAX_NAME_BYTES
        else None
    )


def _raise_on_fault(checked_name: str, name_kind: str, fault: str | None) -> str:
    if fault is None:
        return checked_name
    message = f"{quote_name(checked_name)} cannot be used as a {name_kind} name: {fault}"
    raise InputError(message, reason=fault)


def _find_character_fault(ref_name: str) -> str | None:
    """Return an error message if a name has forbidden characters or is too long, or None otherwise.

    Only ASCII is allowed. Non-ASCII names can look alike, and a store could change such a name by normalizing its
    Unicode characters.
    """
    if _ALLOWED_PATTERN.fullmatch(ref_name) is None or "" in ref_name.split("/"):
        return ALLOWED_CHARACTERS
    fault = find_length_fault(ref_name.replace("/", "%2F"))
    return f"{fault}; each '/' counts as 3 bytes" if fault and "/" in ref_name else fault


def _find_ref_fault(ref_name: str) -> str | None:
    if is_ulid(ref_name):
        return "it looks like a commit id"
    return next((fault for pattern, fault in _RESERVED_PATTERNS if pattern.search(ref_name)), None)


def _find_stream_fault(stream_name: str) -> str | None:
    if not stream_name.isprintable():
        return "use printable characters"
    if stream_name != stream_name.strip():
        return "it begins or ends with whitespace"
    if not unicodedata.is_normalized("NFC", stream_name):
        return "it is not in Unicode Normalization Form C (NFC)"
    return find_length_fault(stream_name)
