"""What a handle has shown its caller: the base of strict writes.

A strict write (update, delete, overwrite) decides on what the caller saw. Owns the content id of
each table as it was last shown. Maintenance since then passes; a logical change is a conflict.
"""

import threading
from collections.abc import Iterable, Mapping

from .commit import Commit, TableEntry
from .plan import SameContent, Watch


class Shown:
    """The tables as a handle last showed them; a query or a refresh moves it, a write alone not."""

    def __init__(self, tables: Mapping[str, TableEntry]) -> None:
        self._lock = threading.Lock()
        self._seen = dict(tables)

    def show(self, tables: Mapping[str, TableEntry]) -> None:
        """The caller has seen these tables; a table that is not named was not seen."""
        with self._lock:
            self._seen = {**self._seen, **tables}

    def strict(self, keys: Iterable[str] = ()) -> Watch:
        """A condition for one write: nothing the caller has not seen happened to these tables."""
        with self._lock:
            seen = {key: self._seen[key] for key in keys if key in self._seen}
        return Watch(tuple(SameContent(key, e.content_id, e.version) for key, e in seen.items()))

    def wrote(self, commit: Commit, watch: Watch) -> None:
        """Follow one's own write, except where it landed on a change that was never shown.

        What an idempotency key made before is not followed: it landed on a base that nobody
        watched, and it may be older than what was shown since.
        """
        if commit.id != watch.commit_id:
            return
        with self._lock:
            for key, entry in commit.tables.items():
                before, base = self._seen.get(key), watch.base.get(key)
                if (before and before.content_id) == base:
                    self._follow(key, entry)

    def _follow(self, key: str, entry: TableEntry | None) -> None:
        if entry is None:  # dropped
            self._seen.pop(key, None)
        else:
            self._seen[key] = entry
