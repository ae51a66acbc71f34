"""Stage a merge that also changes the target's schema.

The target's tables are first migrated to the merged schema as unpublished versions. The merged rows are then written on
top of these versions. Nothing is visible until the manifest references the new versions.
"""

from dataclasses import replace

from omnigraph.evolve.proposal import SchemaPlan
from omnigraph.evolve.tables import StagedTables, stage_schema_tables
from omnigraph.history.commit import TableEntry
from omnigraph.history.schemas import StoredSchema, write_schema
from omnigraph.ingest.stage import stage_tables
from omnigraph.lang.schema.ir import assigned_ids
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import Delta
from omnigraph.storage.checksums import FileChecksum
from omnigraph.storage.table import StagedChange, commit
from omnigraph.values.table_key import TableKey


def stage_migrated_delta(
    txn: WriteTxn, delta: Delta, migration: SchemaPlan, source_schema: StoredSchema
) -> PublishPlan:
    """Stage the new schema, the migrated tables and the merged rows. The planner has already checked the rows."""
    merged_schema = migration.before.replaced_by(migration.source, migration.after)
    retired_ids = merged_schema.retired_ids | source_schema.retired_ids
    merged_schema = replace(merged_schema, retired_ids=retired_ids.difference(assigned_ids(merged_schema.ir)))
    staged_tables = stage_schema_tables(migration, txn)
    migrated_entries = {**staged_tables.adopted, **staged_tables.registered}
    migrated_txn = _with_tables(txn, migrated_entries, staged_tables)
    file_checksums = dict(staged_tables.files)
    table_changes = {}
    for table_key, staged_change in stage_tables(migrated_txn, delta).items():
        if table_key not in migrated_entries:  # the columns stay the same, so this is an ordinary change
            table_changes[table_key] = staged_change
            continue
        migrated_entries[table_key], new_files = _commit_change(migrated_txn, table_key, staged_change)
        file_checksums |= new_files
    return PublishPlan(
        "merge",
        table_changes,
        new_tables={key: migrated_entries[key] for key in staged_tables.registered},
        adopted_tables={key: migrated_entries[key] for key in staged_tables.adopted},
        dropped_tables=frozenset(staged_tables.dropped_keys),
        schema=write_schema(txn.store, merged_schema),
        file_checksums=file_checksums,
    )


def _with_tables(txn: WriteTxn, migrated_entries: dict[TableKey, TableEntry], staged_tables: StagedTables) -> WriteTxn:
    """Return the write's base as if its tables had already been migrated."""
    state = txn.base.state
    kept_entries = {key: entry for key, entry in state.tables.items() if key not in staged_tables.dropped_keys}
    return replace(txn, base=replace(txn.base, state=replace(state, tables={**kept_entries, **migrated_entries})))


def _commit_change(
    txn: WriteTxn, table_key: TableKey, staged_change: StagedChange
) -> tuple[TableEntry, dict[str, FileChecksum]]:
    entry = txn.base.state.tables[table_key]
    new_version = commit(txn.store, txn.table(table_key), staged_change)
    new_entry = replace(
        entry,
        # A migrated table already has its next version; a renamed table still has the base's version.
        version=entry.version + (entry.content_id != txn.commit_id),
        lance_version=new_version.version,
        content_id=txn.commit_id,
        row_count=entry.row_count + staged_change.row_delta,
        branch=txn.branch,
    )
    return new_entry, dict(new_version.new_files)
