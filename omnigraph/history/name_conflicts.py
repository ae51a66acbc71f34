"""Detect conflicts between branch names.

Names in use never overlap as paths and never differ only in case. For example, `review` and `review/a` cannot both
exist, nor can `review` and `Review`, which would share a directory on a case-insensitive file system.
`omnigraph.values.name_rules` validates single names. This module does no I/O.
"""

from collections.abc import Iterable

from omnigraph.errors import AlreadyExists
from omnigraph.storage.layout import MAIN
from omnigraph.values.name_rules import check_new_ref_name, strip_name

__all__ = ["check_disjoint", "check_new_ref_name", "find_case_variant", "find_overlapping_names", "strip_name"]


def find_overlapping_names(new_name: str, existing_names: Iterable[str]) -> list[str]:
    """Return the existing names that conflict with a new name: the name itself, its ancestors and its descendants.

    >>> find_overlapping_names("review", ["main", "review", "Review/a", "reviews"])
    ['review', 'Review/a']
    """
    return [
        existing_name for existing_name in existing_names if _paths_overlap(new_name.lower(), existing_name.lower())
    ]


def _paths_overlap(new_path: str, existing_path: str) -> bool:
    is_below = existing_path != MAIN and new_path.startswith(f"{existing_path}/")
    return is_below or f"{existing_path}/".startswith(f"{new_path}/")


def find_case_variant(name: str, existing_names: Iterable[str]) -> str | None:
    """Return an existing name that differs only in case, or None if there is none.

    >>> find_case_variant("V1", ["v1", "V1"])
    'v1'
    """
    lowered_name = name.lower()
    return next(
        (
            existing_name
            for existing_name in existing_names
            if existing_name != name and existing_name.lower() == lowered_name
        ),
        None,
    )


def check_disjoint(new_name: str, existing_names: Iterable[str]) -> None:
    """Raise `AlreadyExists` if a name already exists, or is an ancestor or descendant of an existing one."""
    for blocking_name in find_overlapping_names(new_name, existing_names):
        if blocking_name == new_name:
            raise AlreadyExists(f"branch '{new_name}' already exists", branch=new_name)
        relation = "differs only in case from" if new_name.lower() == blocking_name.lower() else "overlaps with"
        raise AlreadyExists(
            f"branch '{new_name}' {relation} branch '{blocking_name}'", branch=new_name, blocker=blocking_name
        )
