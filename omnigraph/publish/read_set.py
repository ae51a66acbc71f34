"""A caller's read set: the version of each table that the caller has read.

A strict write (update, delete or overwrite) is based on the data that its caller has read. Maintenance that ran after
the read is ignored. A content change is a conflict if the write depends on a changed row. An overwrite depends on all
rows.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from omnigraph.errors import StorageError, VersionConflict
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.publish.requirements import SameContent
from omnigraph.publish.unread_changes import (
    IncomparableVersionsError,
    RowFilter,
    TableReads,
    UnreadStep,
    find_changed_ids,
    read_changes,
)
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.values.table_key import TableKey

MAX_NAMED_IDS = 5  # maximum number of entities listed in a conflict


@dataclass(frozen=True, slots=True)
class UnchangedTable:
    """Requires that the rows a write depends on have not changed since they were read.

    Without a filter, the write depends on all rows.
    """

    table_key: TableKey
    reads: TableReads
    row_filter: RowFilter | None = None

    def to_json(self) -> list[Any]:
        """Return the stricter requirement that no row has changed, because any process can check this requirement."""
        read_entry = self.reads.read_entry
        return SameContent(self.table_key, read_entry.content_id, read_entry.version).to_json()

    def check(self, txn: WriteTxn) -> tuple[UnreadStep, ...]:
        """Return the unread steps up to the base, or raise `VersionConflict` if they affect the write."""
        base_entry = txn.table_entry(self.table_key)
        if base_entry is None:
            self._raise_conflict(txn, None)
        return tuple(self._check_step(txn, step) for step in self.reads.steps_to(base_entry))

    def _check_step(self, txn: WriteTxn, step: UnreadStep) -> UnreadStep:
        if self.row_filter is None:
            self._raise_conflict(txn, step)
        try:
            changes, kept_step = read_changes(txn, self.table_key, step, self.row_filter)
            changed_ids = find_changed_ids(txn, changes, self.row_filter)
        except (IncomparableVersionsError, FileNotFoundError):
            # The schema changed, or a cleanup removed the version that was read, so any row may have changed.
            self._raise_conflict(txn, step)
        except StorageError as error:
            if error.kind != "not_found":
                raise
            self._raise_conflict(txn, step)
        if changed_ids:
            self._raise_conflict(txn, step, changed_ids)
        return kept_step

    def _raise_conflict(self, txn: WriteTxn, step: UnreadStep | None, changed_ids: Iterable[str] = ()) -> NoReturn:
        from omnigraph.publish.conflicting_commit import find_conflicting_commit

        base_entry, entity_ids = txn.table_entry(self.table_key), list(changed_ids)
        commit = find_conflicting_commit(txn, self.table_key, step, entity_ids) if step is not None else None
        raise VersionConflict(
            type_key=self.table_key,
            expected=self.reads.read_entry.version,
            actual=base_entry.version if base_entry else None,
            changed_ids=tuple(entity_ids[:MAX_NAMED_IDS]) or None,
            more_changes=max(0, len(entity_ids) - MAX_NAMED_IDS) or None,
            commit_id=commit.id if commit else None,
            actor=commit.actor if commit else None,
        )


@dataclass(slots=True)
class UnchangedReads:
    """Requires that the rows a strict write depends on, in all tables, have not changed since they were read.

    The base of the last check is recorded, so that the read set can later advance past the write itself, but not past
    the unread changes that precede the write.
    """

    contents: tuple[UnchangedTable, ...] = ()
    base_entries: Mapping[TableKey, TableEntry] = field(default_factory=dict)
    checked_steps: dict[TableKey, tuple[UnreadStep, ...]] = field(default_factory=dict)
    commit_id: str | None = None

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["watch", [content.to_json() for content in self.contents]]

    @classmethod
    def from_json(cls, encoded_contents: Iterable[Any]) -> "UnchangedReads":
        """Build the requirement from the arguments in its JSON form."""
        return cls(
            tuple(
                UnchangedTable(key := TableKey(table_key), TableReads(TableEntry(key, "", version, 0, content_id, 0)))
                for _, table_key, content_id, version in encoded_contents
            )
        )

    def check(self, txn: WriteTxn) -> None:
        """Check every table, and record the base for which the check passed."""
        self.checked_steps = {content.table_key: content.check(txn) for content in self.contents}
        self.base_entries = txn.base.state.tables
        self.commit_id = txn.commit_id

    def was_checked_for(self, commit: Commit) -> bool:
        """Return whether this write published the commit and did not merely find it by its idempotency key."""
        return self.commit_id == commit.id

    def reads_after_write(self, table_key: TableKey, reads: TableReads, new_entry: TableEntry) -> TableReads:
        """Return a table's entry in the read set after this write has created a new version of the table."""
        base_entry = self.base_entries.get(table_key)
        if base_entry is None:  # other writers dropped and recreated the table, so no row has been read
            return reads
        is_checked = any(content.table_key == table_key and content.reads is reads for content in self.contents)
        return reads.after_own_write(base_entry, new_entry, self.checked_steps[table_key] if is_checked else None)


class ReadSet:
    """The tables as the caller last read them. Unread changes never count as read, even after a write by the caller."""

    def __init__(self, tables: Mapping[TableKey, TableEntry]) -> None:
        self._lock = threading.Lock()
        self._tables = {table_key: TableReads(entry) for table_key, entry in tables.items()}

    def record_read(self, tables: Mapping[TableKey, TableEntry]) -> None:
        """Record that these tables were read. The entries for other tables stay unchanged."""
        new_reads = {
            table_key: TableReads(entry)
            for table_key, entry in tables.items()
            if (reads := self._tables.get(table_key)) is None or reads.entry is not entry or reads.unread
        }
        if new_reads:  # most reads use versions that the caller has already read
            with self._lock:
                self._tables |= new_reads

    def require_unchanged(
        self, table_keys: Iterable[TableKey] | Mapping[TableKey, RowFilter | None] = ()
    ) -> UnchangedReads:
        """Return the requirement that these tables, or some of their rows, have not changed since they were read."""
        row_filters = table_keys if isinstance(table_keys, Mapping) else dict.fromkeys(table_keys)
        with self._lock:
            return UnchangedReads(
                tuple(
                    UnchangedTable(table_key, reads, row_filter)
                    for table_key, row_filter in row_filters.items()
                    if (reads := self._tables.get(table_key)) is not None
                )
            )

    def record_write(self, commit: Commit, requirement: UnchangedReads) -> None:
        """Advance the read set past a write by the same caller, but not past the unread changes that precede the write.

        An earlier commit that was found by its idempotency key is skipped: its base was not checked against this
        requirement, and the commit may be older than data that has been read in the meantime.
        """
        if not requirement.was_checked_for(commit):
            return
        with self._lock:
            for table_key, entry in commit.tables.items():
                self._record_own_version(table_key, entry, requirement)

    def _record_own_version(self, table_key: TableKey, entry: TableEntry | None, requirement: UnchangedReads) -> None:
        reads, base_entry = self._tables.get(table_key), requirement.base_entries.get(table_key)
        if entry is None:  # the table was dropped, possibly with unread rows
            if reads is not None and base_entry is not None and not reads.steps_to(base_entry):
                del self._tables[table_key]
        elif reads is not None:
            self._tables[table_key] = requirement.reads_after_write(table_key, reads, entry)
        elif base_entry is None:  # this write created the table
            self._tables[table_key] = TableReads(entry)
