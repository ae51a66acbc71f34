"""What a handle has shown its caller: the base of strict writes.

A strict write (update, delete, overwrite) is based on what the caller saw. Owns the content id of
each table as last shown. Maintenance since then is ignored; a logical change is a conflict.
"""

import threading
from collections.abc import Iterable, Mapping

from .commit import Commit, TableEntry
from .plan import SameContent, Watch


class Shown:
    """The tables as last shown to the caller; a write never makes unseen changes count as shown."""

    def __init__(self, tables: Mapping[str, TableEntry]) -> None:
        self._lock = threading.Lock()
        self._seen = dict(tables)

    def show(self, tables: Mapping[str, TableEntry]) -> None:
        """Record that the caller has seen these tables; tables not given were not seen."""
        with self._lock:
            self._seen = {**self._seen, **tables}

    def strict(self, keys: Iterable[str] = ()) -> Watch:
        """Return the read set of a write: these tables must not have changed since last shown."""
        with self._lock:
            seen = {key: self._seen[key] for key in keys if key in self._seen}
        return Watch(tuple(SameContent(key, e.content_id, e.version) for key, e in seen.items()))

    def wrote(self, commit: Commit, watch: Watch) -> None:
        """Follow a write of this handle, except where it was applied to a change never shown.

        The earlier commit of an idempotency key is not followed: it was applied to a base without
        a read set, and it may be older than what was shown since.
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
