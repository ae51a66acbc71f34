"""The judge of names: what a new branch, tag, stream or type may be called.

Every rule holds on every store, whichever the graph is on, so that a root can move between a disk
and S3. A name is judged before anything is written. Names that exist already are never judged:
whatever they are, they can be read, listed, renamed and deleted. Pure: reads and writes nothing.
"""

import re
import unicodedata
from collections.abc import Iterable

from omnigraph.errors import InputError
from omnigraph.ids import is_ulid
from omnigraph.values.describe import describe

# Bytes of a name as it is stored. File systems allow 255 bytes in a path segment; the rest is room
# for suffixes such as `.lance` or `.partial` that exports and copying tools append.
LONGEST = 200
ALLOWED = "use letters, digits, '.', '-', '_', and '/' between parts"
_SHOWN = 80  # characters of a name in an error
_CHARACTERS = re.compile(r"[A-Za-z0-9._/-]+")
_REFUSED = (
    (re.compile(r"\A(?i:head)\Z"), "HEAD is what a handle shows"),
    (re.compile(r"\A(?i:main)\Z"), "'main' is reserved"),
    (re.compile(r"\A__"), "names that begin with '__' are reserved"),
    (re.compile(r"\A-"), "a name may not begin with '-'"),
    (re.compile(r"\.\."), "'..' is not allowed"),
    (re.compile(r"(?:\A|/)\.|\.(?:/|\Z)"), "no part of a name may begin or end with '.'"),
    (re.compile(r"\.lock(?:/|\Z)"), "no part of a name may end in '.lock'"),
    (re.compile(r"\A[0-9]{10}\.json\Z"), "that is what files of a graph are called"),
)


def quote_name(name: object) -> str:
    r"""A name as errors show it: quoted, shortened, without characters that cannot be printed.

    >>> print(quote_name("review/a"), quote_name("a\x07b"), quote_name(5))
    'review/a' 'a\x07b' integer 5
    """
    if not isinstance(name, str):
        return describe(name)
    size = f" ({len(name)} characters)" if len(name) > _SHOWN else ""
    return f"'{shorten_name(name)}'{size}"


def shorten_name(name: str) -> str:
    """The same without quotes, for sentences that show names without them."""
    start = "".join(c if c.isprintable() else _escape(c) for c in name[:_SHOWN])
    return start if len(name) <= _SHOWN else f"{start}…"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def require_text(value: object, kind: str) -> str:
    """The value, if it is text: whatever else is given as a name is an `InputError`.

    >>> require_text(b"x", "branch")
    Traceback (most recent call last):
    omnigraph.errors.input.InputError: a branch name must be text, got bytes
    """
    if isinstance(value, str):
        return value
    message = f"a {kind} name must be text, got {describe(value)}"
    raise InputError(message, reason="not text")


def require_names(values: object, kind: str = "type") -> list[str]:
    """The names that a caller chose: one name, or several.

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
    """The name without white space around it; an empty name is refused, `main` is itself.

    >>> clean("  review/a ")
    'review/a'
    """
    text = require_text(name, kind).strip()
    if not text:
        raise InputError(f"a {kind} needs a name", reason=f"empty {kind} name")
    return text


def check_new(name: object, kind: str = "branch") -> str:
    """A name that a new branch or tag may have, whatever exists already; else `InputError`."""
    text = clean(name, kind)
    if text == "main":
        raise InputError("'main' is always there and cannot be created", reason="reserved name")
    return _accept(text, kind, _find_character_fault(text) or _find_ref_fault(text))


def check_new_stream(name: object) -> str:
    """A name that a new stream may have: any printable text; else `InputError`.

    >>> check_new_stream("orders of 2026")
    'orders of 2026'
    """
    text = require_text(name, "stream")
    clean(text, "stream")
    return _accept(text, "stream", _find_stream_fault(text))


def find_length_fault(stored: str) -> str | None:
    """What is wrong with the length of a name, given as it is stored.

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
    """Only ASCII: no two names look alike, and none changes when a store normalises Unicode."""
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
