"""Conflicts between branch names: which new name cannot coexist with the existing ones.

`omnigraph.naming` validates a single name; nothing here reads or writes. Open names are disjoint as
paths and never differ in case alone: `review` and `review/a` cannot both exist, and neither can
`review` and `Review`, which share a directory on case-insensitive file systems.
"""

from collections.abc import Iterable

from omnigraph.errors import AlreadyExists
from omnigraph.naming import check_new, clean
from omnigraph.storage.layout import MAIN

__all__ = ["check_disjoint", "check_new", "clean", "find_case_variant", "overlapping"]


def overlapping(name: str, existing: Iterable[str]) -> list[str]:
    """Return the existing names that conflict with a new one: itself, its ancestors, descendants.

    >>> overlapping("review", ["main", "review", "Review/a", "reviews"])
    ['review', 'Review/a']
    """
    return [other for other in existing if _overlap(name.lower(), other.lower())]


def _overlap(name: str, other: str) -> bool:
    below = other != MAIN and name.startswith(f"{other}/")
    return below or f"{other}/".startswith(f"{name}/")


def find_case_variant(name: str, existing: Iterable[str]) -> str | None:
    """Return an existing name that differs only in case, or None.

    >>> find_case_variant("V1", ["v1", "V1"])
    'v1'
    """
    folded = name.lower()
    return next((other for other in existing if other != name and other.lower() == folded), None)


def check_disjoint(name: str, existing: Iterable[str]) -> None:
    """Raise `AlreadyExists` if a name exists already, or is a path above or below one that does."""
    for other in overlapping(name, existing):
        if other == name:
            raise AlreadyExists(f"branch '{name}' already exists", branch=name)
        how = "differs only in case from" if name.lower() == other.lower() else "overlaps with"
        raise AlreadyExists(f"branch '{name}' {how} branch '{other}'", branch=name, blocker=other)
