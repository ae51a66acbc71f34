"""Stage the tables for a new schema: reshape, copy or create each one as an unpublished version.

The values of a dropped property stay in the files, but new versions no longer refer to the property's field id. To
erase the property's history as well, the remaining data is copied to a new table in another directory.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.history.commit import TableEntry
from omnigraph.history.matched_types import TypeTransition, added_types, dropped_types, type_transitions
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.publish.requirements import SameVersion
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.arrow import table_key, table_schema
from omnigraph.storage.change_columns import reshape_table
from omnigraph.storage.checksums import FileChecksum
from omnigraph.storage.find_rows import read_batches
from omnigraph.storage.fragments import stage_appended_fragments, write_fragment
from omnigraph.storage.layout import table_directory
from omnigraph.storage.pending_blobs import PendingBlobs
from omnigraph.storage.table import Table, commit, create_table
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from .proposal import SchemaPlan

_FRAGMENT_ROWS = 1 << 16  # rows per fragment when a table is copied
_FRAGMENT_BYTES = 256 << 20  # bytes per fragment when a table is copied


@dataclass(slots=True)
class StagedTables:
    """The tables that the new manifest replaces, adds and drops, with their requirements and file checksums."""

    adopted: dict[TableKey, TableEntry] = field(default_factory=dict)
    registered: dict[TableKey, TableEntry] = field(default_factory=dict)
    dropped_keys: set[TableKey] = field(default_factory=set)
    erased_locations: set[str] = field(default_factory=set)
    requirements: list[SameVersion] = field(default_factory=list)
    files: dict[str, FileChecksum] = field(default_factory=dict)


def rewrites_data(schema_plan: SchemaPlan, txn: WriteTxn) -> bool:
    """Return whether the plan must rewrite any existing rows."""
    transitions = type_transitions(schema_plan.before.ir, schema_plan.after)
    rewritten = (
        transition
        for transition in transitions
        if transition.rewrites_values or (schema_plan.allow_data_loss and transition.drops_property)
    )
    entries = (txn.table_entry(transition.old_key) for transition in rewritten)
    return any(entry is not None and entry.row_count for entry in entries)


def stage_schema_tables(schema_plan: SchemaPlan, txn: WriteTxn) -> StagedTables:
    """Stage every table that the new schema changes or adds, and record the tables that it drops."""
    staged_tables = StagedTables()
    for type_transition in type_transitions(schema_plan.before.ir, schema_plan.after):
        _stage_retained(schema_plan, txn, type_transition, staged_tables)
    for entity_type in dropped_types(schema_plan.before.ir, schema_plan.after):
        _stage_dropped(schema_plan, txn, table_key(entity_type), staged_tables)
    for entity_type in added_types(schema_plan.before.ir, schema_plan.after):
        staged_tables.registered[table_key(entity_type)] = _stage_added(
            txn, schema_plan.after, entity_type, staged_tables
        )
    staged_tables.dropped_keys -= {*staged_tables.adopted, *staged_tables.registered}
    return staged_tables


def _stage_retained(
    schema_plan: SchemaPlan, txn: WriteTxn, type_transition: TypeTransition, staged_tables: StagedTables
) -> None:
    entry, table = txn.table_entry(type_transition.old_key), txn.table(type_transition.old_key)
    assert entry is not None  # noqa: S101 - a manifest has a table for every type of its schema
    erases_history = schema_plan.allow_data_loss and type_transition.drops_property
    if erases_history:
        new_table, highest_field_id = _copy_to_new_table(txn, type_transition, table), 0
        staged_tables.erased_locations.add(entry.location)
    else:
        new_table, highest_field_id = reshape_table(
            txn.store, table, type_transition.target_columns, entry.max_field_id
        )
    is_unchanged = new_table.version == table.version and not erases_history
    if is_unchanged and type_transition.new_key == type_transition.old_key:
        return
    staged_tables.files |= new_table.new_files
    staged_tables.requirements.append(_require_same_version(entry))
    renamed_entry = replace(entry, key=type_transition.new_key)
    staged_tables.adopted[type_transition.new_key] = (
        renamed_entry if is_unchanged else _next_entry(txn, renamed_entry, new_table, highest_field_id)
    )
    if type_transition.new_key != type_transition.old_key:
        staged_tables.dropped_keys.add(type_transition.old_key)


def _next_entry(txn: WriteTxn, entry: TableEntry, table: Table, highest_field_id: int) -> TableEntry:
    return replace(
        entry,
        location=table.location,
        version=entry.version + 1,
        lance_version=table.version,
        content_id=txn.commit_id,
        branch=txn.branch,
        max_field_id=max(highest_field_id, table.highest_field_id),
    )


def _stage_dropped(schema_plan: SchemaPlan, txn: WriteTxn, type_key: TableKey, staged_tables: StagedTables) -> None:
    entry = txn.table_entry(type_key)
    assert entry is not None  # noqa: S101 - a manifest has a table for every type of its schema
    staged_tables.dropped_keys.add(type_key)
    staged_tables.requirements.append(_require_same_version(entry))
    if schema_plan.allow_data_loss:
        staged_tables.erased_locations.add(entry.location)


def _require_same_version(entry: TableEntry) -> SameVersion:
    return SameVersion(entry.key, entry.content_id, entry.lance_version, entry.version)


def _stage_added(
    txn: WriteTxn, schema_ir: SchemaIR, entity_type: NodeType | EdgeType, staged_tables: StagedTables
) -> TableEntry:
    type_key, table = table_key(entity_type), _create_empty_table(txn, schema_ir, entity_type)
    staged_tables.files |= table.new_files
    highest_field_id = table.highest_field_id
    return TableEntry(type_key, table.location, 1, table.version, txn.commit_id, 0, txn.branch, highest_field_id)


def _create_empty_table(txn: WriteTxn, schema_ir: SchemaIR, entity_type: NodeType | EdgeType) -> Table:
    location = table_directory(table_key(entity_type), clock_and_ids.new_ulid())
    return create_table(txn.store, location, table_schema(schema_ir, entity_type))


def _copy_to_new_table(txn: WriteTxn, type_transition: TypeTransition, old_table: Table) -> Table:
    """Copy all rows to a new table, so that its files contain no dropped data."""
    new_table = _create_empty_table(txn, type_transition.new_ir, type_transition.new_type)
    with closing(PendingBlobs((), {}, compares_stored=False)) as blobs, blobs.activate():  # large blobs are streamed
        fragments = [write_fragment(txn.store, new_table, piece) for piece in _read_pieces(type_transition, old_table)]
    return commit(txn.store, new_table, stage_appended_fragments(new_table, fragments)) if fragments else new_table


def _read_pieces(type_transition: TypeTransition, old_table: Table) -> Iterator[pa.Table]:
    """Yield all rows in their new form, in pieces of bounded size."""
    source_names = [
        target_column.source for target_column in type_transition.target_columns if target_column.source is not None
    ]
    pending_batches: list[pa.RecordBatch] = []
    for batch in read_batches(old_table, source_names):
        pending_batches.append(batch)
        if (
            sum(pending.num_rows for pending in pending_batches) >= _FRAGMENT_ROWS
            or sum(pending.nbytes for pending in pending_batches) >= _FRAGMENT_BYTES
        ):
            yield _convert_batches(type_transition, pending_batches)
            pending_batches = []
    if pending_batches:
        yield _convert_batches(type_transition, pending_batches)


def _convert_batches(type_transition: TypeTransition, pending_batches: list[pa.RecordBatch]) -> pa.Table:
    combined_batches = pa.Table.from_batches(pending_batches).combine_chunks().to_batches()
    column_names = [target_column.field.name for target_column in type_transition.target_columns]
    converted_columns = [
        [target_column.values_for(batch) for target_column in type_transition.target_columns]
        for batch in combined_batches
    ]
    return pa.Table.from_batches([pa.record_batch(column_arrays, column_names) for column_arrays in converted_columns])
