"""What a branch or a tag may be called.

Pure rules; nothing here reads or writes. Live names are disjoint as paths: `review` and `review/a`
cannot both exist.
"""

import re
from collections.abc import Iterable

from omnigraph.errors import AlreadyExists, InputError
from omnigraph.storage.layout import MAIN

_NAME = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")


def clean(name: str, kind: str = "branch") -> str:
    """The name without white space around it; empty is refused, `main` is itself.

    >>> clean("  review/a ")
    'review/a'
    """
    text = name.strip()
    if not text:
        raise InputError(f"a {kind} needs a name", reason=f"empty {kind} name")
    return text


def check_new(name: str, kind: str = "branch") -> str:
    """A name that a new branch or tag may have, whatever exists already."""
    text = clean(name, kind)
    if text == MAIN:
        raise InputError("'main' is always there and cannot be created", reason="reserved name")
    reason = _fault(text)
    if reason is not None:
        raise InputError(f"'{text}' cannot name a {kind}: {reason}", reason=reason)
    return text


def _fault(text: str) -> str | None:
    if text.upper() == "HEAD":
        return "HEAD is what a handle shows"
    if text.startswith("__"):
        return "names that begin with '__' are reserved"
    if text.endswith(".lock"):
        return "a name may not end in '.lock'"
    if ".." in text:
        return "'..' is not allowed"
    if not _NAME.fullmatch(text):
        return "use letters, digits, '.', '-', '_', and '/' between parts"
    return None


def overlapping(name: str, existing: Iterable[str]) -> list[str]:
    """The names that a new one cannot stand beside: itself, and paths above and below it.

    >>> overlapping("review", ["main", "review", "review/a", "reviews"])
    ['review', 'review/a']
    """
    return [one for one in existing if f"{one}/".startswith(f"{name}/") or _above(one, name)]


def _above(other: str, name: str) -> bool:
    return other != MAIN and name.startswith(f"{other}/")


def check_disjoint(name: str, existing: Iterable[str]) -> None:
    """Refuse a name that exists, or that is a path above or below one that exists."""
    for other in overlapping(name, existing):
        if other == name:
            raise AlreadyExists(f"branch '{name}' already exists", branch=name)
        message = f"branch '{name}' overlaps with branch '{other}'"
        raise AlreadyExists(message, branch=name, blocker=other)
