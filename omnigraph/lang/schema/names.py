"""Reserved names, and suggestions for misspelled names.

This module lists the names that properties may not have, and searches for similar names.
"""

from collections.abc import Iterable

RESERVED_ROW_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
RESERVED_EDGE_NAMES = frozenset({"src", "dst", "from", "to"})
_MAX_CANDIDATES = 50


def find_nearest_name(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if no name is similar.

    >>> find_nearest_name("tilte", ["title", "year"])
    'title'
    """
    candidates = sorted({known_name for known_name in known_names if abs(len(known_name) - len(name)) <= 3})
    by_lower_case = {candidate.lower(): candidate for candidate in reversed(candidates)}
    if name.lower() in by_lower_case:
        return by_lower_case[name.lower()]
    from difflib import get_close_matches  # imported lazily, because only misspelled names need it

    # The comparison is slow, and a schema may contain thousands of names, including many misspelled names.
    similar_names = [candidate for candidate in candidates if candidate[:1] == name[:1] or candidate[-1:] == name[-1:]][
        :_MAX_CANDIDATES
    ]
    close_matches = get_close_matches(name, similar_names, n=1, cutoff=0.6)
    return close_matches[0] if close_matches else None


def did_you_mean(name: str, known_names: Iterable[str], fallback_hint: str | None = None) -> str | None:
    """Return a hint that suggests a similar known name, or `fallback_hint` if no known name is similar.

    >>> did_you_mean("tilte", ["title", "year"])
    'did you mean `title`?'
    """
    suggestion = find_nearest_name(name, known_names)
    return f"did you mean `{suggestion}`?" if suggestion else fallback_hint
