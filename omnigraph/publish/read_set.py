"""The read set of a caller: the content of each table it has read, on which strict writes are based.

A strict write (update, delete, overwrite) is based on what its caller has read. Maintenance after
the read is ignored, but a logical change is a conflict.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.history.commit import Commit, TableEntry
from omnigraph.publish.requirements import SameContent
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.values.table_key import TableKey


@dataclass(slots=True)
class UnchangedReads:
    """The requirement of a strict write that the tables still have the content that was read.

    The base of the last check is recorded, because the read set may advance past the write only for
    tables in which that base had no unread changes.
    """

    contents: tuple[SameContent, ...] = ()
    base_content_ids: dict[TableKey, str] = field(default_factory=dict)
    commit_id: str | None = None

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["watch", [content.to_json() for content in self.contents]]

    @classmethod
    def from_json(cls, encoded_contents: Iterable[Any]) -> "UnchangedReads":
        """Build the requirement from the arguments of its JSON form."""
        return cls(
            tuple(
                SameContent(TableKey(table_key), content_id, version)
                for _, table_key, content_id, version in encoded_contents
            )
        )

    def check(self, txn: WriteTxn) -> None:
        """Compare the current content ids with those that were read, and record the base."""
        for content in self.contents:
            content.check(txn)
        self.base_content_ids = {table_key: entry.content_id for table_key, entry in txn.base.state.tables.items()}
        self.commit_id = txn.commit_id

    def was_checked_for(self, commit: Commit) -> bool:
        """Return whether this write published the commit; False for a commit found by its idempotency key."""
        return self.commit_id == commit.id


class ReadSet:
    """The tables as last read; a write never makes unread changes count as read."""

    def __init__(self, tables: Mapping[TableKey, TableEntry]) -> None:
        self._lock = threading.Lock()
        self._tables = dict(tables)

    def record_read(self, tables: Mapping[TableKey, TableEntry]) -> None:
        """Record that these tables were read; the entries of other tables stay unchanged."""
        with self._lock:
            self._tables = {**self._tables, **tables}

    def require_unchanged(self, table_keys: Iterable[TableKey] = ()) -> UnchangedReads:
        """Return the requirement that these tables have not changed since they were read."""
        with self._lock:
            return UnchangedReads(
                tuple(
                    SameContent(table_key, entry.content_id, entry.version)
                    for table_key in table_keys
                    if (entry := self._tables.get(table_key)) is not None
                )
            )

    def record_write(self, commit: Commit, requirement: UnchangedReads) -> None:
        """Advance past a write by the same caller, except where it was applied on top of an unread change.

        An earlier commit found by its idempotency key is skipped, because it was applied to a base that
        was not checked against this requirement, and it may be older than what has been read since.
        """
        if not requirement.was_checked_for(commit):
            return
        with self._lock:
            for table_key, entry in commit.tables.items():
                read_entry = self._tables.get(table_key)
                base_content_id = requirement.base_content_ids.get(table_key)
                if (read_entry and read_entry.content_id) == base_content_id:
                    self._replace_entry(table_key, entry)

    def _replace_entry(self, table_key: TableKey, entry: TableEntry | None) -> None:
        if entry is None:  # dropped
            self._tables.pop(table_key, None)
        else:
            self._tables[table_key] = entry
