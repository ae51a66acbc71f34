"""What a handle has shown its caller: the base of strict writes.

A strict write (update, delete, overwrite) is based on what the caller saw. Owns the content id of
each table as last shown. Maintenance since then is ignored; a logical change is a conflict.
"""

import threading
from collections.abc import Iterable, Mapping

from omnigraph.history.commit import Commit, TableEntry

from .plan import ReadSet, SameContent


class ShownReads:
    """The tables as last shown to the caller; a write never makes unseen changes count as shown."""

    def __init__(self, tables: Mapping[str, TableEntry]) -> None:
        self._lock = threading.Lock()
        self._shown_tables = dict(tables)

    def mark_shown(self, seen_tables: Mapping[str, TableEntry]) -> None:
        """Record that the caller has seen these tables; tables not given were not seen."""
        with self._lock:
            self._shown_tables = {**self._shown_tables, **seen_tables}

    def strict_read_set(self, table_keys: Iterable[str] = ()) -> ReadSet:
        """Return the read set of a write: these tables must not have changed since last shown."""
        with self._lock:
            shown_entries = {
                table_key: self._shown_tables[table_key]
                for table_key in table_keys
                if table_key in self._shown_tables
            }
        return ReadSet(
            tuple(
                SameContent(table_key, entry.content_id, entry.version)
                for table_key, entry in shown_entries.items()
            )
        )

    def follow_write(self, commit: Commit, read_set: ReadSet) -> None:
        """Follow a write of this handle, except where it was applied to a change never shown.

        The earlier commit of an idempotency key is not followed: it was applied to a base without
        a read set, and it may be older than what was shown since.
        """
        if commit.id != read_set.commit_id:
            return
        with self._lock:
            for table_key, entry in commit.tables.items():
                shown_entry, base_content_id = (
                    self._shown_tables.get(table_key),
                    read_set.checked_content_ids.get(table_key),
                )
                if (shown_entry and shown_entry.content_id) == base_content_id:
                    self._replace_shown(table_key, entry)

    def _replace_shown(self, table_key: str, entry: TableEntry | None) -> None:
        if entry is None:  # dropped
            self._shown_tables.pop(table_key, None)
        else:
            self._shown_tables[table_key] = entry
