"""Find changes that other writers made to a table after a caller read it, and determine which ones affect a write.

A caller's own writes count as read. They therefore divide the changes by other writers into steps. The first step leads
from the version that was read to the base of the caller's first write, the next from that write to the base of the
second write, and so on. Each step is compared once, reading only the fragments that differ. A write's `RowFilter`, not
this module, decides what the write depends on.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.history.commit import TableEntry
from omnigraph.history.entities import TableChanges
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.find_rows import read_batches
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.value_equality import same_rows
from omnigraph.storage.version_difference import compare_versions
from omnigraph.values.table_key import TableKey

RowMask = npt.NDArray[np.bool_]

MAX_COMPARED_ROWS = 200_000  # above this row count, only the rows that a write depends on are kept in memory
MAX_KEPT_BYTES = 64 << 20  # maximum size of the changed rows that a handle keeps for its next writes
MAX_STEPS = 256  # maximum number of separate steps that a handle keeps per table
_MAX_CHUNKS = 16  # maximum number of chunks in the changed rows that a handle keeps


class RowFilter(Protocol):
    """A filter that selects the rows in a table that a write depends on."""

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns whose values matter, including those that `matches` reads, or None for all columns."""

    def matches(self, txn: WriteTxn, rows: pa.Table) -> RowMask:
        """Return a mask of the rows that the write depends on. `rows` may contain old or new values."""


class IncomparableVersionsError(Exception):
    """Two table versions cannot be compared row by row, so any row may have changed."""


@dataclass(frozen=True, slots=True)
class UnreadStep:
    """Other writers' changes between two table versions. `changes` is None until the changes are read.

    `own_commits` are the ids of the caller's own commits between the two versions. Their changes are not in `changes`.
    """

    older: TableEntry
    newer: TableEntry
    changes: TableChanges | None = None
    own_commits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TableReads:
    """The newest version of a table that a caller has read or written, and the unread steps before it."""

    entry: TableEntry
    unread: tuple[UnreadStep, ...] = ()

    @property
    def read_entry(self) -> TableEntry:
        """The table as the caller last read it, without any unread changes."""
        return self.unread[0].older if self.unread else self.entry

    def steps_to(self, base_entry: TableEntry) -> tuple[UnreadStep, ...]:
        """Return the unread steps from the version that was read to the base of a write."""
        if base_entry.content_id == self.entry.content_id:
            return self.unread
        return (*self.unread, UnreadStep(self.entry, base_entry))

    def after_own_write(
        self, base_entry: TableEntry, new_entry: TableEntry, steps: tuple[UnreadStep, ...] | None = None
    ) -> "TableReads":
        """Return the state after the caller's write has replaced the base entry with the new entry.

        `steps` are the unread steps up to the base, if they have already been determined. If threads record their
        writes out of order, the step that contains the earlier write is split.
        """
        if new_entry.version <= self.entry.version:
            divided_steps = (part for step in self.unread for part in _divide_step(step, base_entry, new_entry))
            return TableReads(self.entry, tuple(divided_steps))
        return TableReads(new_entry, _shorten_steps(self.steps_to(base_entry) if steps is None else steps))


def read_changes(
    txn: WriteTxn, table_key: TableKey, step: UnreadStep, row_filter: RowFilter
) -> tuple[TableChanges, UnreadStep]:
    """Return the changes in an unread step that may affect a write, and the step to keep for later writes."""
    if step.changes is not None:
        return step.changes, step
    from omnigraph.history.diff import diff_tables, match_rows_by_id

    older_table, newer_table = (
        open_table(txn.store, entry.location, entry.lance_version) for entry in (step.older, step.newer)
    )
    if older_table.location != newer_table.location or not older_table.schema.equals(newer_table.schema):
        raise IncomparableVersionsError
    if compare_versions(older_table, newer_table).max_rows_read <= MAX_COMPARED_ROWS:
        changes = diff_tables(txn.store, table_key, older_table, newer_table)
        return changes, replace(step, changes=changes)
    older_rows, newer_rows = (_matching_rows(txn, table, row_filter) for table in (older_table, newer_table))
    return match_rows_by_id(table_key, older_rows, newer_rows, older_rows.schema), step


