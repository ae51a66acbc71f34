"""Names of branches beside one another: which new name cannot stand beside those that exist.

What a single name may be is judged by `omnigraph.naming`. Nothing here reads or writes. Live names
are disjoint as paths, and case alone never tells two of them apart: `review` and `review/a` cannot
both exist, nor can `review` and `Review`, which are one directory on some file systems.
"""

from collections.abc import Iterable

from omnigraph.errors import AlreadyExists
from omnigraph.naming import check_new, clean
from omnigraph.storage.layout import MAIN

__all__ = ["check_disjoint", "check_new", "clean", "find_case_variant", "overlapping"]


def overlapping(name: str, existing: Iterable[str]) -> list[str]:
    """The names that a new one cannot stand beside: itself, and paths above and below it.

    >>> overlapping("review", ["main", "review", "Review/a", "reviews"])
    ['review', 'Review/a']
    """
    return [other for other in existing if _overlap(name.lower(), other.lower())]


def _overlap(name: str, other: str) -> bool:
    below = other != MAIN and name.startswith(f"{other}/")
    return below or f"{other}/".startswith(f"{name}/")


def find_case_variant(name: str, existing: Iterable[str]) -> str | None:
    """Another name that differs only in case.

    >>> find_case_variant("V1", ["v1", "V1"])
    'v1'
    """
    folded = name.lower()
    return next((other for other in existing if other != name and other.lower() == folded), None)


def check_disjoint(name: str, existing: Iterable[str]) -> None:
    """Refuse a name that exists, or that is a path above or below one that exists."""
    for other in overlapping(name, existing):
        if other == name:
            raise AlreadyExists(f"branch '{name}' already exists", branch=name)
        how = "differs only in case from" if name.lower() == other.lower() else "overlaps with"
        raise AlreadyExists(f"branch '{name}' {how} branch '{other}'", branch=name, blocker=other)
