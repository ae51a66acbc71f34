"""Rewrite tables that still contain deleted rows or dropped columns, so that their files can be removed.

A deleted row is only marked as deleted: its data file and the indexes still contain it. A dropped column is no longer
referenced, but its values remain in the data files. The rewrite does not change the graph's content. The rewrite is
published as maintenance, and it is planned again if another writer publishes first.
"""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.errors import BranchNotFound, HistoryReclaimed, ReadSetConflict
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import list_branches, open_branch
from omnigraph.history.checksum_verification import check_intact
from omnigraph.publish.maintenance_retry import shrink_on_retry
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.column_index import kinds_by_index_key, stage_indexes
from omnigraph.storage.compact import fragments_with_dropped_columns, stage_compaction
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.storage.table import StagedChange
    from omnigraph.values.table_key import TableKey

MAINTENANCE_ACTOR = "omnigraph:maintenance"


def rewrite_deleted_data(store: Store) -> int:
    """Rewrite tables with deleted data on every branch, and rebuild their indexes.

    Return the number of commits created. Tags are never rewritten, so a tag's data remains until the tag is deleted.
    """
    commit_count = 0
    for branch_name in list_branches(store):
        with suppress(BranchNotFound):  # deleted after the listing
            commit_count += _rewrite_branch(open_branch(store, branch_name))
    return commit_count


def _rewrite_branch(branch_state: BranchState) -> int:
    """Rewrite one branch; stop if the branch has been deleted in the meantime."""
    commit_count = 0
    try:
        indexed_columns = _read_index_kinds(branch_state)  # read before rewriting, because a rewrite may drop an index
        for _ in range(2):  # run twice, because a rewrite that loses to a writer covers fewer fragments
            commit_count += _publish_rewrite(branch_state)
        return commit_count + _publish_rebuilt_indexes(branch_state, indexed_columns)
    except (ReadSetConflict, HistoryReclaimed, AbsentError):
        if branch_state.reload().state.head.closed:
            return commit_count
        raise


def _publish_rewrite(branch_state: BranchState) -> bool:
    def stage_rewrites(txn: WriteTxn, max_fragments: int | None) -> PublishPlan | None:
        staged_changes: dict[TableKey, StagedChange] = {}
        for table_key in sorted(txn.base.state.tables):
            table = txn.table(table_key)
            dropped_column_fragments = fragments_with_dropped_columns(table)
            if dropped_column_fragments or any(
                fragment.metadata.deletion_file for fragment in table.dataset.get_fragments()
            ):
                verify_files = partial(check_intact, txn.store, txn.base.state)
                staged = stage_compaction(
                    txn.store,
                    table,
                    max_fragments=max_fragments,
                    extra_fragment_ids=dropped_column_fragments,
                    verify_files=verify_files,
                )
                staged_changes |= {table_key: staged} if staged is not None else {}
        return PublishPlan("optimize", staged_changes, maintenance=True) if staged_changes else None

    return publish(branch_state, shrink_on_retry(stage_rewrites), CommitMetadata(MAINTENANCE_ACTOR)) is not None


def _read_index_kinds(branch_state: BranchState) -> dict[str, dict[str, str]]:
    """Return each table's indexed columns, with the kind of index."""
    txn = WriteTxn(branch_state.store, branch_state.name, branch_state.refresh(), "", 0)
    return {table_key: kinds_by_index_key(txn.table(table_key)) for table_key in txn.base.state.tables}


def _publish_rebuilt_indexes(branch_state: BranchState, earlier_indexes: dict[str, dict[str, str]]) -> bool:
    """Rebuild the indexes, which still contain values from rows deleted after the indexes were built."""

    def prepare_indexes(txn: WriteTxn) -> PublishPlan | None:
        staged_changes: dict[TableKey, StagedChange] = {}
        for table_key in sorted(txn.base.state.tables):
            table = txn.table(table_key)
            index_kinds = earlier_indexes.get(table_key) or kinds_by_index_key(table)
            staged = stage_indexes(txn.store, table, index_kinds, rebuild=True) if index_kinds else None
            staged_changes |= {table_key: staged} if staged is not None else {}
        return PublishPlan("optimize", staged_changes, maintenance=True) if staged_changes else None

    return publish(branch_state, prepare_indexes, CommitMetadata(MAINTENANCE_ACTOR)) is not None
