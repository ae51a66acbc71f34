"""Build the objects that a swap makes visible: detached table versions, the commit, and the next branch state.

All of these objects are written before the swap, when no manifest references them yet, so a crash
leaves only garbage. This module never swaps a manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.commit_log import HistoryLog, append_commits
from omnigraph.history.file_checksums import record_checksums
from omnigraph.history.state import GraphState
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.table import can_replay
from omnigraph.storage.table import commit as commit_table
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class DetachedTable:
    """A new detached table version: the entry that it is based on, and the entry to publish.

    Plain Lance readers never see a detached version, because only a branch manifest can reference it. `file_checksums`
    covers the files that the version adds.
    """

    base_entry: TableEntry
    new_entry: TableEntry
    file_checksums: FileChecksums


def rebase_tables(
    txn: WriteTxn, plan: PublishPlan, earlier_tables: Mapping[TableKey, DetachedTable]
) -> dict[TableKey, DetachedTable] | None:
    """Apply the plan's changes to the base's tables as detached versions, or return None if a change does not apply.

    If a table's base has not changed since the last attempt, the detached version from that attempt is reused.
    """
    rebased_tables: dict[TableKey, DetachedTable] = {}
    for table_key, staged_change in plan.writes.items():
        base_entry = txn.base.state.tables.get(table_key)
        if base_entry is None:
            return None
        earlier_table = earlier_tables.get(table_key)
        if earlier_table is not None and _is_same_version(earlier_table.base_entry, base_entry):
            rebased_tables[table_key] = earlier_table
            continue
        table = txn.table(table_key)
        # On a retry, drop the maintenance that accompanies the write, because it often causes conflicts.
        applicable_change = replace(staged_change, prior_maintenance=()) if txn.is_retry else staged_change
        if not can_replay(applicable_change, table):
            return None
        detached_version = commit_table(txn.store, table, applicable_change)
        content_id = base_entry.content_id if plan.maintenance else txn.commit_id
        rebased_tables[table_key] = DetachedTable(
            base_entry,
            replace(
                base_entry,
                version=base_entry.version + 1,
                lance_version=detached_version.version,
                content_id=content_id,
                row_count=base_entry.row_count + staged_change.row_delta,
                branch=txn.branch,
            ),
            detached_version.new_files,
        )
    return rebased_tables


def _is_same_version(earlier_entry: TableEntry, current_entry: TableEntry) -> bool:
    return (earlier_entry.content_id, earlier_entry.lance_version) == (
        current_entry.content_id,
        current_entry.lance_version,
    )


def build_commit(
    txn: WriteTxn, plan: PublishPlan, metadata: CommitMetadata, detached_tables: Mapping[TableKey, DetachedTable]
) -> Commit:
    """Build the commit. Call this before the swap, because it may write the file checksum record."""
    changed_tables: dict[TableKey, TableEntry | None] = {
        table_key: detached_table.new_entry for table_key, detached_table in detached_tables.items()
    }
    changed_tables |= {**plan.new_tables, **plan.adopted_tables, **dict.fromkeys(plan.dropped_tables)}
    new_checksums = {
        name: checksum for table in detached_tables.values() for name, checksum in table.file_checksums.items()
    }
    parent_ids = (txn.base.state.head.commit_id, *((plan.merged_head,) if plan.merged_head else ()))
    return Commit(
        id=txn.commit_id,
        parents=parent_ids,
        operation=plan.operation,
        branch=txn.branch,
        manifest_version=txn.base.version + 1,
        created_at=txn.created_at,
        published_at=clock_and_ids.now_micros(),
        actor=metadata.actor,
        message=metadata.message,
        schema=plan.schema,
        tables=changed_tables,
        streams=plan.streams,
        key=metadata.idempotency_key,
        request=metadata.request_hash,
        details=plan.details,
        files=record_checksums(txn.store, changed_tables, {**plan.file_checksums, **new_checksums}),
    )


def build_next_state(
    txn: WriteTxn, plan: PublishPlan, commit: Commit, detached_tables: Mapping[TableKey, DetachedTable]
) -> GraphState:
    """Build the state to swap in. Call this before the swap, because it may write sealed log chunks."""
    base_state = txn.base.state
    log = HistoryLog(txn.store, base_state)
    unlogged_commits = [incoming for incoming in plan.incoming_commits if log.find(incoming.id) is None]
    grown_state = append_commits(txn.store, base_state, [*unlogged_commits, commit])
    tables = {
        **base_state.tables,
        **{
            changed_key: changed_entry
            for changed_key, changed_entry in commit.tables.items()
            if changed_entry is not None
        },
    }
    return replace(
        grown_state,
        head=replace(base_state.head, commit_id=commit.id, nonce=None),
        schema=plan.schema or base_state.schema,
        tables={
            table_key: table_entry for table_key, table_entry in tables.items() if table_key not in plan.dropped_tables
        },
        streams={**base_state.streams, **plan.streams},
    )