def find_changed_ids(txn: WriteTxn, changes: TableChanges, row_filter: RowFilter) -> list[str]:
    """Return the sorted ids of the changed rows that a write depends on.

    An inserted or deleted row is included if the filter selects it. An updated row is included if one of the filter's
    columns differs and the filter selects the row before or after the update.
    """
    before, after = changes.updated_before, changes.updated_after
    compared_columns = before.column_names if row_filter.columns is None else sorted(row_filter.columns)
    if not set(compared_columns) <= set(before.column_names):
        raise IncomparableVersionsError
    is_changed = pa.array(~same_rows(before.select(compared_columns), after.select(compared_columns)))
    candidates = (changes.inserted, changes.deleted, before.filter(is_changed), after.filter(is_changed))
    matching_ids = (
        rows["id"].filter(pa.array(row_filter.matches(txn, rows))).to_pylist() for rows in candidates if rows.num_rows
    )
    return sorted({entity_id for ids in matching_ids for entity_id in ids})


def _matching_rows(txn: WriteTxn, table: Table, row_filter: RowFilter) -> pa.Table:
    """Return a table version's rows that a write depends on, holding only these rows and one batch in memory."""
    arrow_schema = row_schema(table.schema)
    if row_filter.columns is not None:
        arrow_schema = pa.schema([arrow_schema.field(name) for name in sorted({"id", *row_filter.columns})])
    matching_parts = [arrow_schema.empty_table()]
    for batch in read_batches(table, arrow_schema.names):
        rows = pa.Table.from_batches([batch]).cast(arrow_schema)
        matching_parts.append(rows.filter(pa.array(row_filter.matches(txn, rows))))
    return pa.concat_tables(matching_parts)


def _divide_step(step: UnreadStep, base_entry: TableEntry, new_entry: TableEntry) -> tuple[UnreadStep, ...]:
    """Split an unread step at a write by the caller, or return it unchanged if the write is not within the step.

    The parts and the caller's write together cover the whole step, so no change by another writer is lost.
    """
    is_inside = step.older.version <= base_entry.version and new_entry.version <= step.newer.version
    if not is_inside or step.own_commits:
        return (step,)
    parts = (UnreadStep(step.older, base_entry), UnreadStep(new_entry, step.newer))
    return tuple(part for part in parts if part.older.content_id != part.newer.content_id)


def _shorten_steps(steps: tuple[UnreadStep, ...]) -> tuple[UnreadStep, ...]:
    """Join adjacent steps whose changes are in memory, and enforce the limits on memory and on the number of steps."""
    kept_steps: list[UnreadStep] = []
    kept_bytes = 0
    for step in steps:
        step_bytes = _count_bytes(step.changes)
        is_too_large = kept_bytes + step_bytes > MAX_KEPT_BYTES and not step.own_commits
        kept_bytes += 0 if is_too_large else step_bytes
        kept_step = replace(step, changes=None) if is_too_large else step
        joined_step = _join_steps(kept_steps[-1], kept_step) if kept_steps else None
        if joined_step is None:
            kept_steps.append(kept_step)
        else:
            kept_steps[-1] = joined_step
    if len(kept_steps) > MAX_STEPS:  # the caller's own writes between the steps then count as changes by other writers
        return (UnreadStep(kept_steps[0].older, kept_steps[-1].newer),)
    return tuple(kept_steps)


def _join_steps(first: UnreadStep, second: UnreadStep) -> UnreadStep | None:
    """Join two steps that are separated by one of the caller's writes, or return None if they cannot be joined."""
    earlier, later = first.changes, second.changes
    if earlier is None or later is None or not earlier.inserted.schema.equals(later.inserted.schema):
        return None
    joined_changes = TableChanges(
        earlier.key,
        _join_rows(earlier.inserted, later.inserted),
        _join_rows(earlier.updated_before, later.updated_before),
        _join_rows(earlier.updated_after, later.updated_after),
        _join_rows(earlier.deleted, later.deleted),
    )
    own_commits = first.own_commits | second.own_commits | {second.older.content_id}
    return UnreadStep(first.older, second.newer, joined_changes, own_commits)


def _join_rows(earlier_rows: pa.Table, later_rows: pa.Table) -> pa.Table:
    """Return the rows from both tables in a small number of chunks, because every chunk slows down later checks."""
    joined_rows = pa.concat_tables([rows for rows in (earlier_rows, later_rows) if rows.num_rows] or [earlier_rows])
    return joined_rows.combine_chunks() if joined_rows["id"].num_chunks > _MAX_CHUNKS else joined_rows


def _count_bytes(changes: TableChanges | None) -> int:
    if changes is None:
        return 0
    row_tables = (changes.inserted, changes.updated_before, changes.updated_after, changes.deleted)
    return sum(rows.nbytes for rows in row_tables)
