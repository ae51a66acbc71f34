"""Validation of names: what a new branch, tag, stream or type may be called.

Every rule holds on every store, so that a root can move between a disk and S3. A name is checked
before anything is written. Existing names are never checked: whatever they are, they can be read,
listed, renamed and deleted. Pure: reads and writes nothing.
"""

import re
import unicodedata
from collections.abc import Iterable

from omnigraph.errors import InputError
from omnigraph.ids import is_ulid
from omnigraph.values.describe import describe

# Bytes of a name as stored. File systems allow 255 bytes in a path segment; the remainder leaves
# room for suffixes such as `.lance` or `.partial` that exports and copying tools append.
LONGEST = 200
ALLOWED = "use letters, digits, '.', '-', '_', and '/' between parts"
_SHOWN = 80  # characters of a name in an error
_CHARACTERS = re.compile(r"[A-Za-z0-9._/-]+")
_REFUSED = (
    (re.compile(r"\A(?i:head)\Z"), "'HEAD' is reserved"),
    (re.compile(r"\A(?i:main)\Z"), "'main' is reserved"),
    (re.compile(r"\A__"), "names that begin with '__' are reserved"),
    (re.compile(r"\A-"), "a name may not begin with '-'"),
    (re.compile(r"\.\."), "'..' is not allowed"),
    (re.compile(r"(?:\A|/)\.|\.(?:/|\Z)"), "no part of a name may begin or end with '.'"),
    (re.compile(r"\.lock(?:/|\Z)"), "no part of a name may end in '.lock'"),
    (re.compile(r"\A[0-9]{10}\.json\Z"), "files inside a graph have names of this form"),
)


def quote_name(name: object) -> str:
    r"""Return a name as errors show it: quoted, shortened, unprintable characters escaped.

    >>> print(quote_name("review/a"), quote_name("a\x07b"), quote_name(5))
    'review/a' 'a\x07b' integer 5
    """
    if not isinstance(name, str):
        return describe(name)
    size = f" ({len(name)} characters)" if len(name) > _SHOWN else ""
    return f"'{shorten_name(name)}'{size}"


def shorten_name(name: str) -> str:
    """Return the same without quotes, for messages that show names unquoted."""
    start = "".join(c if c.isprintable() else _escape(c) for c in name[:_SHOWN])
    return start if len(name) <= _SHOWN else f"{start}…"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def require_text(value: object, kind: str) -> str:
    """Return the value if it is a string; raise `InputError` for any other type of name.

    >>> require_text(b"x", "branch")
    Traceback (most recent call last):
    omnigraph.errors.input.InputError: a branch name must be text, got bytes
    """
    if isinstance(value, str):
        return value
    message = f"a {kind} name must be text, got {describe(value)}"
    raise InputError(message, reason="not text")


def require_names(values: object, kind: str = "type") -> list[str]:
    """Return the given names as a list: a single string, or several.

    >>> require_names("Person"), require_names(("Person", "City"))
    (['Person'], ['Person', 'City'])
    """
    if isinstance(values, str):
        return [values]
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        message = f"expected {kind} names, got {describe(values)}"
        raise InputError(message, reason="expected a text or a list of texts")
    return [require_text(value, kind) for value in values]


def clean(name: object, kind: str = "branch") -> str:
    """Return the name without surrounding white space; an empty name raises `InputError`.

    >>> clean("  review/a ")
    'review/a'
    """
    text = require_text(name, kind).strip()
    if not text:
        raise InputError(f"a {kind} needs a name", reason=f"empty {kind} name")
    return text


def check_new(name: object, kind: str = "branch") -> str:
    """Return a name that a new branch or tag may have; otherwise raise `InputError`.

    Does not check whether the name is already in use.
    """
    text = clean(name, kind)
    if text == "main":
        raise InputError("'main' always exists and cannot be created", reason="reserved name")
    return _accept(text, kind, _find_character_fault(text) or _find_ref_fault(text))


def check_new_stream(name: object) -> str:
    """Return a name that a new stream may have (any printable text), or raise `InputError`.

    >>> check_new_stream("orders of 2026")
    'orders of 2026'
    """
    text = require_text(name, "stream")
    clean(text, "stream")
    return _accept(text, "stream", _find_stream_fault(text))


def find_length_fault(stored: str) -> str | None:
    """Return what is wrong with the length of a name in its stored form, or None.

    >>> find_length_fault("x" * 201)
    'it takes 201 bytes, and at most 200 are allowed'
    """
    size = len(stored.encode())
    return f"it takes {size} bytes, and at most {LONGEST} are allowed" if size > LONGEST else None


def _accept(text: str, kind: str, fault: str | None) -> str:
    if fault is None:
        return text
    message = f"{quote_name(text)} cannot name a {kind}: {fault}"
    raise InputError(message, reason=fault)


def _find_character_fault(text: str) -> str | None:
    """Allow ASCII only: no names look alike, and no store changes one by normalizing Unicode."""
    if _CHARACTERS.fullmatch(text) is None or "" in text.split("/"):
        return ALLOWED
    fault = find_length_fault(text.replace("/", "%2F"))
    return f"{fault}; '/' counts as 3" if fault and "/" in text else fault


def _find_ref_fault(text: str) -> str | None:
    if is_ulid(text):
        return "it looks like the id of a commit"
    return next((fault for pattern, fault in _REFUSED if pattern.search(text)), None)


def _find_stream_fault(text: str) -> str | None:
    if not text.isprintable():
        return "use printable characters"
    if text != text.strip():
        return "it begins or ends with white space"
    if not unicodedata.is_normalized("NFC", text):
        return "it is not in Unicode normal form C"
    return find_length_fault(text)
