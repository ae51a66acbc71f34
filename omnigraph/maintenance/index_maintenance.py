"""Build the indexes that the schema declares, without changing any content.

Index files are built before the writer slot is taken, so a long build does not block writers. If a writer makes index
files outdated before the slot is taken, those files are built again.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice

from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.missing_table_files import report_missing_files
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.maintenance.executors.local import LocalExecutor
from omnigraph.maintenance.executors.protocol import Executor
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.declared_indexes import all_indexes, shadowed_ngram_indexes, vector_indexes
from omnigraph.storage.column_index import (
    IndexPlan,
    count_buildable_rows,
    kinds_by_index_key,
    list_segments,
    plan_indexes,
    stage_built_segments,
    why_not_covered,
)
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.fragments import fragment_row_counts
from omnigraph.storage.index_fallback import find_lost_segments
from omnigraph.storage.table import StagedChange, Table, can_replay
from omnigraph.storage.text.fulltext import index_column
from omnigraph.values.table_key import TableKey

from .index_selection import NO_INDEXES, IndexSelection

MAINTENANCE_ACTOR = "omnigraph:maintenance"


def ensure_indices(
    branch: BranchState,
    metadata: CommitMetadata | None = None,
    types: Collection[str] | None = None,
    executor: Executor | None = None,
    rebuild: IndexSelection = NO_INDEXES,
) -> Commit | None:
    """Build the declared indexes over all rows that they do not cover yet.

    The indexes that `rebuild` selects are rebuilt, as are all indexes on a table if any of their files are missing.
    `types` restricts the build to the tables with these keys. Return the commit, or None if every row was already
    covered and nothing was rebuilt.
    """
    executor = executor or LocalExecutor()
    base_txn = WriteTxn(branch.store, branch.name, branch.refresh(), "", 0)
    with report_missing_files(branch.store, lambda: base_txn.base.state.tables), as_storage_errors("none"):
        staged_indexes = _stage_indexes(base_txn, {}, types, executor, rebuild)
        base_epoch = base_txn.base.state.head.gc_epoch

    def plan_publish(txn: WriteTxn) -> PublishPlan | None:
        gc_epoch = txn.base.state.head.gc_epoch
        # A garbage collection may have deleted the built files in the meantime.
        earlier_staged = staged_indexes if gc_epoch == base_epoch else {}
        staged_writes = _stage_indexes(txn, earlier_staged, types, executor, rebuild)
        if not staged_writes:
            return None
        return PublishPlan("ensure_indices", staged_writes, maintenance=True, gc_epoch=gc_epoch)

    metadata = metadata or CommitMetadata()
    return publish(branch, plan_publish, replace(metadata, actor=metadata.actor or MAINTENANCE_ACTOR))


def unbuilt_indexes(table: Table, entity_type: NodeType | EdgeType) -> list[tuple[str, str]]:
    """Return the declared indexes that are not built, as (property, reason) pairs."""
    waiting_vectors = (
        (property_name, why_not_covered(table, property_name, index_kind))
        for property_name, index_kind in vector_indexes(entity_type).items()
    )
    return shadowed_ngram_indexes(entity_type) + [
        (property_name, reason) for property_name, reason in waiting_vectors if reason is not None
    ]


def outdated_indexes(table: Table, entity_type: NodeType | EdgeType) -> list[tuple[str, str]]:
    """Return the declared indexes that the next build would extend, as (property, reason) pairs."""
    row_count = sum(fragment_row_counts(table).values())
    buildable_rows = (
        (index_column(index_key), count_buildable_rows(table, index_key, kind))
        for index_key, kind in all_indexes(entity_type).items()
    )
    return [
        (column, f"{missing_count:,} of {row_count:,} rows are not in the index; `ensure_indices` adds them")
        for column, missing_count in buildable_rows
        if missing_count
    ]


def stage_missing_indexes(
    txn: WriteTxn, tables: Mapping[TableKey, Table], executor: Executor, rebuild: IndexSelection = NO_INDEXES
) -> dict[TableKey, StagedChange]:
    """Stage indexes over all uncovered rows in the given tables, skipping tables that have nothing to build."""
    plan_by_key = {
        table_key: _plan_table(txn, table_key, table, executor, rebuild) for table_key, table in tables.items()
    }
    index_jobs = [
        (tables[table_key], task) for table_key, index_plan in plan_by_key.items() for task in index_plan.builds
    ]
    segments_iterator = iter(executor.build_segments(txn.store, index_jobs) if index_jobs else ())
    segments_by_key = {
        table_key: list(islice(segments_iterator, len(index_plan.builds)))
        for table_key, index_plan in plan_by_key.items()
    }
    staged_by_key = {
        table_key: stage_built_segments(tables[table_key], plan_by_key[table_key], segments)
        for table_key, segments in segments_by_key.items()
    }
    return {
        table_key: staged_indexes for table_key, staged_indexes in staged_by_key.items() if staged_indexes is not None
    }


def _plan_table(
    txn: WriteTxn, table_key: TableKey, table: Table, executor: Executor, rebuild: IndexSelection
) -> IndexPlan:
    declared_kinds = index_kinds_of(txn, table_key)
    rebuilt_keys = {
        index_key
        for index_key in {*declared_kinds, *kinds_by_index_key(table)}
        if rebuild.contains(table_key, index_column(index_key))
    }
    if find_lost_segments(txn.store, table):
        rebuilt_keys |= declared_kinds.keys()
    return plan_indexes(table, declared_kinds, rebuilt_keys=rebuilt_keys, part_rows=executor.index_part_rows)


def index_kinds_of(txn: WriteTxn, table_key: TableKey) -> dict[str, str]:
    """Return the kind of each index on a table, keyed by index key."""
    catalog = read_schema(txn.store, txn.base.state.schema).ir.catalog
    return all_indexes(type_for_key(catalog, table_key))


def extended_indexes(base_table: Table, new_table: Table) -> list[str]:
    """Return the columns whose index has new segments."""
    base_segments = {uuid for uuid, _, _ in list_segments(base_table)}
    return sorted({index_key for uuid, index_key, _ in list_segments(new_table) if uuid not in base_segments})


def _stage_indexes(
    txn: WriteTxn,
    earlier_staged: Mapping[TableKey, StagedChange],
    types: Collection[str] | None,
    executor: Executor,
    rebuild: IndexSelection,
) -> dict[TableKey, StagedChange]:
    entries = txn.base.state.tables.items()
    selected_keys = [
        table_key
        for table_key, entry in entries
        if (entry.row_count or rebuild.contains_table(table_key)) and (types is None or table_key in types)
    ]
    tables = {table_key: txn.table(table_key) for table_key in selected_keys}
    still_valid = {
        table_key: earlier_staged[table_key]
        for table_key in selected_keys
        if table_key in earlier_staged and can_replay(earlier_staged[table_key], tables[table_key])
    }
    remaining_tables = {table_key: table for table_key, table in tables.items() if table_key not in still_valid}
    newly_staged = stage_missing_indexes(txn, remaining_tables, executor, rebuild)
    return {
        table_key: staged_indexes
        for table_key in selected_keys
        if (staged_indexes := still_valid.get(table_key) or newly_staged.get(table_key))
    }
