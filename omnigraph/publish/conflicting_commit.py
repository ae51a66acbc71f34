"""Find the commit behind a conflict: the newest commit by another writer that changed the conflicting rows.

This module only improves error messages. If the log or an old version cannot be read, the conflict is reported
without a commit.
"""

from collections.abc import Collection, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CommitNotFound, HistoryReclaimed, StorageError
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.diff import diff_tables
from omnigraph.publish.unread_changes import UnreadStep
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.table import open_table
from omnigraph.values.table_key import TableKey

_MAX_COMMITS = 256  # maximum number of commits to search in the log
_MAX_COMPARISONS = 32  # maximum number of commits whose changes are compared with the conflicting rows


def find_conflicting_commit(
    txn: WriteTxn, table_key: TableKey, step: UnreadStep, entity_ids: Collection[str] = ()
) -> Commit | None:
    """Return the newest commit that changed one of the given entities, or any entity of the type if none is given."""
    try:
        changes_to_table = list(_commits_of_step(txn, table_key, step))
        if not entity_ids:
            return changes_to_table[0][0] if changes_to_table else None
        for commit, older_entry, newer_entry in islice(changes_to_table, _MAX_COMPARISONS):
            if _changes_any(txn, older_entry, newer_entry, entity_ids):
                return commit
    except (CommitNotFound, HistoryReclaimed, StorageError, OSError):
        return None
    return None


def _commits_of_step(
    txn: WriteTxn, table_key: TableKey, step: UnreadStep
) -> Iterator[tuple[Commit, TableEntry, TableEntry]]:
    """Yield other writers' commits to the table, newest first, each with the table's versions before and after it."""
    state = txn.base.state
    commits = islice(HistoryLog(txn.store, state).first_parents(state.head.commit_id), _MAX_COMMITS)
    pending: tuple[Commit, TableEntry] | None = None
    for commit in commits:
        entry = commit.tables.get(table_key)
        is_end = commit.id == step.older.content_id
        older_entry = step.older if is_end else entry
        if older_entry is not None and pending is not None:
            yield *pending[:1], older_entry, pending[1]
            pending = None
        if is_end:
            return
        if entry is not None and _is_made_in_step(commit, entry, step):
            pending = (commit, entry)


def _is_made_in_step(commit: Commit, entry: TableEntry, step: UnreadStep) -> bool:
    """Return whether a commit by another writer changed the table within the given step rather than after it."""
    is_foreign = commit.id not in step.own_commits
    return is_foreign and entry.content_id == commit.id and entry.version <= step.newer.version


def _changes_any(txn: WriteTxn, older_entry: TableEntry, newer_entry: TableEntry, entity_ids: Collection[str]) -> bool:
    older_table, newer_table = (
        open_table(txn.store, entry.location, entry.lance_version) for entry in (older_entry, newer_entry)
    )
    changes = diff_tables(txn.store, newer_entry.key, older_table, newer_table)
    return bool(pc.any(pc.is_in(changes.ids, value_set=pa.array(entity_ids, pa.string()))).as_py())
