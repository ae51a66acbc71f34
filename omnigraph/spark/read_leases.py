"""Read leases for Spark jobs, which keep a cleanup from removing the data that their tasks read.

The driver holds a lease for the duration of a call. Spark does not report when a DataFrame is no longer used, so each
of its tasks renews the lease, which expires after the last task. If the store is not writable, the read continues
without a lease.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import BranchNotFound, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.commit import TableEntry
from omnigraph.history.delete_queue import check_versions_retained
from omnigraph.history.snapshot import Snapshot
from omnigraph.publish import intent as intents
from omnigraph.publish.intent import Intent
from omnigraph.publish.lease import keep_lease_alive
from omnigraph.publish.read_lease import build_read_intent, protect_snapshot
from omnigraph.storage import layout
from omnigraph.storage.failures import as_storage_errors
from omnigraph.storage.store import Store
from omnigraph.values.table_key import TableKey

from .pinned_graph import PinnedGraph, pin_graph

Batches = Iterator[pa.RecordBatch]
BatchFunction = Callable[[Batches], Batches]
_log = logging.getLogger("omnigraph")


@dataclass(frozen=True, slots=True)
class DataFrameLease:
    """A DataFrame's lease on one table at one commit; the DataFrame's tasks renew it."""

    pinned_graph: PinnedGraph
    intent: Intent
    table_entry: TableEntry

    @contextmanager
    def keep_alive(self) -> Iterator[None]:
        """Protect the data that a task reads while the block runs, and afterward until the lease expires.

        Raises `HistoryReclaimed` if the table version has already been removed.
        """
        store = self.pinned_graph.store()
        with ExitStack() as exit_stack:
            try:
                with as_storage_errors("none"):
                    self._renew_or_recreate(store)
                exit_stack.enter_context(keep_lease_alive(store, self.intent))
            except StorageError as error:
                _log.warning("cannot obtain a read lease, so a cleanup may remove data that is being read: %s", error)
            yield

    def wrap_task(self, task: BatchFunction) -> BatchFunction:
        """Wrap a Spark function so that it runs under this lease."""

        def run(batches: Batches) -> Batches:
            with self.keep_alive():
                yield from task(batches)

        run.__name__ = task.__name__  # shown in the query plan
        return run

    def _renew_or_recreate(self, store: Store) -> None:
        """Renew the lease, or create it again if it was removed because no task renewed it for a while."""
        intent_name, intent_json = layout.intent_name(self.intent.id), self.intent.to_json()
        for _ in range(2):
            if store.objects.create_json(intent_name, intent_json):
                check_versions_retained(store, [self.table_entry], self.intent.base_commit)
                return
            intents.renew(store, self.intent)
            if store.objects.read(intent_name) is not None:
                return


def lease_for_table(branch_state: BranchState, snapshot: Snapshot, table_key: TableKey) -> DataFrameLease:
    """Return a lease on one table in a snapshot; the lease is not written until a task reads data."""
    intent = build_read_intent(_branch_of_snapshot(snapshot, branch_state), snapshot)
    return DataFrameLease(pin_graph(snapshot.store, {}), intent, snapshot.tables[table_key])


def _branch_of_snapshot(snapshot: Snapshot, branch_state: BranchState | None) -> BranchState:
    """Return a snapshot's branch, or the given branch if the snapshot's branch no longer exists."""
    if branch_state is not None and branch_state.name == snapshot.branch:
        return branch_state
    try:
        return open_branch(snapshot.store, snapshot.branch)
    except BranchNotFound:
        if branch_state is None:
            raise
        return branch_state


@contextmanager
def snapshot_lease(snapshot: Snapshot, branch_state: BranchState | None = None) -> Iterator[None]:
    """Protect all data in a snapshot while the block runs."""
    # A read-only handle must not write anything, not even a lease, so open a separate writable store.
    store = pin_graph(snapshot.store, {}).store()
    with ExitStack() as exit_stack:
        try:
            exit_stack.enter_context(protect_snapshot(store, _branch_of_snapshot(snapshot, branch_state), snapshot))
        except StorageError as error:
            _log.warning("cannot obtain a read lease, so a cleanup may remove data that is being exported: %s", error)
        yield
