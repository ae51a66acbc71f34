"""Reserved names, and suggestions for misspelled names.

Owns the names that no property may have, and the guess at what a misspelled name meant.
"""

from collections.abc import Iterable

ROW_NAMES = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
EDGE_NAMES = frozenset({"src", "dst", "from", "to"})
_MOST = 50


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, or None if none is similar.

    >>> nearest("tilte", ["title", "year"])
    'title'
    """
    candidates = sorted({one for one in known if abs(len(one) - len(name)) <= 3})
    folded = {c.lower(): c for c in reversed(candidates)}
    if name.lower() in folded:
        return folded[name.lower()]
    from difflib import get_close_matches  # only mistakes need it

    # Comparing is slow, and a schema may contain thousands of names and as many mistakes.
    alike = [c for c in candidates if c[:1] == name[:1] or c[-1:] == name[-1:]][:_MOST]
    found = get_close_matches(name, alike, n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """Return a hint for an unknown name.

    >>> did_you_mean("tilte", ["title", "year"])
    'did you mean `title`?'
    """
    close = nearest(name, known)
    return f"did you mean `{close}`?" if close else otherwise
